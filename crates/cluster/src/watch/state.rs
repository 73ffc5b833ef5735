//! Which request comes next: the loop, step by step.

use std::marker::PhantomData;
use std::time::Duration;

use kube::Client;
use kube::client::Body;
use tokio::task::coop;
use tokio::time::Instant;

use super::ask::{ask, frame};
use super::backoff::{Backoff, chance};
use super::event::{self, Event};
use super::failure::{Recovery, WatchFailure};
use super::lines::Lines;
use super::list::{List, ListPiece};
use super::object::{ObjectHead, view};
use super::version::Version;
use super::{View, WatchEvent, WatchHealth, WatchSource};

/// How long a list may be silent, the wait for its turn included.
const LIST_SILENCE: Duration = Duration::from_secs(90);
/// How long a watch may be silent: bookmarks come about every minute.
const WATCH_SILENCE: Duration = Duration::from_secs(150);
/// A watch lasts this long, and up to twice as long by chance.
const LASTS: Duration = Duration::from_mins(5);
/// A watch that ends sooner, and without having told anything, is no good one.
const BRIEF: Duration = Duration::from_secs(1);

/// Where the loop is.
#[derive(Debug)]
enum WatcherState {
    /// A list is to be asked for.
    List(ListConsistency),
    /// A list arrives.
    Listing { since: ListConsistency, body: Body, list: List },
    /// Whatever happens from now on is to be asked for.
    Watch,
    /// It arrives.
    Watching(Watching),
    /// Something went wrong; this comes then.
    Pause { until: Instant, then: NextRequest },
}

impl Default for WatcherState {
    fn default() -> Self {
        Self::List(ListConsistency::Any)
    }
}

/// A watch that arrives.
#[derive(Debug)]
struct Watching {
    body: Body,
    lines: Lines,
    begun: Instant,
    heard: Instant,
    /// Whether it told anything new.
    told: bool,
}

/// What follows a pause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NextRequest {
    List(ListConsistency),
    Watch,
}

/// What a list may be taken from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ListConsistency {
    /// Whatever the server has at hand; at first nothing is known that could be newer.
    Any,
    /// Whatever the server has at hand that is not older than what we know.
    Known,
    /// The truth, however much trouble that is.
    Truth,
}

/// A watch under way.
pub(super) struct Watcher<T> {
    client: Client,
    source: WatchSource,
    health: WatchHealth,
    state: WatcherState,
    /// The newest version we know.
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

    /// The next change.
    pub(super) async fn next(&mut self) -> WatchEvent<T> {
        loop {
            // Items of a list are ready one after the other; others want to run too.
            coop::consume_budget().await;
            let state = std::mem::take(&mut self.state);
            let (change, state) = self.step(state).await;
            self.state = state;
            if let Some(change) = change {
                return change;
            }
        }
    }

