//! Polls lists and decisions into the feed while somebody looks.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;
use web_console::Feed;

use super::listing::Listing;
use super::samples::Samples;
use super::{passes, rows, sources};
use crate::commands::get::join;
use crate::live::ClusterClient;
use crate::live::cluster_client::RecordingSummary;

/// How often the cluster is read.
const READ_INTERVAL: Duration = Duration::from_secs(2);
/// A read is followed by a pause of this many times the time that it computed, so that an open page takes at most a hundredth of a core.
const PAUSE_FACTOR: u32 = 100;
/// The longest pause, also in a cluster of many thousands.
const MAX_PAUSE: Duration = Duration::from_mins(1);
/// How long the list waits for the counts of the last hour.
const EARLIER_COUNTS_TIMEOUT: Duration = Duration::from_secs(2);
/// How often sources are asked.
const SOURCES_INTERVAL: Duration = Duration::from_secs(30);

/// Reads the cluster.
pub(super) struct Poller {
    pub(super) site: ClusterClient,
    pub(super) namespace: Option<String>,
    pub(super) samples: Mutex<Samples>,
    /// What the sources said; null until they were asked.
    sources: Mutex<Value>,
    feed: Arc<Feed>,
    has_lab: bool,
}

impl Poller {
    pub(super) fn new(
        site: ClusterClient,
        namespace: Option<String>,
        feed: Arc<Feed>,
        has_lab: bool,
    ) -> Self {
        Self { site, namespace, samples: Mutex::default(), sources: Mutex::default(), feed, has_lab }
    }

    /// Reads the cluster until the task is ended.
    pub(super) async fn run(&self) {
        if self.site.recording().is_some() {
            return self.show_recording().await;
        }
        // A source that does not answer must not delay the list.
        futures::future::join(self.read_lists(), self.read_sources()).await;
    }

    /// A recording does not change, so it is read once.
    async fn show_recording(&self) {
        self.feed.watched().await;
        let earlier = passes::counts(&self.site, self.namespace.as_deref(), self.site.now()).await;
        self.feed.set_earlier_steps(earlier);
        self.ask_sources().await;
        self.look().await;
    }

    async fn read_lists(&self) {
        self.feed.watched().await;
        let earlier = passes::counts(&self.site, self.namespace.as_deref(), self.site.now());
        // Without them, the list begins with the present counts.
        if let Ok(earlier) = tokio::time::timeout(EARLIER_COUNTS_TIMEOUT, earlier).await {
            self.feed.set_earlier_steps(earlier);
        }
        loop {
            self.feed.watched().await;
            let began = Instant::now();
            let computed = computing_time(self.look()).await;
            // A server that answers slowly has its pauses, too.
            let pause = (computed * PAUSE_FACTOR).max(began.elapsed());
            tokio::time::sleep(pause.clamp(READ_INTERVAL, MAX_PAUSE)).await;
        }
    }

    async fn read_sources(&self) {
        loop {
            self.feed.watched().await;
            self.ask_sources().await;
            tokio::time::sleep(SOURCES_INTERVAL).await;
        }
    }

    async fn ask_sources(&self) {
        let found = sources::read(&self.site).await;
        *self.sources.lock().unwrap_or_else(PoisonError::into_inner) = found;
    }

    /// Reads the cluster once and publishes what there is.
    async fn look(&self) {
        let read = Listing::read(&self.site, self.namespace.as_deref()).await;
        let now = self.site.now();
        let at = now.as_millisecond() as f64 / 1000.0;
        let sources = self.sources.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut frame = vec![
            ("cluster", json!(self.site.origin())),
            ("version", json!(concat!("plimsoll ", env!("CARGO_PKG_VERSION")))),
            ("lab", json!(self.has_lab)),
            ("recording", json!(self.site.recording().is_some())),
            ("sources", sources),
        ];
        match read {
            Ok(mut listing) => {
                let entries = join(std::mem::take(&mut listing.objects), &mut listing.records);
                let overview = rows::overview(&entries, listing.unavailable.as_ref(), now);
                let all = rows::rows(&entries, &overview);
                if let Some(why) = &listing.unavailable {
                    let text = format!("decisions cannot be read, so conditions are shown: {}", why.cause);
                    listing.notes.push(json!({"text": text, "remedy": why.remedy}));
                }
                if let Some(RecordingSummary { from, until, .. }) = self.site.recording() {
                    let text = format!("This is a recording from {from} to {until}; nothing in it is live.");
                    listing.notes.insert(0, json!({"text": text, "remedy": ""}));
                }
                frame.push(("problems", rows::problems(&entries, &overview)));
                frame.push(("notes", Value::from(listing.notes)));
                self.samples.lock().unwrap_or_else(PoisonError::into_inner).add(at, &entries);
                self.feed.publish(at, all, frame);
            }
            // The last list stays, with the reason.
            Err(trouble) => {
                let remedy = "the console tries again; `plimsoll get -A` shows the same error in full";
                frame.push(("notes", json!([{"text": trouble.to_string(), "remedy": remedy}])));
                self.feed.publish_frame(at, frame);
            }
        }
    }
}

/// How long a future computed until it was done, without the time in which it waited.
async fn computing_time(work: impl Future<Output = ()>) -> Duration {
    let mut work = std::pin::pin!(work);
    let mut computed = Duration::ZERO;
    std::future::poll_fn(|context| {
        let began = Instant::now();
        let state = work.as_mut().poll(context);
        computed += began.elapsed();
        state
    })
    .await;
    computed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn waiting_is_not_computing() {
        assert_eq!(computing_time(tokio::time::sleep(MAX_PAUSE)).await, Duration::ZERO);
    }
}
