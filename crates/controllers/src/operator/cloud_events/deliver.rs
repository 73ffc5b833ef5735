//! Delivers events to all destinations concurrently.

use std::sync::Arc;
use std::time::Duration;

use api::keda::{CloudEventSource, Condition, ConditionStatus, EVENTING_GROUP, types};
use http::{HeaderName, HeaderValue, Method};
use serde_json::{Value, json};
use sources::http::{Endpoint, HttpClient, HttpRequest};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::event::{CloudEvent, wants};
use super::{DeliveryState, DestinationId};
use crate::operator::leader_client::ResourcePath;

/// Attempts to deliver one event to one destination.
const MAX_ATTEMPTS: u32 = 6;
/// Delay before the second attempt; it doubles with each further one.
const MIN_RETRY_DELAY: Duration = Duration::from_millis(100);
/// Time limit of one attempt.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum size of a response, which is ignored.
const MAX_RESPONSE_BYTES: usize = 64 << 10;

/// Delivers queued events until the sender is gone.
pub(super) async fn run(mut waiting: mpsc::Receiver<CloudEvent>, shared: Arc<DeliveryState>) {
    while let Some(message) = waiting.recv().await {
        let now = Instant::now();
        let wanted: Vec<(DestinationId, Arc<CloudEventSource>)> = {
            let held = shared.destinations();
            let wanting = held.iter().filter(|(_, destination)| {
                destination.is_due(now, shared.compat)
                    && wants(&destination.source.spec.event_subscription, message.type_)
            });
            wanting.map(|(which, destination)| (which.clone(), Arc::clone(&destination.source))).collect()
        };
        let sent = wanted.into_iter().map(|(which, source)| deliver(&shared, &message, which, source));
        futures::future::join_all(sent).await;
    }
}

async fn deliver(
    shared: &Arc<DeliveryState>,
    message: &CloudEvent,
    which: DestinationId,
    source: Arc<CloudEventSource>,
) {
    let mut pause = MIN_RETRY_DELAY;
    let mut failure = String::new();
    let rested =
        shared.destinations().get(&which).is_some_and(|destination| destination.failing_since.is_some());
    // A destination that failed before has one attempt.
    let attempts = if rested { 1 } else { MAX_ATTEMPTS };
    for attempt in 1..=attempts {
        match send(shared, message, &source).await {
            Ok(()) => {
                if let Some(destination) = shared.destinations().get_mut(&which) {
                    destination.emitted += 1;
                    destination.failing_since = None;
                }
                if rested {
                    shared.say(which, &source, true);
                }
                return;
            }
            Err(error) => failure = error,
        }
        if attempt < attempts {
            tokio::time::sleep(pause).await;
            pause *= 2;
        }
    }
    tracing::warn!(destination = %which.name.name, failure, "a destination of CloudEvents takes none and is left alone");
    if let Some(destination) = shared.destinations().get_mut(&which) {
        destination.failed += 1;
        destination.failing_since = Some(Instant::now());
    }
    shared.say(which, &source, false);
}

async fn send(shared: &DeliveryState, message: &CloudEvent, source: &CloudEventSource) -> Result<(), String> {
    let uri = source.spec.destination.http.as_ref().map(|http| http.uri.clone()).unwrap_or_default();
    let cluster = match source.spec.cluster_name.as_str() {
        "" => &shared.cluster,
        own => own,
    };
    let client =
        HttpClient::new(Endpoint { url: uri, ..Endpoint::default() }).map_err(|error| error.to_string())?;
    let mut ask = HttpRequest::new(Method::POST, "")
        .body(message.body())
        .timeout(ATTEMPT_TIMEOUT)
        .max_bytes(MAX_RESPONSE_BYTES);
    for (name, value) in message.headers(cluster, &shared.namespace) {
        let value = HeaderValue::from_str(&value).map_err(|error| error.to_string())?;
        ask = ask.header(HeaderName::from_static(name), value);
    }
    let answer = client.send(ask).await.map_err(|error| error.to_string())?;
    if answer.status.is_success() { Ok(()) } else { Err(format!("it answered {}", answer.status)) }
}

impl DeliveryState {
    /// Writes into the status of a destination whether events are delivered.
    pub(super) fn say(self: &Arc<Self>, which: DestinationId, source: &CloudEventSource, is_active: bool) {
        let condition = if is_active {
            let message = "Is configured to send events to the configured destination";
            Condition::new(types::ACTIVE, ConditionStatus::True, "CloudEventSourceActive", message)
        } else {
            let message = "Failed to send events to the configured destination";
            Condition::new(types::ACTIVE, ConditionStatus::False, "CloudEventSourceFailed", message)
        };
        if source.status.conditions.get(types::ACTIVE) == Some(&condition) {
            return;
        }
        let shared = Arc::clone(self);
        tokio::spawn(async move {
            let plural = if which.of_cluster { "clustercloudeventsources" } else { "cloudeventsources" };
            let path = ResourcePath {
                group: EVENTING_GROUP,
                version: "v1alpha1",
                plural,
                namespace: &which.name.namespace,
                name: &which.name.name,
            };
            let patch = json!({"status": {"conditions": [condition]}});
            if let Err(error) = shared.client.merge::<Value>(path, "status", &patch).await {
                tracing::debug!(destination = %which.name.name, %error, "failed to write a status");
            }
        });
    }
}
