//! Publishes changes of the cluster to the feed while a page is open: from watches, or from lists where the user may not watch.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use cluster::AutoscalerKind;
use locks::MutexExt as _;
use serde_json::{Value, json};
use tokio::time::Instant;
use web_console::Feed;

use super::follow::{Follower, without_decisions};
use super::listing::Listing;
use super::samples::Samples;
use super::{passes, rows, sources};
use crate::commands::get::join;
use crate::live::cluster_client::RecordingSummary;
use crate::live::{ClusterClient, Scope};

/// How often changes are published, and how often the cluster is read without watches.
const TURN_INTERVAL: Duration = Duration::from_secs(1);
const READ_INTERVAL: Duration = Duration::from_secs(2);
/// A turn or read is followed by a pause of this many times the time that it computed, so that an open page takes at most a
/// hundredth of a core.
const PAUSE_FACTOR: u32 = 100;
/// The shortest pause between turns.
const MIN_TURN_PAUSE: Duration = Duration::from_millis(200);
/// The longest pause between turns, and between reads, also in a cluster of many thousands.
const MAX_TURN_PAUSE: Duration = Duration::from_secs(5);
const MAX_RETRY_PAUSE: Duration = Duration::from_mins(1);
/// How long a watch may take to list everything.
const SYNC_TIMEOUT: Duration = Duration::from_secs(30);
/// Interval of checks whether every watch has listed its objects.
const SYNC_INTERVAL: Duration = Duration::from_millis(50);
/// How long watches go on after the last page was closed.
const IDLE_WATCH_TIMEOUT: Duration = Duration::from_secs(30);
/// How often all autoscalers are checked: whether nothing is decided about them any more, and what their triggers are.
const SWEEP_INTERVAL: Duration = Duration::from_secs(10);
/// How soon watches are tried again that were refused.
const WATCH_RETRY_INTERVAL: Duration = Duration::from_mins(5);
/// The remedy for a user who may not watch.
const WATCH_PERMISSION_REMEDY: &str =
    "ask for the right to list and watch autoscalers, in all namespaces or in that of -n";
/// How often sources are queried.
const SOURCES_INTERVAL: Duration = Duration::from_secs(30);

/// Why lists are read again and again instead of being watched.
#[derive(Clone, Debug, PartialEq, Eq)]
enum WhyPolling {
    MayNotList,
    /// The resource that the user may not watch.
    MayNotWatch(String),
    NoAnswer,
}

/// Reads the cluster.
pub(super) struct Poller {
    pub(super) client: ClusterClient,
    pub(super) namespace: Option<String>,
    pub(super) samples: Mutex<Samples>,
    /// The health of the sources; null until they were read.
    sources: Mutex<Value>,
    feed: Arc<Feed>,
    has_lab: bool,
}

impl WhyPolling {
    fn note(&self) -> Value {
        let (why, remedy) = match self {
            Self::MayNotList => ("you may not list everything".to_owned(), WATCH_PERMISSION_REMEDY),
            Self::MayNotWatch(resource) => (format!("you may not watch {resource}"), WATCH_PERMISSION_REMEDY),
            Self::NoAnswer => (
                "the API server does not answer watches".to_owned(),
                "look for a proxy before it that waits for whole answers",
            ),
        };
        let text = format!("Changes appear late: {why}, so the list is read every 2 s to 1 min.");
        json!({"text": text, "remedy": remedy})
    }
}

impl Poller {
    pub(super) fn new(
        client: ClusterClient,
        namespace: Option<String>,
        feed: Arc<Feed>,
        has_lab: bool,
    ) -> Self {
        Self { client, namespace, samples: Mutex::default(), sources: Mutex::default(), feed, has_lab }
    }

    /// Reads the cluster until the task is ended.
    pub(super) async fn run(&self) {
        if self.client.recording().is_some() {
            return self.show_recording().await;
        }
        // Neither a source that does not answer nor old counts delay the list.
        // The futures are large, and so would be every future that awaits them.
        Box::pin(futures::future::join3(self.read_lists(), self.read_sources(), self.read_earlier())).await;
    }

