//! List-and-watch through a `kube::Client`, for the workload controllers and the simulated nodes. The client may be
//! connected to localkube or to a real API server.

use std::collections::VecDeque;
use std::fmt::Debug;
use std::time::Duration;

use futures::stream::{self, BoxStream};
use futures::{Stream, StreamExt};
use kube::api::{ListParams, WatchEvent, WatchParams};
use kube::{Api, Resource};
use serde::de::DeserializeOwned;

/// How many objects one page of a list holds.
const LIST_PAGE_SIZE: u32 = 500;
/// After how many seconds the server ends a watch, which is then continued: shorter than most idle timeouts.
const WATCH_TIMEOUT_SECONDS: u32 = 290;
/// The wait after the first failure; it doubles with each further one.
const INITIAL_BACKOFF: Duration = Duration::from_millis(800);
/// The longest wait after a failure.
const MAX_BACKOFF: Duration = Duration::from_secs(30);
/// `Gone`: the server no longer has the changes since the version that a watch named.
const GONE: u16 = 410;

/// What happened to the objects that are watched.
#[derive(Debug)]
pub(crate) enum ListWatchEvent<K> {
    /// A list begins. Objects that it does not name no longer exist.
    ListStarted,
    /// An object of the list.
    Listed(K),
    /// The list is complete.
    ListDone,
    /// An object was created or changed.
    Applied(K),
    /// An object was deleted.
    Deleted(K),
}

struct ListWatch<K> {
    api: Api<K>,
    /// The resource version to watch from; `None` before the first list, and when the server no longer has it.
    version: Option<String>,
    watch: Option<BoxStream<'static, kube::Result<WatchEvent<K>>>>,
    ready: VecDeque<ListWatchEvent<K>>,
    failures: u32,
}

/// Events of all objects, without end: after a failure the watch is continued, or the list repeated, with backoff.
pub(crate) fn list_watch<K>(api: Api<K>) -> impl Stream<Item = ListWatchEvent<K>>
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    let state = ListWatch { api, version: None, watch: None, ready: VecDeque::new(), failures: 0 };
    stream::unfold(state, |mut state| async move { Some((state.next_event().await, state)) })
}

impl<K: Resource + Clone + DeserializeOwned + Debug + Send + 'static> ListWatch<K> {
    async fn next_event(&mut self) -> ListWatchEvent<K> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return event;
            }
            if self.advance().await.is_some() {
                self.failures = 0;
            } else {
                self.watch = None;
                tokio::time::sleep(MAX_BACKOFF.min(INITIAL_BACKOFF * 2u32.pow(self.failures.min(8)))).await;
                self.failures += 1;
            }
        }
    }

    /// Lists, opens the watch or takes one event from it; `None` on failure.
    async fn advance(&mut self) -> Option<()> {
        let Some(version) = &self.version else { return self.list().await.ok() };
        let Some(watch) = &mut self.watch else {
            let parameters = WatchParams::default().timeout(WATCH_TIMEOUT_SECONDS);
            self.watch = Some(self.api.watch(&parameters, version).await.ok()?.boxed());
            return Some(());
        };
        let Some(event) = watch.next().await else {
            // The server ended the watch in time; the next one continues it.
            self.watch = None;
            return Some(());
        };
        let version = match event {
            Ok(WatchEvent::Added(object) | WatchEvent::Modified(object)) => {
                let version = object.meta().resource_version.clone();
                self.ready.push_back(ListWatchEvent::Applied(object));
                version
            }
            Ok(WatchEvent::Deleted(object)) => {
                let version = object.meta().resource_version.clone();
                self.ready.push_back(ListWatchEvent::Deleted(object));
                version
            }
            Ok(WatchEvent::Bookmark(bookmark)) => Some(bookmark.metadata.resource_version),
            Ok(WatchEvent::Error(status)) => {
                if status.code == GONE {
                    self.version = None;
                }
                return None;
            }
            Err(_) => return None,
        };
        self.version = version.or(self.version.take());
        Some(())
    }

    /// Lists all objects, page by page, before any of them is reported: a list that fails half-way reports nothing.
    async fn list(&mut self) -> kube::Result<()> {
        let mut parameters = ListParams::default().limit(LIST_PAGE_SIZE);
        let mut events = VecDeque::from([ListWatchEvent::ListStarted]);
        loop {
            let page = self.api.list(&parameters).await?;
            events.extend(page.items.into_iter().map(ListWatchEvent::Listed));
            parameters.continue_token = page.metadata.continue_.filter(|token| !token.is_empty());
            if parameters.continue_token.is_none() {
                events.push_back(ListWatchEvent::ListDone);
                self.ready = events;
                self.version = page.metadata.resource_version;
                return Ok(());
            }
        }
    }
}
