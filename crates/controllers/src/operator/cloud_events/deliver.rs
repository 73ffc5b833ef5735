//! Delivers the events of one destination in turn.

use std::sync::Arc;
use std::time::Duration;

use api::keda::{CloudEventSource, Condition, ConditionStatus, Destination, types};
use api::text::truncated;
use http::header::{CONTENT_TYPE, InvalidHeaderValue};
use http::{HeaderName, HeaderValue, Method, StatusCode};
use runtime::reconcile_loop::PanicCounter;
use runtime::{ReconcileResult, Reconciles};
use sources::http::{Endpoint, HttpClient, HttpError, HttpRequest};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::event::CloudEvent;
use super::event_grid::{self, TopicError, TopicHeader};
use super::{DeliveryState, DestinationId};
use crate::operator::destination_status::write_destination;
use crate::operator::effect::DestinationEffect;

/// Attempts to deliver one event to one destination.
const MAX_DELIVERY_ATTEMPTS: u32 = 6;
/// Delay before the second attempt; it doubles with each further one.
const MIN_RETRY_DELAY: Duration = Duration::from_millis(100);
/// Time limit of one attempt.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum size of a response, whose body is ignored.
const MAX_RESPONSE_BYTES: usize = 64 << 10;
/// How long the credentials of a topic are used before they are read again.
const CREDENTIALS_MAX_AGE: Duration = Duration::from_mins(1);
/// Characters of a failure in a condition.
const MAX_FAILURE_CHARS: usize = 300;

