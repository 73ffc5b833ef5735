//! Delivery of events: in order for each object, several objects at the same time.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::stream::{FuturesUnordered, StreamExt as _};
use http::Method;
use kube::Client;
use locks::MutexExt as _;
use tokio::sync::mpsc;
use tokio::time::sleep;

use super::correlate::{Correlator, OutgoingEvent};
use super::{EventCounters, ObjectReference, RecordedEvent, body};
use crate::random;
use crate::request::{ApiError, Request, below, send, within};

/// How often the delivery of an event is tried. As in client-go, these attempts come above the retries of each request; a request
/// and its retries together end at [`REQUEST_DEADLINE`].
const MAX_DELIVERY_ATTEMPTS: u32 = 12;

/// Time between two attempts; before the second, a random part of it, so that many processes do not retry at once.
const ATTEMPT_INTERVAL: Duration = Duration::from_secs(10);

/// The deadline of one request, retries included.
const REQUEST_DEADLINE: Duration = Duration::from_secs(30);

/// How many events are delivered at the same time.
const MAX_CONCURRENT_DELIVERIES: usize = 8;

/// How many events may wait for an earlier event of their object. Beyond that, an event that cannot be delivered delays the
/// events of other objects.
const MAX_UNDELIVERED_EVENTS: usize = 512;

/// Delivers events until the channel is closed and all are delivered.
pub(super) async fn run(
    client: Client,
    mut waiting: mpsc::Receiver<RecordedEvent>,
    shared: Arc<EventCounters>,
) {
    let mut correlator = Correlator::new();
    let events = EventClient { client, last_refusal: Mutex::default() };
    let mut under_way = FuturesUnordered::new();
    let mut queue = DeliveryQueue::default();
    let mut is_open = true;
    while is_open || !queue.is_empty() || !under_way.is_empty() {
        while under_way.len() < MAX_CONCURRENT_DELIVERIES
            && let Some(event) = queue.next()
        {
            let events = &events;
            under_way.push(async move {
                let outcome = events.deliver(&event).await;
                (event.about, outcome)
            });
        }
        tokio::select! {
            Some((about, outcome)) = under_way.next() => {
                queue.done(&about);
                outcome.counter(&shared).fetch_add(1, Ordering::Relaxed);
                shared.settle();
            }
            recorded = waiting.recv(), if is_open && under_way.len() < MAX_CONCURRENT_DELIVERIES && queue.len() < MAX_UNDELIVERED_EVENTS => match recorded {
                None => is_open = false,
                Some(recorded) => match correlator.observe(recorded) {
                    Some(event) => queue.add(event),
                    None => {
                        shared.held_back.fetch_add(1, Ordering::Relaxed);
                        shared.settle();
                    }
                },
            },
        }
    }
}

/// Events to deliver, in the order of recording. Never two of one object at the same time: a PATCH of a count must follow the
/// POST of its event.
#[derive(Debug, Default)]
struct DeliveryQueue {
    events: VecDeque<OutgoingEvent>,
    /// Objects with an event under way; at most `MAX_CONCURRENT_DELIVERIES`.
    busy: Vec<ObjectReference>,
}

impl DeliveryQueue {
    fn len(&self) -> usize {
        self.events.len()
    }

    fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    fn add(&mut self, event: OutgoingEvent) {
        self.events.push_back(event);
    }

    /// Takes the first event whose object has none under way, and marks the object as busy.
    fn next(&mut self) -> Option<OutgoingEvent> {
        let is_free = |event: &OutgoingEvent| !self.busy.iter().any(|about| is_same(about, &event.about));
        let place = self.events.iter().position(is_free)?;
        let event = self.events.remove(place)?;
        self.busy.push(event.about.clone());
        Some(event)
    }

    /// Marks an object as no longer busy.
    fn done(&mut self, about: &ObjectReference) {
        self.busy.retain(|own| !is_same(own, about));
    }
}

