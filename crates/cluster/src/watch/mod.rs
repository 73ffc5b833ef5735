//! List, then watch, for ever, into slim views.
//!
//! ```text
//! state    which request comes next: the loop, step by step
//! ask      one request, and its answer piece by piece
//! failure  what can go wrong, and what follows from it
//! list     the items of a list, as its bytes arrive
//! lines    the lines of a watch, as its bytes arrive
//! event    what a line says
//! object   an object's name and version, and its slim view
//! json     a place in a JSON text
//! views    the views of autoscalers and pods
//! measured what a metrics server keeps of nodes and pods
//! ```

mod ask;
mod backoff;
mod event;
mod failure;
mod json;
mod lines;
mod list;
mod measured;
mod object;
mod source;
mod state;
#[cfg(test)]
mod tests;
mod version;
mod views;

use futures::{Stream, stream};
use kube::Client;
use serde::de::DeserializeOwned;

pub use measured::{MeasuredNode, MeasuredPod};
pub use runtime::{WatchCondition, WatchEvent, WatchHealth};
pub use source::WatchSource;
pub(crate) use source::{METADATA, METADATA_LIST};

/// A slim view of some kind of object.
pub trait View: DeserializeOwned + Send + 'static {
    /// Namespace and name.
    fn key(&self) -> (&str, &str);
}

/// Reads an object that an API server has answered with, without who owns which field, which is often half of it.
pub fn slim<T: DeserializeOwned>(text: &[u8]) -> Result<T, String> {
    object::view(text, &object::ObjectHead::of(text), &mut Vec::new())
}

/// Lists and watches `source` for ever. The stream neither ends nor fails; failures are logged and reported to `health`.
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
