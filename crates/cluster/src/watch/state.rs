//! The state machine of list and watch.

use std::marker::PhantomData;
use std::time::Duration;

use kube::Client;
use kube::client::Body;
use tokio::task::coop;
use tokio::time::Instant;

use super::backoff::Backoff;
use super::event::{self, Event};
use super::failure::{Recovery, WatchFailure};
use super::lines::Lines;
use super::list::{List, ListPiece};
use super::object::{ObjectHead, view};
use super::request::{frame, send};
use super::version::Version;
use super::{View, WatchEvent, WatchHealth, WatchSource};
use crate::random;

/// A list without data for this long has failed; waiting for the limiter counts.
const LIST_IDLE_TIMEOUT: Duration = Duration::from_secs(90);
/// A watch without data for this long has failed; bookmarks arrive about every minute.
const WATCH_IDLE_TIMEOUT: Duration = Duration::from_secs(150);
/// The minimum duration of a watch; jitter adds up to as much again.
const MIN_WATCH_DURATION: Duration = Duration::from_mins(5);
/// A watch that ends sooner without an event counts as failed.
const MIN_GOOD_DURATION: Duration = Duration::from_secs(1);

/// The state of the watcher.
#[derive(Debug)]
enum WatcherState {
    /// A list is to be requested.
    List(ListConsistency),
    /// A list is being received.
    Listing { since: ListConsistency, body: Body, list: List },
    /// A watch is to be requested.
    Watch,
    /// A watch is being received.
    Watching(Watching),
    /// A request failed; `then` follows after the delay.
    Pause { until: Instant, then: NextRequest },
}

impl Default for WatcherState {
    fn default() -> Self {
        Self::List(ListConsistency::Any)
    }
}

/// A watch that is being received.
#[derive(Debug)]
struct Watching {
    body: Body,
    lines: Lines,
    started: Instant,
    last_data: Instant,
    /// Whether it had an event with a new version.
    had_events: bool,
}

/// The request after a pause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NextRequest {
    List(ListConsistency),
    Watch,
}

/// The consistency of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ListConsistency {
    /// Any cached version: `resourceVersion=0`. For the first list.
    Any,
    /// A cached version that is not older than our data: `resourceVersionMatch=NotOlderThan`.
    Known,
    /// Quorum read: lists without `resourceVersion`.
    Quorum,
}

/// A received version, compared with that of our data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum VersionChange {
    Newer,
    Same,
    Older,
}

/// Lists and watches one source.
pub(super) struct Watcher<T> {
    client: Client,
    source: WatchSource,
    health: WatchHealth,
    state: WatcherState,
    /// The newest version received.
    known: Option<Version>,
    backoff: Backoff,
    scratch: Vec<u8>,
    views: PhantomData<fn() -> T>,
}

impl<T: View> Watcher<T> {
    pub(super) fn new(client: Client, source: WatchSource, health: WatchHealth) -> Self {
        Self {
            client,
            source,
            health,
            state: WatcherState::default(),
            known: None,
            backoff: Backoff::default(),
            scratch: Vec::new(),
            views: PhantomData,
        }
    }

    /// The next event.
    pub(super) async fn next(&mut self) -> WatchEvent<T> {
        loop {
            // The items of a list are ready without waiting; this lets other tasks run.
            coop::consume_budget().await;
            let state = std::mem::take(&mut self.state);
            let (change, state) = self.step(state).await;
            self.state = state;
            if let Some(change) = change {
                return change;
            }
        }
    }

    /// Makes one step.
    async fn step(&mut self, state: WatcherState) -> (Option<WatchEvent<T>>, WatcherState) {
        match state {
            WatcherState::List(since) => (None, self.list(since).await),
            WatcherState::Listing { since, body, list } => self.listing(since, body, list).await,
            WatcherState::Watch => (None, self.watch().await),
            WatcherState::Watching(watching) => self.watching(watching).await,
            WatcherState::Pause { until, then } => {
                tokio::time::sleep_until(until).await;
                let next = match then {
                    NextRequest::List(since) => WatcherState::List(since),
                    NextRequest::Watch => WatcherState::Watch,
                };
                (None, next)
            }
        }
    }