/// Why an event was not delivered.
#[derive(Debug, thiserror::Error)]
pub(super) enum DeliveryError {
    /// The request failed.
    #[error(transparent)]
    Http(#[from] HttpError),
    /// A header has characters that cannot be sent.
    #[error(transparent)]
    Header(#[from] InvalidHeaderValue),
    /// There are no credentials for a topic.
    #[error(transparent)]
    Topic(#[from] TopicError),
    /// The destination answered with this status.
    #[error("it answered {0}")]
    Refused(StatusCode),
}

impl DeliveryError {
    /// Whether another attempt fails in the same way until an object is edited.
    fn is_permanent(&self) -> bool {
        match self {
            Self::Topic(error) => error.is_permanent(),
            Self::Header(_) => true,
            Self::Http(_) | Self::Refused(_) => false,
        }
    }
}

/// Delivers the queued events of one destination until it is gone. An event whose delivery panics is lost; those that follow are
/// delivered.
pub(super) async fn run(
    id: DestinationId,
    mut waiting: mpsc::Receiver<Arc<CloudEvent>>,
    shared: Arc<DeliveryState>,
    panics: PanicCounter,
) {
    let mut deliveries = Reconciles::new(panics);
    while let Some(message) = waiting.recv().await {
        let Some(source) = shared.due_source(&id) else { continue };
        let delivery = deliver(Arc::clone(&shared), message, id.clone(), source);
        deliveries.start((), delivery);
        if let Some(((), ReconcileResult::Panicked { message, .. })) = deliveries.next().await {
            tracing::error!(error = message, "the delivery of a CloudEvent panicked");
        }
    }
}

async fn deliver(
    shared: Arc<DeliveryState>,
    message: Arc<CloudEvent>,
    id: DestinationId,
    source: Arc<CloudEventSource>,
) {
    let mut delay = MIN_RETRY_DELAY;
    let mut failure = String::new();
    let was_failing =
        shared.destinations().get(&id).is_some_and(|destination| destination.failing_since.is_some());
    // A destination that failed before has one attempt.
    let attempts = if was_failing { 1 } else { MAX_DELIVERY_ATTEMPTS };
    for attempt in 1..=attempts {
        match send(&shared, &message, &id, &source).await {
            Ok(()) => {
                if let Some(destination) = shared.destinations().get_mut(&id) {
                    destination.emitted += 1;
                    destination.failing_since = None;
                }
                if was_failing {
                    shared.write_status(id, &source, None);
                }
                return;
            }
            Err(error) => {
                failure = error.to_string();
                if attempt == attempts || error.is_permanent() {
                    break;
                }
            }
        }
        tokio::time::sleep(delay).await;
        delay *= 2;
    }
    tracing::warn!(destination = %id.name.name, failure, "failed to deliver a CloudEvent; the destination is skipped for a while");
    if let Some(destination) = shared.destinations().get_mut(&id) {
        destination.failed += 1;
        destination.failing_since = Some(Instant::now());
    }
    shared.write_status(id, &source, Some(&failure));
}

pub(super) async fn send(
    shared: &DeliveryState,
    message: &CloudEvent,
    id: &DestinationId,
    source: &CloudEventSource,
) -> Result<(), DeliveryError> {
    let (url, request) = request(shared, message, id, source).await?;
    let _permit = match shared.deliveries.current() {
        // The semaphore is never closed.
        Some(permits) => permits.acquire_owned().await.ok(),
        None => None,
    };
    let endpoint = Endpoint { url, ..Endpoint::default() };
    let client = HttpClient::with_proxies(endpoint, shared.dialer.clone(), &shared.proxies)?;
    let response = client.send(request.timeout(ATTEMPT_TIMEOUT).max_bytes(MAX_RESPONSE_BYTES)).await?;
    if response.status.is_success() {
        return Ok(());
    }
    if matches!(response.status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN)
        && let Some(destination) = shared.destinations().get_mut(id)
    {
        destination.credentials = None;
    }
    Err(DeliveryError::Refused(response.status))
}

/// The URL of the destination and the request that delivers an event to it.
async fn request(
    shared: &DeliveryState,
    message: &CloudEvent,
    id: &DestinationId,
    source: &CloudEventSource,
) -> Result<(String, HttpRequest), DeliveryError> {
    let cluster = match source.spec.cluster_name.as_str() {
        "" => &shared.cluster,
        own => own,
    };
    let Destination { http, azure_event_grid_topic: topic } = &source.spec.destination;
    if let (None, Some(topic)) = (http, topic) {
        let TopicHeader { name, value } = shared.credentials(id, source, &topic.endpoint).await?;
        let request = HttpRequest::new(Method::POST, event_grid::QUERY)
            .body(message.batch(cluster, &shared.namespace))
            .header(CONTENT_TYPE, HeaderValue::from_static(event_grid::CONTENT_TYPE))
            .header(name, value);
        return Ok((topic.endpoint.clone(), request));
    }
    let url = http.as_ref().map(|http| http.uri.clone()).unwrap_or_default();
    let mut request = HttpRequest::new(Method::POST, "").body(message.body());
    for (name, value) in message.headers(cluster, &shared.namespace) {
        request = request.header(HeaderName::from_static(name), HeaderValue::from_str(&value)?);
    }
    Ok((url, request))
}

impl DeliveryState {
    /// The destination, if events are sent to it now; otherwise the event counts as dropped.
    fn due_source(&self, id: &DestinationId) -> Option<Arc<CloudEventSource>> {
        let mut destinations = self.destinations();
        let destination = destinations.get_mut(id)?;
        if destination.is_due(Instant::now(), self.compat) {
            return Some(Arc::clone(&destination.source));
        }
        destination.dropped.skipped += 1;
        None
    }

    /// The credentials of a topic. They are kept for a while, so that a burst of events does not read the Secret for each.
    async fn credentials(
        &self,
        id: &DestinationId,
        source: &CloudEventSource,
        endpoint: &str,
    ) -> Result<TopicHeader, TopicError> {
        // A delivery that began before the source was edited must not send the new credentials to the old endpoint.
        let is_current = |destination: &&super::Destination| destination.source.spec == source.spec;
        let kept = self.destinations().get(id).filter(is_current).and_then(|known| known.credentials.clone());
        if let Some((read, header)) = kept
            && read.elapsed() < CREDENTIALS_MAX_AGE
        {
            return Ok(header);
        }
        let header = self.topics.header(source, endpoint).await?;
        if let Some(destination) = self.destinations().get_mut(id)
            && destination.source.spec == source.spec
        {
            destination.credentials = Some((Instant::now(), header.clone()));
        }
        Ok(header)
    }

    /// Writes into the status of a destination whether events are delivered, or why not.
    pub(super) fn write_status(
        self: &Arc<Self>,
        destination: DestinationId,
        source: &CloudEventSource,
        failure: Option<&str>,
    ) {
        let condition = match failure {
            None => {
                let message = "Is configured to send events to the configured destination";
                Condition::new(types::ACTIVE, ConditionStatus::True, "CloudEventSourceActive", message)
            }
            Some(failure) => {
                let mut message = "Failed to send events to the configured destination".to_owned();
                if !self.compat.is_strict() {
                    message.push_str(": ");
                    message.push_str(&truncated(failure, MAX_FAILURE_CHARS));
                }
                Condition::new(types::ACTIVE, ConditionStatus::False, "CloudEventSourceFailed", message)
            }
        };
        if source.status.conditions.get(types::ACTIVE) == Some(&condition) {
            return;
        }
        let shared = Arc::clone(self);
        tokio::spawn(async move {
            let effect = DestinationEffect { destination, condition };
            if let Err(error) = write_destination(&shared.client, &effect).await {
                tracing::debug!(destination = %effect.destination.name.name, %error, "failed to write a status");
            }
        });
    }
}