/// Whether both refer to the same object, regardless of its version.
fn is_same(one: &ObjectReference, other: &ObjectReference) -> bool {
    (one.kind, &one.namespace, &one.name, &one.uid) == (other.kind, &other.namespace, &other.name, &other.uid)
}

/// How the delivery of an event ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DeliveryOutcome {
    Created,
    Patched,
    Refused,
    GivenUp,
}

impl DeliveryOutcome {
    fn counter(self, shared: &EventCounters) -> &AtomicU64 {
        match self {
            Self::Created => &shared.created,
            Self::Patched => &shared.patched,
            Self::Refused => &shared.refused,
            Self::GivenUp => &shared.given_up,
        }
    }
}

/// Sends events to the API server.
struct EventClient {
    client: Client,
    /// The code of the last refusal, none if an event was accepted since. Repeated refusals are not logged again.
    last_refusal: Mutex<Option<u16>>,
}

impl EventClient {
    async fn deliver(&self, event: &OutgoingEvent) -> DeliveryOutcome {
        for attempt in 1..=MAX_DELIVERY_ATTEMPTS {
            let error = match self.attempt(event).await {
                Ok(outcome) => {
                    self.replace_last_refusal(None);
                    return outcome;
                }
                Err(error) => error,
            };
            if error.code == Some(409) && attempt > 1 {
                // The event exists: an attempt whose response was lost has created it.
                return DeliveryOutcome::Created;
            }
            if !is_transient(&error) {
                self.log_refusal(event, &error);
                return DeliveryOutcome::Refused;
            }
            match attempt {
                1 => {
                    tracing::warn!(%error, event = %event.name, "failed to deliver an event; trying again");
                    sleep(ATTEMPT_INTERVAL.mul_f64(random::fraction())).await;
                }
                MAX_DELIVERY_ATTEMPTS => {
                    tracing::warn!(%error, event = %event.name, "gave up delivering an event");
                }
                _ => sleep(ATTEMPT_INTERVAL).await,
            }
        }
        DeliveryOutcome::GivenUp
    }

    /// Patches the count of an event that was sent before; if it no longer exists, creates it with its count.
    async fn attempt(&self, event: &OutgoingEvent) -> Result<DeliveryOutcome, ApiError> {
        let all = within("/api/v1/events", body::namespace(event));
        if event.count > 1 {
            let one = below(&all, [event.name.as_str()]);
            let patch = ("application/strategic-merge-patch+json", body::patch(event));
            match send(&self.client, request(Method::PATCH, one, event, patch)).await {
                Err(error) if error.is_not_found() => {}
                answer => return answer.map(|_| DeliveryOutcome::Patched),
            }
        }
        let create = ("application/json", body::create(event));
        send(&self.client, request(Method::POST, all, event, create)).await.map(|_| DeliveryOutcome::Created)
    }

    fn log_refusal(&self, event: &OutgoingEvent, error: &ApiError) {
        let ObjectReference { kind, namespace, name, .. } = &event.about;
        if self.replace_last_refusal(error.code) == error.code {
            tracing::debug!(%error, kind, namespace, name, "the server refused an event");
        } else {
            tracing::warn!(%error, kind, namespace, name, "the server refused an event; it is dropped");
        }
    }

    fn replace_last_refusal(&self, code: Option<u16>) -> Option<u16> {
        std::mem::replace(&mut *self.last_refusal.locked(), code)
    }
}

fn request(method: Method, uri: String, event: &OutgoingEvent, body: (&'static str, Vec<u8>)) -> Request {
    let request = Request::get(uri, "events", REQUEST_DEADLINE).named(&event.name);
    Request { method, body: Some(body), ..request }
}

/// Whether a retry may succeed: there was no response, or one that is not about the event.
fn is_transient(error: &ApiError) -> bool {
    error.code.is_none_or(|code| code == 429 || code >= 500)
}