    async fn list(&mut self, since: ListConsistency) -> WatcherState {
        let version = self.known.as_ref().map_or("0", Version::as_str);
        let answer = match since {
            ListConsistency::Any => {
                send(&self.client, &self.source, LIST_IDLE_TIMEOUT, &[("resourceVersion", "0")]).await
            }
            ListConsistency::Known => {
                let newer = [("resourceVersion", version), ("resourceVersionMatch", "NotOlderThan")];
                send(&self.client, &self.source, LIST_IDLE_TIMEOUT, &newer)
                    .await
                    .map_err(WatchFailure::of_relist)
            }
            ListConsistency::Quorum => send(&self.client, &self.source, LIST_IDLE_TIMEOUT, &[]).await,
        };
        match answer {
            Ok(body) => {
                self.connected();
                WatcherState::Listing { since, body, list: List::default() }
            }
            Err(failure) => self.after(&failure, NextRequest::List(since)),
        }
    }

    async fn listing(
        &mut self,
        since: ListConsistency,
        mut body: Body,
        mut list: List,
    ) -> (Option<WatchEvent<T>>, WatcherState) {
        let change = match list.next() {
            Ok(ListPiece::More) => match frame(&mut body, LIST_IDLE_TIMEOUT).await {
                Ok(Some(bytes)) => {
                    list.push(&bytes);
                    None
                }
                Ok(None) => {
                    list.end();
                    None
                }
                Err(failure) => return (None, self.after(&failure, NextRequest::List(since))),
            },
            Ok(ListPiece::Begin(version)) => {
                if let Some(known) = self.known.as_ref().filter(|known| version.is_before(known))
                    && since != ListConsistency::Quorum
                {
                    let failure = WatchFailure::stale(version.as_str(), known.as_str());
                    return (None, self.after(&failure, NextRequest::List(since)));
                }
                self.known = Some(version);
                Some(WatchEvent::Listing)
            }
            Ok(ListPiece::Item(text)) => {
                // Reported in any case: what a list does not show counts as deleted.
                let _ = self.source.apply_text(&text);
                let head = ObjectHead::of(&text);
                let read = view(&text, &head, &mut self.scratch).map(WatchEvent::Applied);
                Some(read.unwrap_or_else(|why| self.unreadable(&head, why.to_string())))
            }
            Ok(ListPiece::End) => {
                self.health.update(|health| {
                    health.synced = true;
                    health.lists += 1;
                });
                return (Some(WatchEvent::Listed), WatcherState::Watch);
            }
            Err(failure) => return (None, self.after(&failure, NextRequest::List(since))),
        };
        (change, WatcherState::Listing { since, body, list })
    }

    async fn watch(&mut self) -> WatcherState {
        let lasts = MIN_WATCH_DURATION.mul_f64(1.0 + random::fraction()).as_secs().to_string();
        let version = self.known.as_ref().map_or("0", Version::as_str);
        let parameters = [
            ("watch", "true"),
            ("allowWatchBookmarks", "true"),
            ("timeoutSeconds", lasts.as_str()),
            ("resourceVersion", version),
        ];
        match send(&self.client, &self.source, WATCH_IDLE_TIMEOUT, &parameters).await {
            Ok(body) => {
                self.connected();
                let started = Instant::now();
                WatcherState::Watching(Watching {
                    body,
                    lines: Lines::default(),
                    started,
                    last_data: started,
                    had_events: false,
                })
            }
            Err(failure) => self.after(&failure, NextRequest::Watch),
        }
    }

    async fn watching(&mut self, mut watching: Watching) -> (Option<WatchEvent<T>>, WatcherState) {
        match watching.lines.next() {
            Ok(Some(line)) => match event::read(&line, &self.source, &mut self.scratch) {
                Ok(Event::Change(change, version)) => {
                    match self.advance(version) {
                        VersionChange::Newer => watching.had_events = true,
                        VersionChange::Same => {}
                        // A change that is older than our data was received before.
                        VersionChange::Older => return (None, WatcherState::Watching(watching)),
                    }
                    if let WatchEvent::Unreadable { namespace, name, error } = &change {
                        self.note_unreadable(namespace, name, error);
                    }
                    (Some(change), WatcherState::Watching(watching))
                }
                Ok(Event::Known(version)) => {
                    watching.had_events |= self.advance(version) == VersionChange::Newer;
                    (None, WatcherState::Watching(watching))
                }
                Ok(Event::Bookmark(version)) => {
                    let behind =
                        version.clone().filter(|_| self.advance(version.clone()) == VersionChange::Older);
                    match (behind, &self.known) {
                        (Some(version), Some(known)) => {
                            let failure = WatchFailure::stale(version.as_str(), known.as_str());
                            (None, self.over(&watching, &failure))
                        }
                        _ => (None, WatcherState::Watching(watching)),
                    }
                }
                Ok(Event::Other) => (None, WatcherState::Watching(watching)),
                Err(failure) => (None, self.over(&watching, &failure)),
            },
            Ok(None) => match frame(&mut watching.body, WATCH_IDLE_TIMEOUT).await {
                Ok(Some(bytes)) => {
                    watching.last_data = Instant::now();
                    watching.lines.push(&bytes);
                    (None, WatcherState::Watching(watching))
                }
                Ok(None) if watching.is_good() && watching.lines.is_empty() => {
                    self.backoff.reset();
                    (None, WatcherState::Watch)
                }
                Ok(None) => (None, self.over(&watching, &WatchFailure::broken("the watch ended too soon"))),
                Err(failure) => (None, self.over(&watching, &failure)),
            },
            Err(failure) => (None, self.over(&watching, &failure)),
        }
    }

