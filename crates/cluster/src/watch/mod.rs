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
//! health   how a watch fares
//! views    the views of autoscalers and pods
//! measured what a metrics server keeps of nodes and pods
//! ```

mod ask;
mod backoff;
mod event;
mod failure;
mod health;
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

pub use health::{WatchCondition, WatchHealth};
pub use measured::{MeasuredNode, MeasuredPod};
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

/// What a watch tells, in order.
#[derive(Clone, Debug, PartialEq)]
pub enum WatchEvent<T> {
    /// A list begins; what is not in it is gone once [`WatchEvent::Listed`] comes. A list that is cut off begins again.
    Listing,
    /// The list is complete.
    Listed,
    /// An object of a list, or one that was created or changed.
    Applied(T),
    /// An object is gone.
    Deleted {
        /// Namespace.
        namespace: String,
        /// Name.
        name: String,
    },
    /// An object cannot be read; it is as if it were not there, and the watch goes on.
    Unreadable {
        /// Namespace, if that much could be read.
        namespace: String,
        /// Name, if that much could be read.
        name: String,
        /// Why.
        error: String,
    },
}

/// Watches `source` for ever. The stream never ends and never fails; trouble is told to [`WatchHealth`] and logged.
pub fn watch<T: View>(
    client: Client,
    source: WatchSource,
) -> (WatchHealth, impl Stream<Item = WatchEvent<T>> + Send) {
    let health = WatchHealth::default();
    let watcher = state::Watcher::new(client, source, health.clone());
    let stream = stream::unfold(watcher, |mut watcher| async move { Some((watcher.next().await, watcher)) });
    (health, stream)
}