    /// Does what `state` says.
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
                ask(&self.client, &self.source, LIST_SILENCE, &[("resourceVersion", "0")]).await
            }
            ListConsistency::Known => {
                let newer = [("resourceVersion", version), ("resourceVersionMatch", "NotOlderThan")];
                ask(&self.client, &self.source, LIST_SILENCE, &newer).await.map_err(WatchFailure::of_relist)
            }
            ListConsistency::Truth => ask(&self.client, &self.source, LIST_SILENCE, &[]).await,
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
            Ok(ListPiece::More) => match frame(&mut body, LIST_SILENCE).await {
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
                    && since != ListConsistency::Truth
                {
                    let failure = WatchFailure::stale(version.as_str(), known.as_str());
                    return (None, self.after(&failure, NextRequest::List(since)));
                }
                self.known = Some(version);
                Some(WatchEvent::Listing)
            }
            Ok(ListPiece::Item(text)) => {
                let head = ObjectHead::of(&text);
                let read = view(&text, &head, &mut self.scratch).map(WatchEvent::Applied);
                Some(read.unwrap_or_else(|why| self.unreadable(&head, why)))
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
        let lasts = LASTS.mul_f64(1.0 + chance()).as_secs().to_string();
        let version = self.known.as_ref().map_or("0", Version::as_str);
        let parameters = [
            ("watch", "true"),
            ("allowWatchBookmarks", "true"),
            ("timeoutSeconds", lasts.as_str()),
            ("resourceVersion", version),
        ];
        match ask(&self.client, &self.source, WATCH_SILENCE, &parameters).await {
            Ok(body) => {
                self.connected();
                let begun = Instant::now();
                WatcherState::Watching(Watching {
                    body,
                    lines: Lines::default(),
                    begun,
                    heard: begun,
                    told: false,
                })
            }
            Err(failure) => self.after(&failure, NextRequest::Watch),
        }
    }

    async fn watching(&mut self, mut watching: Watching) -> (Option<WatchEvent<T>>, WatcherState) {
        match watching.lines.next() {
            Ok(Some(line)) => match event::read(&line, &self.source, &mut self.scratch) {
                Ok(Event::Change(change, version)) => {
                    let Some(told) = self.advance(version) else {
                        // A change that is older than what we know was told before.
                        return (None, WatcherState::Watching(watching));
                    };
                    watching.told |= told;
                    if let WatchEvent::Unreadable { namespace, name, error } = &change {
                        self.note_unreadable(namespace, name, error);
                    }
                    (Some(change), WatcherState::Watching(watching))
                }
                Ok(Event::Known(version)) => {
                    watching.told |= self.advance(version).unwrap_or_default();
                    (None, WatcherState::Watching(watching))
                }
                Ok(Event::Bookmark(version)) => {
                    let behind = version.clone().filter(|_| self.advance(version.clone()).is_none());
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
            Ok(None) => match frame(&mut watching.body, WATCH_SILENCE).await {
                Ok(Some(bytes)) => {
                    watching.heard = Instant::now();
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

    /// Notes a version: whether it is new, or none if it is older than what we know.
    fn advance(&mut self, version: Option<Version>) -> Option<bool> {
        let Some(version) = version else { return Some(true) };
        match &self.known {
            Some(known) if version.is_before(known) => None,
            Some(known) if version == *known => Some(false),
            _ => {
                self.known = Some(version);
                Some(true)
            }
        }
    }

    /// A watch has failed.
    fn over(&mut self, watching: &Watching, failure: &WatchFailure) -> WatcherState {
        // One that told something and then must be listed again may do so for ever.
        if watching.begun.elapsed() >= BRIEF || watching.told && failure.cure == Recovery::Again {
            self.backoff.reset();
        }
        let silent = watching.heard.elapsed() >= WATCH_SILENCE;
        if silent {
            self.health.update(|health| health.disconnected_since = Some(watching.heard));
        }
        self.after(failure, NextRequest::Watch)
    }

    /// What follows a failure while doing something.
    fn after(&mut self, failure: &WatchFailure, doing: NextRequest) -> WatcherState {
        let then = match (failure.cure, doing) {
            (Recovery::Truth, _) | (_, NextRequest::List(ListConsistency::Truth)) => {
                NextRequest::List(ListConsistency::Truth)
            }
            (Recovery::Again, NextRequest::Watch) => NextRequest::Watch,
            _ if self.known.is_some() => NextRequest::List(ListConsistency::Known),
            _ => NextRequest::List(ListConsistency::Any),
        };
        let now = Instant::now();
        let pause = self.backoff.next(chance()).max(failure.pause.unwrap_or_default());
        self.note_failure(failure, now);
        WatcherState::Pause { until: now + pause, then }
    }

    fn note_failure(&self, failure: &WatchFailure, now: Instant) {
        let (path, error) = (&self.source.path, &failure.text);
        let before = self.health.condition();
        if failure.code == 404 {
            // A kind that is not installed is nobody's mistake.
            tracing::debug!(path, "nothing of this kind to watch");
        } else if before.disconnected_since.is_none() || before.last_error.as_ref() != Some(error) {
            tracing::warn!(path, error, "watch interrupted");
        } else {
            tracing::debug!(path, error, "watch still interrupted");
        }
        self.health.update(|health| {
            health.restarts += 1;
            health.absent = failure.code == 404;
            health.disconnected_since.get_or_insert(now);
            health.last_error = Some(error.clone());
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
    /// Whether it may be followed by another at once.
    fn is_good(&self) -> bool {
        self.told || self.begun.elapsed() >= BRIEF
    }
}
