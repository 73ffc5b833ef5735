//! What is told about an object, with the aggregation and limits of client-go (docs/spec/hpa.md Appendix D).
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

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use engine::Event;
use jiff::Timestamp;
use kube::Client;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, timeout};

use crate::Clock;

/// How many events may wait: a restart has something to tell of every object. Fewer in tests, which fill it.
const QUEUE: usize = if cfg!(test) { 1000 } else { 10_000 };

/// The object an event is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectReference {
    /// `autoscaling/v2`.
    pub api_version: &'static str,
    /// `HorizontalPodAutoscaler`.
    pub kind: &'static str,
    /// Namespace; empty if the object is in none, its events are in `default` then.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// Unique id.
    pub uid: String,
    /// Version when the event happened.
    pub resource_version: String,
}

/// What has become of the events so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EventCounts {
    /// Created.
    pub created: u64,
    /// Counted in an event that was there.
    pub patched: u64,
    /// Dropped because too many were waiting.
    pub overflowed: u64,
    /// Not sent because too much was told about one object, or too soon; still counted in the next that is.
    pub held_back: u64,
    /// Dropped because the server refused them.
    pub refused: u64,
    /// Dropped because the server could not be reached for too long.
    pub given_up: u64,
}

/// Tells events in the background; never waits, never fails.
#[derive(Clone, Debug)]
pub struct EventRecorder {
    component: &'static str,
    /// An event that was told again is sent again no sooner than this.
    pause: Duration,
    clock: Clock,
    queue: mpsc::Sender<RecordedEvent>,
    shared: Arc<Shared>,
}

/// An event, as it was told.
#[derive(Clone, Debug)]
struct RecordedEvent {
    about: ObjectReference,
    component: &'static str,
    /// How long the same is not sent again, but counted.
    pause: Duration,
    event: Event,
    /// What was done: events of the newer form say so, and when, to the microsecond.
    action: Option<String>,
    /// When, for whoever reads it.
    at: Timestamp,
    /// When, by the clock that never jumps.
    now: Instant,
}

/// What recorder and delivery both know.
#[derive(Debug, Default)]
struct Shared {
    accepted: AtomicU64,
    /// How many of those accepted are delivered or dropped.
    settled: watch::Sender<u64>,
    created: AtomicU64,
    patched: AtomicU64,
    overflowed: AtomicU64,
    held_back: AtomicU64,
    refused: AtomicU64,
    given_up: AtomicU64,
}

impl EventRecorder {
    /// `component` is the source of the events, `host` stays empty as in Kubernetes.
    pub fn start(client: Client, component: &'static str, clock: Clock) -> Self {
        let (queue, waiting) = mpsc::channel(QUEUE);
        let shared = Arc::new(Shared::default());
        tokio::spawn(deliver::run(client, waiting, Arc::clone(&shared)));
        Self { component, pause: Duration::ZERO, clock, queue, shared }
    }

    /// The same recorder, with the same queue, memory and counts, that tells in the name of another component.
    pub fn with_component(&self, component: &'static str) -> Self {
        Self { component, ..self.clone() }
    }

    /// The same recorder, which sends what it is told again and again only so often; it is counted all the same.
    pub fn with_pause(self, pause: Duration) -> Self {
        Self { pause, ..self }
    }

    /// Tells an event.
    pub fn record(&self, about: &ObjectReference, event: &Event) {
        self.tell(about, event, None);
    }

    /// Tells an event in the form of `events.k8s.io`: with what was done, and a message that is cut if it is too long.
    pub fn record_action(&self, about: &ObjectReference, event: &Event, action: &str) {
        self.tell(about, event, Some(action.to_owned()));
    }

    fn tell(&self, about: &ObjectReference, event: &Event, action: Option<String>) {
        let told = RecordedEvent {
            about: about.clone(),
            component: self.component,
            pause: self.pause,
            event: event.clone(),
            action,
            at: self.clock.now(),
            now: Instant::now(),
        };
        // Counted before it is sent, so that whoever flushes afterwards waits for it.
        self.shared.accepted.fetch_add(1, Ordering::Relaxed);
        if self.queue.try_send(told).is_err() {
            self.shared.settle();
            let before = self.shared.overflowed.fetch_add(1, Ordering::Relaxed);
            if before.is_multiple_of(QUEUE as u64) {
                tracing::warn!(
                    dropped = before + 1,
                    "too many events wait to be delivered; dropping new ones"
                );
            }
        }
    }

    /// Waits until everything told so far has been delivered or given up, but no longer than `limit`.
    pub async fn flush(&self, limit: Duration) {
        let accepted = self.shared.accepted.load(Ordering::Relaxed);
        let mut settled = self.shared.settled.subscribe();
        // Either way there is nothing left to do.
        let _ = timeout(limit, settled.wait_for(|settled| *settled >= accepted)).await;
    }

    /// What has become of the events so far.
    pub fn counts(&self) -> EventCounts {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let Shared { created, patched, overflowed, held_back, refused, given_up, .. } = &*self.shared;
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

impl Shared {
    fn settle(&self) {
        self.settled.send_modify(|settled| *settled += 1);
    }
}