    /// Reads the counts of the last hour, once.
    async fn read_earlier(&self) {
        self.feed.watched().await;
        let earlier = passes::counts(&self.client, self.namespace.as_deref(), self.client.now()).await;
        self.feed.set_earlier_steps(earlier);
    }

    /// A recording does not change, so it is read once.
    async fn show_recording(&self) {
        self.read_earlier().await;
        self.query_sources().await;
        self.publish_listing(None).await;
    }

    async fn read_lists(&self) {
        let mut why_polling: Option<WhyPolling> = None;
        let mut next_watch = Instant::now();
        loop {
            self.feed.watched().await;
            let began = Instant::now();
            let (kinds, computed) = computing_time(self.publish_listing(why_polling.as_ref())).await;
            if let Some(kinds) = kinds.filter(|_| Instant::now() >= next_watch) {
                why_polling = self.follow(&kinds).await;
                next_watch = Instant::now();
                if why_polling.is_some() {
                    next_watch += WATCH_RETRY_INTERVAL;
                }
                continue;
            }
            // A server that answers slowly has its pauses, too.
            let pause = (computed * PAUSE_FACTOR).max(began.elapsed());
            tokio::time::sleep(pause.clamp(READ_INTERVAL, MAX_RETRY_PAUSE)).await;
        }
    }

    /// Publishes what watches show, until no page is open or the user may not watch; then returns why.
    async fn follow(&self, kinds: &[AutoscalerKind]) -> Option<WhyPolling> {
        let scope = self.namespace.as_deref().map_or(Scope::All, Scope::Namespace);
        let follower = Follower::start(self.client.kube_client(), kinds, scope);
        tokio::select! {
            why = self.publish_changes(&follower) => why,
            () = follower.read_decisions(&self.client, scope) => None,
        }
    }

    async fn publish_changes(&self, follower: &Follower) -> Option<WhyPolling> {
        let began = Instant::now();
        while !follower.is_complete() {
            if let Some(resource) = follower.refused() {
                return Some(WhyPolling::MayNotWatch(resource));
            }
            if began.elapsed() >= SYNC_TIMEOUT {
                if follower.is_listed() {
                    break;
                }
                return Some(WhyPolling::NoAnswer);
            }
            tokio::time::sleep(SYNC_INTERVAL).await;
        }
        let (mut last_watched, mut last_sweep) = (Instant::now(), None);
        let mut triggers = Vec::new();
        loop {
            if let Some(resource) = follower.refused() {
                return Some(WhyPolling::MayNotWatch(resource));
            }
            if self.feed.is_watched() {
                last_watched = Instant::now();
            } else if last_watched.elapsed() >= IDLE_WATCH_TIMEOUT {
                return None;
            }
            let computing = Instant::now();
            let is_first = last_sweep.is_none();
            if last_sweep.is_none_or(|at: Instant| at.elapsed() >= SWEEP_INTERVAL) {
                last_sweep = Some(computing);
                let is_connected = follower.is_connected();
                let mut store = follower.store();
                store.find_silent(self.client.now());
                if is_connected {
                    store.drop_early();
                }
                triggers = sources::triggers(store.records_with_triggers());
            }
            self.publish(follower, &triggers, is_first);
            let pause = computing.elapsed() * PAUSE_FACTOR;
            tokio::time::sleep(pause.clamp(MIN_TURN_PAUSE, MAX_TURN_PAUSE)).await;
            follower.wait_for_passes(TURN_INTERVAL).await;
        }
    }