    /// Compares a version with that of our data, and records a newer one. Data without a version counts as newer.
    fn advance(&mut self, version: Option<Version>) -> VersionChange {
        let Some(version) = version else { return VersionChange::Newer };
        match &self.known {
            Some(known) if version.is_before(known) => VersionChange::Older,
            Some(known) if version == *known => VersionChange::Same,
            _ => {
                self.known = Some(version);
                VersionChange::Newer
            }
        }
    }

    /// The state after a failed watch.
    fn over(&mut self, watching: &Watching, failure: &WatchFailure) -> WatcherState {
        // A watch that had events and then needs a list could repeat that without end, so its backoff is kept.
        if watching.started.elapsed() >= MIN_GOOD_DURATION
            || watching.had_events && failure.recovery == Recovery::Again
        {
            self.backoff.reset();
        }
        let silent = watching.last_data.elapsed() >= WATCH_IDLE_TIMEOUT;
        if silent {
            self.health.update(|health| health.disconnected_since = Some(watching.last_data));
        }
        self.after(failure, NextRequest::Watch)
    }

    /// The state after a failed request.
    fn after(&mut self, failure: &WatchFailure, doing: NextRequest) -> WatcherState {
        let then = match (failure.recovery, doing) {
            (Recovery::QuorumRelist, _) | (_, NextRequest::List(ListConsistency::Quorum)) => {
                NextRequest::List(ListConsistency::Quorum)
            }
            (Recovery::Again, NextRequest::Watch) => NextRequest::Watch,
            _ if self.known.is_some() => NextRequest::List(ListConsistency::Known),
            _ => NextRequest::List(ListConsistency::Any),
        };
        let now = Instant::now();
        let pause = self.backoff.next(random::fraction()).max(failure.pause.unwrap_or_default());
        self.note_failure(failure, now);
        WatcherState::Pause { until: now + pause, then }
    }

    fn note_failure(&self, failure: &WatchFailure, now: Instant) {
        let (path, error) = (&self.source.path, &failure.text);
        let before = self.health.condition();
        if failure.code == Some(404) {
            // The kind is not installed, which is not an error.
            tracing::debug!(path, "nothing of this kind to watch");
        } else if before.disconnected_since.is_none() || before.last_error.as_ref() != Some(error) {
            tracing::warn!(path, error, "watch interrupted");
        } else {
            tracing::debug!(path, error, "watch still interrupted");
        }
        self.health.update(|health| {
            health.restarts += 1;
            health.absent = failure.code == Some(404);
            health.disconnected_since.get_or_insert(now);
            health.last_error = Some(error.clone());
            health.last_error_code = failure.code;
        });
    }

    fn connected(&self) {
        let before = self.health.condition();
        if before.disconnected_since.is_none() {
            return;
        }
        if before.restarts > 0 {
            tracing::info!(path = self.source.path, "watch resumed");
        }
        self.health.update(|health| {
            health.disconnected_since = None;
            health.absent = false;
        });
    }

    fn unreadable(&self, head: &ObjectHead<'_>, why: String) -> WatchEvent<T> {
        self.note_unreadable(&head.namespace, &head.name, &why);
        head.unreadable(why)
    }

    fn note_unreadable(&self, namespace: &str, name: &str, error: &str) {
        tracing::warn!(path = self.source.path, namespace, name, error, "object cannot be read");
        self.health.update(|health| health.unreadable += 1);
    }
}

impl Watching {
    /// Whether the next watch may start without a delay.
    fn is_good(&self) -> bool {
        self.had_events || self.started.elapsed() >= MIN_GOOD_DURATION
    }
}
