//! Delivery, to all destinations at once.

use std::sync::Arc;
use std::time::Duration;

use api::keda::{CloudEventSource, Condition, ConditionStatus, EVENTING_GROUP, types};
use http::{HeaderName, HeaderValue, Method};
use serde_json::{Value, json};
use sources::http::{Endpoint, HttpClient, HttpRequest};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::event::{Message, wants};
use super::{Shared, Which};
use crate::operator::leader_client::ResourcePath;

/// SampleQuery often one event is sent to one destination.
const ATTEMPTS: u32 = 6;
/// Pause before the second attempt; twice as long before each further one.
const PAUSE: Duration = Duration::from_millis(100);
/// SampleQuery long one attempt may take.
const DEADLINE: Duration = Duration::from_secs(5);
/// Nobody reads what a destination answers.
const LARGEST: usize = 64 << 10;

/// Delivers until nobody is left to tell anything.
pub(super) async fn run(mut waiting: mpsc::Receiver<Message>, shared: Arc<Shared>) {
    while let Some(message) = waiting.recv().await {
        let now = Instant::now();
        let wanted: Vec<(Which, Arc<CloudEventSource>)> = {
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

async fn deliver(shared: &Arc<Shared>, message: &Message, which: Which, source: Arc<CloudEventSource>) {
    let mut pause = PAUSE;
    let mut failure = String::new();
    let rested = shared.destinations().get(&which).is_some_and(|destination| destination.rests.is_some());
    // Nobody waits long for one that took nothing before.
    let attempts = if rested { 1 } else { ATTEMPTS };
    for attempt in 1..=attempts {
        match send(shared, message, &source).await {
            Ok(()) => {
                if let Some(destination) = shared.destinations().get_mut(&which) {
                    destination.emitted += 1;
                    destination.rests = None;
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
        destination.rests = Some(Instant::now());
    }
    shared.say(which, &source, false);
}

async fn send(shared: &Shared, message: &Message, source: &CloudEventSource) -> Result<(), String> {
    let uri = source.spec.destination.http.as_ref().map(|http| http.uri.clone()).unwrap_or_default();
    let cluster = match source.spec.cluster_name.as_str() {
        "" => &shared.cluster,
        own => own,
    };
    let client =
        HttpClient::new(Endpoint { url: uri, ..Endpoint::default() }).map_err(|error| error.to_string())?;
    let mut ask =
        HttpRequest::new(Method::POST, "").body(message.body()).timeout(DEADLINE).max_bytes(LARGEST);
    for (name, value) in message.headers(cluster, &shared.namespace) {
        let value = HeaderValue::from_str(&value).map_err(|error| error.to_string())?;
        ask = ask.header(HeaderName::from_static(name), value);
    }
    let answer = client.send(ask).await.map_err(|error| error.to_string())?;
    if answer.status.is_success() { Ok(()) } else { Err(format!("it answered {}", answer.status)) }
}

impl Shared {
    /// Says in the status of a destination whether it takes what it is sent.
    pub(super) fn say(self: &Arc<Self>, which: Which, source: &CloudEventSource, is_active: bool) {
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
