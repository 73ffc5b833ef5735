//! Events, delivered one after the other for each object, and of several objects at once.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, AtomicU64, Ordering};
use std::time::Duration;

use futures::stream::{FuturesUnordered, StreamExt as _};
use http::Method;
use kube::Client;
use tokio::sync::mpsc;
use tokio::time::sleep;

use super::correlate::{Correlator, OutgoingEvent};
use super::{ObjectReference, RecordedEvent, Shared, body};
use crate::lease::random;
use crate::request::{ApiError, Request, send};

/// How often delivery is tried.
const ATTEMPTS: u32 = 12;

/// Time between two attempts; before the second, a random part of it, so that many processes do not come back at once.
const PAUSE: Duration = Duration::from_secs(10);

/// How long one request may take.
const DEADLINE: Duration = Duration::from_secs(30);

/// How many are under way at once.
const TOGETHER: usize = 8;

/// How many may stand aside because another event of their object is under way: only when so many do does one that cannot be
/// delivered hold up other objects.
const ASIDE: usize = 512;

/// Delivers what is told until nobody is left to tell anything.
pub(super) async fn run(client: Client, mut waiting: mpsc::Receiver<RecordedEvent>, shared: Arc<Shared>) {
    let mut correlator = Correlator::new();
    let desk = EventClient { client, refusal: AtomicU16::new(0) };
    let mut under_way = FuturesUnordered::new();
    let mut line = DeliveryQueue::default();
    let mut is_open = true;
    while is_open || !line.is_empty() || !under_way.is_empty() {
        while under_way.len() < TOGETHER
            && let Some(notice) = line.next()
        {
            let desk = &desk;
            under_way.push(async move {
                let outcome = desk.deliver(&notice).await;
                (notice.about, outcome)
            });
        }
        tokio::select! {
            Some((about, outcome)) = under_way.next() => {
                line.done(&about);
                outcome.counter(&shared).fetch_add(1, Ordering::Relaxed);
                shared.settle();
            }
            told = waiting.recv(), if is_open && under_way.len() < TOGETHER && line.len() < ASIDE => match told {
                None => is_open = false,
                Some(told) => match correlator.observe(told) {
                    Some(notice) => line.add(notice),
                    None => {
                        shared.held_back.fetch_add(1, Ordering::Relaxed);
                        shared.settle();
                    }
                },
            },
        }
    }
}

/// Those who are to be delivered, in the order in which they were told. Never two of one object at once: what is counted in an
/// event comes after that event.
#[derive(Debug, Default)]
struct DeliveryQueue {
    aside: VecDeque<OutgoingEvent>,
    /// Whose events are under way; these are few.
    busy: Vec<ObjectReference>,
}

impl DeliveryQueue {
    fn len(&self) -> usize {
        self.aside.len()
    }

    fn is_empty(&self) -> bool {
        self.aside.is_empty()
    }

    fn add(&mut self, notice: OutgoingEvent) {
        self.aside.push_back(notice);
    }

    /// The first one whose object has none under way; it is from now on.
    fn next(&mut self) -> Option<OutgoingEvent> {
        let is_free = |notice: &OutgoingEvent| !self.busy.iter().any(|about| is_same(about, &notice.about));
        let place = self.aside.iter().position(is_free)?;
        let notice = self.aside.remove(place)?;
        self.busy.push(notice.about.clone());
        Some(notice)
    }

    /// One of an object is delivered, or dropped.
    fn done(&mut self, about: &ObjectReference) {
        self.busy.retain(|own| !is_same(own, about));
    }
}

/// Whether both are about the same object, in whichever version.
fn is_same(one: &ObjectReference, other: &ObjectReference) -> bool {
    (one.kind, &one.namespace, &one.name, &one.uid) == (other.kind, &other.namespace, &other.name, &other.uid)
}

/// What became of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DeliveryOutcome {
    Created,
    Patched,
    Refused,
    GivenUp,
}

impl DeliveryOutcome {
    fn counter(self, shared: &Shared) -> &AtomicU64 {
        match self {
            Self::Created => &shared.created,
            Self::Patched => &shared.patched,
            Self::Refused => &shared.refused,
            Self::GivenUp => &shared.given_up,
        }
    }
}

/// Where requests are made.
struct EventClient {
    client: Client,
    /// The last refusal, zero if something was accepted since: the same one is not logged for every event.
    refusal: AtomicU16,
}

impl EventClient {
    async fn deliver(&self, notice: &OutgoingEvent) -> DeliveryOutcome {
        for attempt in 1..=ATTEMPTS {
            let error = match self.attempt(notice).await {
                Ok(outcome) => {
                    self.refusal.store(0, Ordering::Relaxed);
                    return outcome;
                }
                Err(error) => error,
            };
            if error.code == 409 && attempt > 1 {
                // It is there: an attempt whose answer was lost has made it.
                return DeliveryOutcome::Created;
            }
            if !passes(&error) {
                self.log_refusal(notice, &error);
                return DeliveryOutcome::Refused;
            }
            match attempt {
                1 => {
                    tracing::warn!(%error, event = %notice.name, "failed to deliver an event; trying again");
                    sleep(PAUSE.mul_f64(random::unit())).await;
                }
                ATTEMPTS => tracing::warn!(%error, event = %notice.name, "gave up to deliver an event"),
                _ => sleep(PAUSE).await,
            }
        }
        DeliveryOutcome::GivenUp
    }

    /// An event that was told before is counted; if it is no longer there, it is made anew with its count.
    async fn attempt(&self, notice: &OutgoingEvent) -> Result<DeliveryOutcome, ApiError> {
        let all = format!("/api/v1/namespaces/{}/events", body::namespace(notice));
        if notice.count > 1 {
            let one = format!("{all}/{}", notice.name);
            let patch = ("application/strategic-merge-patch+json", body::patch(notice));
            match send(&self.client, request(Method::PATCH, one, notice, patch)).await {
                Err(error) if error.is_not_found() => {}
                answer => return answer.map(|_| DeliveryOutcome::Patched),
            }
        }
        let create = ("application/json", body::create(notice));
        send(&self.client, request(Method::POST, all, notice, create)).await.map(|_| DeliveryOutcome::Created)
    }

    fn log_refusal(&self, notice: &OutgoingEvent, error: &ApiError) {
        let ObjectReference { kind, namespace, name, .. } = &notice.about;
        if self.refusal.swap(error.code, Ordering::Relaxed) == error.code {
            tracing::debug!(%error, kind, namespace, name, "the server refused an event");
        } else {
            tracing::warn!(%error, kind, namespace, name, "the server refused an event; it is dropped");
        }
    }
}

fn request(method: Method, uri: String, notice: &OutgoingEvent, body: (&'static str, Vec<u8>)) -> Request {
    Request {
        method,
        uri,
        resource: "events".to_owned(),
        name: notice.name.clone(),
        body: Some(body),
        deadline: DEADLINE,
    }
}

/// Whether trouble may pass: no answer, or one that is not about the event.
fn passes(error: &ApiError) -> bool {
    error.code == 0 || error.code == 429 || error.code >= 500
}