    /// Publishes what changed; the first time, everything.
    fn publish(&self, follower: &Follower, triggers: &[Value], is_first: bool) {
        let now = self.client.now();
        let at = now.as_millisecond() as f64 / 1000.0;
        let mut samples = self.samples.locked();
        let change = follower.store().take(now, |entry| samples.change(at, entry));
        samples.hold_until(at);
        for id in &change.removed {
            samples.forget(id);
        }
        drop(samples);
        let mut frame = self.frame(triggers);
        frame.push(("notes", Value::from(follower.notes())));
        frame.extend(change.problems.map(|problems| ("problems", problems)));
        if is_first {
            self.feed.publish(at, change.rows, frame);
        } else {
            self.feed.change(at, change.rows, change.removed, frame);
        }
    }

    async fn read_sources(&self) {
        loop {
            self.feed.watched().await;
            self.query_sources().await;
            tokio::time::sleep(SOURCES_INTERVAL).await;
        }
    }

    async fn query_sources(&self) {
        let found = sources::read(&self.client).await;
        *self.sources.locked() = found;
    }

    /// The fields of a publication other than the list.
    fn frame(&self, triggers: &[Value]) -> Vec<(&'static str, Value)> {
        let mut sources = self.sources.locked().clone();
        if let Some(sources) = sources.as_array_mut() {
            sources.extend_from_slice(triggers);
        }
        vec![
            ("cluster", json!(self.client.origin())),
            ("version", json!(concat!("plimsoll ", env!("CARGO_PKG_VERSION")))),
            ("lab", json!(self.has_lab)),
            ("recording", json!(self.client.recording().is_some())),
            ("sources", sources),
        ]
    }

    /// Reads the cluster once and publishes what there is, and why it is not watched, if so. Returns the kinds that can be watched, if
    /// that shows as much.
    async fn publish_listing(&self, why_polling: Option<&WhyPolling>) -> Option<Vec<AutoscalerKind>> {
        let read = Listing::read(&self.client, self.namespace.as_deref()).await;
        let now = self.client.now();
        let at = now.as_millisecond() as f64 / 1000.0;
        match read {
            Ok(mut listing) => {
                let entries = join(std::mem::take(&mut listing.objects), &mut listing.records);
                let records = entries.iter().filter_map(|entry| entry.record.as_ref());
                let mut frame = self.frame(&sources::triggers(records));
                let overview = rows::overview(&entries, listing.unavailable.as_ref(), now);
                let all = rows::rows(&entries, &overview);
                listing.notes.extend(listing.unavailable.as_ref().map(without_decisions));
                let may_not_list = WhyPolling::MayNotList;
                let partial = listing.is_partial.then_some(&may_not_list);
                listing.notes.extend(why_polling.or(partial).map(WhyPolling::note));
                if let Some(RecordingSummary { from, until, .. }) = self.client.recording() {
                    let text = format!("This is a recording from {from} to {until}; nothing in it is live.");
                    listing.notes.insert(0, json!({"text": text, "remedy": ""}));
                }
                frame.push(("problems", rows::problems(&entries, &overview)));
                frame.push(("notes", Value::from(listing.notes)));
                self.samples.locked().add(at, &entries);
                self.feed.publish(at, all, frame);
                (!listing.is_partial).then_some(listing.kinds)
            }
            // The last list stays, with the reason.
            Err(error) => {
                let mut frame = self.frame(&[]);
                let remedy = "the console tries again; `plimsoll get -A` shows the same error in full";
                frame.push(("notes", json!([{"text": error.to_string(), "remedy": remedy}])));
                self.feed.publish_frame(at, frame);
                None
            }
        }
    }
}

/// The result of a future, and how long it computed, without the time in which it waited.
async fn computing_time<T>(work: impl Future<Output = T>) -> (T, Duration) {
    let mut work = std::pin::pin!(work);
    let mut computed = Duration::ZERO;
    let result = std::future::poll_fn(|context| {
        let began = Instant::now();
        let state = work.as_mut().poll(context);
        computed += began.elapsed();
        state
    })
    .await;
    (result, computed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn waiting_is_not_computing() {
        assert_eq!(computing_time(tokio::time::sleep(MAX_RETRY_PAUSE)).await, ((), Duration::ZERO));
    }
}
