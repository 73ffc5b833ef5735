//! Records Kubernetes events, with the aggregation and limits of client-go (docs/spec/hpa.md Appendix D).
//!
//! ```text
//! record ─► queue of 10,000 ─► correlate ─► body ─► deliver, up to 12 times, 8 objects at once
//! ```

mod body;
mod correlate;
mod deliver;
mod lru;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use engine::Event;
use jiff::Timestamp;
use kube::Client;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, timeout};

use crate::Clock;

/// How many events may wait: after a restart there may be one for every object. Fewer in tests, which fill the queue.
const MAX_QUEUED_EVENTS: usize = if cfg!(test) { 1000 } else { 10_000 };

/// The object an event is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectReference {
    /// `autoscaling/v2`.
    pub api_version: &'static str,
    /// `HorizontalPodAutoscaler`.
    pub kind: &'static str,
    /// Namespace; empty for a cluster-scoped object, whose events are in `default`.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// Unique id.
    pub uid: String,
    /// Version when the event happened.
    pub resource_version: String,
}

/// Counts of events by outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EventCounts {
    /// Created.
    pub created: u64,
    /// Counted in an existing event.
    pub patched: u64,
    /// Dropped because the queue was full.
    pub overflowed: u64,
    /// Not sent because of the rate limit or the pause of the recorder; counted in the next event that is sent.
    pub held_back: u64,
    /// Dropped because the server refused them.
    pub refused: u64,
    /// Dropped because the server could not be reached for too long.
    pub given_up: u64,
}

/// Annotations of an event.
pub type EventAnnotations = Arc<BTreeMap<&'static str, String>>;

/// Records events, which are sent in the background. Recording never blocks and never fails.
#[derive(Clone, Debug)]
pub struct EventRecorder {
    component: &'static str,
    /// A repeated event is sent again no sooner than this.
    pause: Duration,
    annotations: EventAnnotations,
    clock: Clock,
    queue: mpsc::Sender<RecordedEvent>,
    shared: Arc<EventCounters>,
}

/// An event as it was recorded.
#[derive(Clone, Debug)]
struct RecordedEvent {
    about: ObjectReference,
    component: &'static str,
    /// A repeated event is sent again no sooner than this; until then it is only counted.
    pause: Duration,
    event: Event,
    /// The `action` of an event of `events.k8s.io`, which has times in microseconds.
    action: Option<String>,
    annotations: EventAnnotations,
    /// The wall-clock time that is written.
    at: Timestamp,
    /// The monotonic time that limits use.
    now: Instant,
}

/// Counters shared by recorder and delivery.
#[derive(Debug, Default)]
struct EventCounters {
    accepted: AtomicU64,
    /// How many accepted events are delivered or dropped.
    settled: watch::Sender<u64>,
    created: AtomicU64,
    patched: AtomicU64,
    overflowed: AtomicU64,
    held_back: AtomicU64,
    refused: AtomicU64,
    given_up: AtomicU64,
}

impl EventRecorder {
    /// A recorder with the source `component`; `host` is empty, as in Kubernetes.
    pub fn start(client: Client, component: &'static str, clock: Clock) -> Self {
        let (queue, waiting) = mpsc::channel(MAX_QUEUED_EVENTS);
        let shared = Arc::new(EventCounters::default());
        tokio::spawn(deliver::run(client, waiting, Arc::clone(&shared)));
        let annotations = EventAnnotations::default();
        Self { component, pause: Duration::ZERO, annotations, clock, queue, shared }
    }

    /// A recorder of another component that shares queue, correlator and counts.
    pub fn with_component(&self, component: &'static str) -> Self {
        Self { component, ..self.clone() }
    }

    /// This recorder with a minimum time between two sends of the same event. All occurrences are counted.
    pub fn with_pause(self, pause: Duration) -> Self {
        Self { pause, ..self }
    }

    /// This recorder with annotations for its events.
    pub fn with_annotations(&self, annotations: BTreeMap<&'static str, String>) -> Self {
        Self { annotations: Arc::new(annotations), ..self.clone() }
    }

    /// Records an event.
    pub fn record(&self, about: &ObjectReference, event: &Event) {
        self.enqueue(about, event, None);
    }

    /// Records an event of `events.k8s.io` with an action; a message that is too long is cut.
    pub fn record_action(&self, about: &ObjectReference, event: &Event, action: &str) {
        self.enqueue(about, event, Some(action.to_owned()));
    }

    fn enqueue(&self, about: &ObjectReference, event: &Event, action: Option<String>) {
        let recorded = RecordedEvent {
            about: about.clone(),
            component: self.component,
            pause: self.pause,
            event: event.clone(),
            action,
            annotations: Arc::clone(&self.annotations),
            at: self.clock.now(),
            now: Instant::now(),
        };
        // Counted before it is queued, so that a later flush waits for it.
        self.shared.accepted.fetch_add(1, Ordering::Relaxed);
        if self.queue.try_send(recorded).is_err() {
            self.shared.settle();
            let before = self.shared.overflowed.fetch_add(1, Ordering::Relaxed);
            if before.is_multiple_of(MAX_QUEUED_EVENTS as u64) {
                tracing::warn!(
                    dropped = before + 1,
                    "too many events wait to be delivered; dropping new ones"
                );
            }
        }
    }

    /// Waits until all events recorded so far are delivered or dropped, but no longer than `limit`.
    pub async fn flush(&self, limit: Duration) {
        let accepted = self.shared.accepted.load(Ordering::Relaxed);
        let mut settled = self.shared.settled.subscribe();
        // A timeout leaves events undelivered, which the caller accepts.
        let _ = timeout(limit, settled.wait_for(|settled| *settled >= accepted)).await;
    }

    /// Counts of events by outcome.
    pub fn counts(&self) -> EventCounts {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let EventCounters { created, patched, overflowed, held_back, refused, given_up, .. } = &*self.shared;
        EventCounts {
            created: read(created),
            patched: read(patched),
            overflowed: read(overflowed),
            held_back: read(held_back),
            refused: read(refused),
            given_up: read(given_up),
        }
    }
}

impl EventCounters {
    fn settle(&self) {
        self.settled.send_modify(|settled| *settled += 1);
    }
}
