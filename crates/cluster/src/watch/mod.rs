//! List-and-watch into slim views.
//!
//! ```text
//! state    the state machine of list and watch
//! request  requests and the frames of their responses
//! failure  failures, and how the watch recovers
//! list     streams the items of a list
//! lines    splits the bytes of a watch into lines
//! event    decodes a line
//! object   an object's name and version, and its slim view
//! json     a cursor in a JSON text
//! views    the views of autoscalers and pods
//! measured the views of nodes and pods for the metrics server
//! ```

mod backoff;
mod event;
mod failure;
mod json;
mod lines;
mod list;
mod measured;
mod object;
mod request;
mod source;
mod state;
#[cfg(test)]
mod tests;
#[doc(hidden)]
pub mod untrusted;
mod version;
mod views;

use futures::{Stream, stream};
use kube::Client;
use serde::de::DeserializeOwned;

pub use measured::{MeasuredNode, MeasuredPod};
pub use object::ObjectDecodeError;
pub use runtime::{WatchCondition, WatchEvent, WatchHealth};
pub use source::WatchSource;
pub(crate) use source::{METADATA, METADATA_LIST};

/// A slim view of some kind of object.
pub trait View: DeserializeOwned + Send + 'static {
    /// Namespace and name.
    fn key(&self) -> (&str, &str);
}

/// Decodes an object without its `managedFields`, which are often half of it.
pub fn slim<T: DeserializeOwned>(text: &[u8]) -> Result<T, ObjectDecodeError> {
    object::view(text, &object::ObjectHead::of(text), &mut Vec::new())
}

/// Lists and watches `source`. The stream neither ends nor fails; failures are logged and reported to `health`.
pub fn list_and_watch<T: View>(
    client: Client,
    source: WatchSource,
    health: WatchHealth,
) -> impl Stream<Item = WatchEvent<T>> + Send + use<T> {
    let watcher = state::Watcher::new(client, source, health);
    stream::unfold(watcher, |mut watcher| async move { Some((watcher.next().await, watcher)) })
}

/// As [`list_and_watch`], with a health of its own.
pub fn watch<T: View>(
    client: Client,
    source: WatchSource,
) -> (WatchHealth, impl Stream<Item = WatchEvent<T>> + Send + use<T>) {
    let health = WatchHealth::default();
    (health.clone(), list_and_watch(client, source, health))
}
