//! Events, delivered one after the other.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use http::Method;
use kube::Client;
use tokio::sync::mpsc;
use tokio::time::sleep;

use super::correlate::{Correlator, Notice};
use super::{About, Shared, Told, body};
use crate::lease::chance;
use crate::request::{ApiError, Request, send};

/// How often delivery is tried.
const ATTEMPTS: u32 = 12;

/// Time between two attempts; before the second, a random part of it, so that many processes do not come back at once.
const PAUSE: Duration = Duration::from_secs(10);

/// How long one request may take.
const DEADLINE: Duration = Duration::from_secs(30);

/// Delivers what is told until nobody is left to tell anything.
pub(super) async fn run(client: Client, mut waiting: mpsc::Receiver<Told>, shared: Arc<Shared>) {
    let mut correlator = Correlator::new();
    let mut desk = Desk { client, refusal: None };
    while let Some(told) = waiting.recv().await {
        let counter = match correlator.observe(told) {
            Some(notice) => desk.deliver(&notice).await.counter(&shared),
            None => &shared.held_back,
        };
        counter.fetch_add(1, Ordering::Relaxed);
        shared.settle();
    }
}

/// What became of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Created,
    Patched,
    Refused,
    GivenUp,
}

impl Outcome {
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
struct Desk {
    client: Client,
    /// The last refusal, if nothing was accepted since: the same one is not logged for every event.
    refusal: Option<u16>,
}

impl Desk {
    async fn deliver(&mut self, notice: &Notice) -> Outcome {
        for attempt in 1..=ATTEMPTS {
            let error = match self.attempt(notice).await {
                Ok(outcome) => {
                    self.refusal = None;
                    return outcome;
                }
                Err(error) => error,
            };
            if error.code == 409 && attempt > 1 {
                // It is there: an attempt whose answer was lost has made it.
                return Outcome::Created;
            }
            if !passes(&error) {
                self.log_refusal(notice, &error);
                return Outcome::Refused;
            }
            match attempt {
                1 => {
                    tracing::warn!(%error, event = %notice.name, "failed to deliver an event; trying again");
                    sleep(PAUSE.mul_f64(chance::unit())).await;
                }
                ATTEMPTS => tracing::warn!(%error, event = %notice.name, "gave up to deliver an event"),
                _ => sleep(PAUSE).await,
            }
        }
        Outcome::GivenUp
    }

    /// An event that was told before is counted; if it is no longer there, it is made anew with its count.
    async fn attempt(&self, notice: &Notice) -> Result<Outcome, ApiError> {
        let all = format!("/api/v1/namespaces/{}/events", body::namespace(notice));
        if notice.count > 1 {
            let one = format!("{all}/{}", notice.name);
            let patch = ("application/strategic-merge-patch+json", body::patch(notice));
            match send(&self.client, request(Method::PATCH, one, notice, patch)).await {
                Err(error) if error.is_not_found() => {}
                answer => return answer.map(|_| Outcome::Patched),
            }
        }
        let create = ("application/json", body::create(notice));
        send(&self.client, request(Method::POST, all, notice, create)).await.map(|_| Outcome::Created)
    }

    fn log_refusal(&mut self, notice: &Notice, error: &ApiError) {
        let About { kind, namespace, name, .. } = &notice.about;
        if self.refusal.replace(error.code) == Some(error.code) {
            tracing::debug!(%error, kind, namespace, name, "the server refused an event");
        } else {
            tracing::warn!(%error, kind, namespace, name, "the server refused an event; it is dropped");
        }
    }
}

fn request(method: Method, uri: String, notice: &Notice, body: (&'static str, Vec<u8>)) -> Request {
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
