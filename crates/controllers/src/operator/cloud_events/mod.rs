//! CloudEvents to HTTP destinations and topics of Azure Event Grid (docs/spec/keda.md 9.4).
//!
//! Each destination has a bounded queue and a task of its own, so that a slow one delays no other. A CloudEventSource receives the
//! events of its namespace, a ClusterCloudEventSource those of all; KEDA sends every event to every destination.

mod deliver;
mod event;
mod event_grid;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use api::keda::CloudEventSource;
use api::meta::ObjectMeta;
use api::provider::Compat;
use cluster::Clock;
use keda::event::Event;
use locks::MutexExt as _;
use runtime::reconcile_loop::PanicCounter;
use sources::dial::Dialer;
use sources::http::ProxyRules;
use sources::tenant::{NamespaceParts, in_namespace};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::AbortHandle;
use tokio::time::Instant;

use super::id::{DestinationId, EventSubject};
use super::leader_client::LeaderClient;
use super::settings::OperatorSettings;
use super::store::Store;
use crate::metrics::exported_metrics::MetricsWriter;
use event::{CloudEvent, accepts};
pub(crate) use event_grid::TopicCredentials;
use event_grid::TopicHeader;

/// Events that wait for one destination.
const MAX_QUEUED_EVENTS: usize = if cfg!(test) { 4 } else { 256 };
/// Deliveries under way to the destinations of one namespace: each needs a connection, and computes for its TLS handshake.
const MAX_NAMESPACE_DELIVERIES: usize = if cfg!(test) { 2 } else { 64 };
/// How long a failing destination is skipped.
const DESTINATION_RETRY_DELAY: Duration = Duration::from_mins(5);
/// Why nothing is delivered to a source with an incomplete destination.
const INCOMPLETE_DESTINATION: &str =
    "spec.destination needs http, or azureEventGridTopic together with spec.authenticationRef";

/// Delivers CloudEvents in the background; never waits and never fails.
pub(crate) struct CloudEvents {
    shared: Arc<DeliveryState>,
    clock: Clock,
    panics: PanicCounter,
}

struct DeliveryState {
    client: LeaderClient,
    /// `/{cluster}/{namespace}/keda`, where the destination does not name the cluster.
    cluster: String,
    namespace: String,
    compat: Compat,
    dialer: Dialer,
    proxies: ProxyRules,
    topics: TopicCredentials,
    /// Permits of deliveries, by namespace of the destination.
    deliveries: NamespaceParts<Semaphore>,
    destinations: Mutex<HashMap<DestinationId, Destination>>,
}

/// A destination of CloudEvents.
#[derive(Debug)]
struct Destination {
    source: Arc<CloudEventSource>,
    queue: mpsc::Sender<Arc<CloudEvent>>,
    /// Its task, which ends with it.
    task: Option<AbortHandle>,
    /// Since when deliveries fail: the destination is skipped until it is edited or a delay has passed.
    failing_since: Option<Instant>,
    /// The credentials of a topic, and when they were read.
    credentials: Option<(Instant, TopicHeader)>,
    emitted: u64,
    failed: u64,
    dropped: Dropped,
}

/// Events that a destination did not receive, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Dropped {
    /// Too many events were waiting.
    queue_full: u64,
    /// The destination is skipped for a while after failures.
    skipped: u64,
}

impl Drop for Destination {
    fn drop(&mut self) {
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}

impl Destination {
    fn new(source: Arc<CloudEventSource>, queue: mpsc::Sender<Arc<CloudEvent>>) -> Self {
        Self {
            source,
            queue,
            task: None,
            failing_since: None,
            credentials: None,
            emitted: 0,
            failed: 0,
            dropped: Dropped::default(),
        }
    }

    /// Whether events are sent. A failed destination is retried now and then; KEDA skips it until it is edited.
    fn is_due(&self, now: Instant, compat: Compat) -> bool {
        let is_over = |since: Instant| now.saturating_duration_since(since) >= DESTINATION_RETRY_DELAY;
        self.failing_since.is_none_or(|since| !compat.is_strict() && is_over(since))
    }
}

impl CloudEvents {
    /// No destinations yet; `panics` counts deliveries that panic.
    pub(crate) fn start(
        client: LeaderClient,
        settings: &OperatorSettings,
        dialer: Dialer,
        proxies: ProxyRules,
        clock: Clock,
        panics: PanicCounter,
        topics: TopicCredentials,
    ) -> Arc<Self> {
        let shared = Arc::new(DeliveryState {
            client,
            cluster: settings.cluster_name.clone(),
            namespace: settings.cluster_object_namespace.clone(),
            compat: settings.compat,
            dialer,
            proxies,
            topics,
            deliveries: delivery_permits(),
            destinations: Mutex::default(),
        });
        Arc::new(Self { shared, clock, panics })
    }

    /// Replaces the destinations by those in the store.
    pub(crate) fn update(&self, store: &Store) {
        let mut held = self.shared.destinations();
        let mut new = HashMap::new();
        let own = store.destinations.iter().map(|(name, source)| (false, name, source));
        let all = own.chain(store.cluster_destinations.iter().map(|(name, source)| (true, name, source)));
        for (of_cluster, name, source) in all {
            if source.metadata.deletion_timestamp.is_some() {
                continue;
            }
            let id = DestinationId { of_cluster, name: name.clone() };
            if sink_of(source).is_none() {
                // The status says that nothing is delivered.
                self.shared.write_status(id, source, Some(INCOMPLETE_DESTINATION));
                continue;
            }
            let known = held.remove(&id).filter(|known| known.source.spec == source.spec);
            // The condition of a known one may be that of another leader, to which deliveries failed.
            let needs_status = known.as_ref().is_none_or(|known| {
                known.failing_since.is_none() && known.source.status.conditions != source.status.conditions
            });
            let mut destination = known.unwrap_or_else(|| self.started(id.clone(), source));
            destination.source = Arc::clone(source);
            new.insert(id.clone(), destination);
            if needs_status {
                self.shared.write_status(id, source, None);
            }
        }
        *held = new;
    }

    /// A new destination, and its task.
    fn started(&self, id: DestinationId, source: &Arc<CloudEventSource>) -> Destination {
        let (queue, waiting) = mpsc::channel(MAX_QUEUED_EVENTS);
        let mut destination = Destination::new(Arc::clone(source), queue);
        let namespace = Arc::clone(&id.name.namespace);
        let task = deliver::run(id, waiting, Arc::clone(&self.shared), self.panics.clone());
        destination.task = Some(tokio::spawn(in_namespace(namespace, task)).abort_handle());
        destination
    }

    /// Queues an event for every destination that receives it, if it has a CloudEvent type.
    pub(crate) fn offer(&self, subject: EventSubject, metadata: &ObjectMeta, event: &Event) {
        let mut destinations = self.shared.destinations();
        if destinations.is_empty() {
            return;
        }
        let Some(message) = CloudEvent::of(subject, metadata, event, self.clock.now()) else { return };
        let message = Arc::new(message);
        for (id, destination) in destinations.iter_mut() {
            if receives(id, &destination.source, &message, self.shared.compat)
                && destination.queue.try_send(Arc::clone(&message)).is_err()
            {
                destination.dropped.queue_full += 1;
            }
        }
    }

    pub(crate) fn export(&self, page: &mut MetricsWriter) {
        let held = self.shared.destinations();
        let help = "Measured the number of emitted cloudevents.";
        page.family("counter", "keda_cloudeventsource_events_emitted_total", help);
        for (id, destination) in held.iter() {
            let states = [("emitted", destination.emitted), ("failed", destination.failed)];
            for (state, count) in states {
                let labels = [
                    ("namespace", &*id.name.namespace),
                    ("cloudeventsource", &*id.name.name),
                    ("eventsink", sink_of(&destination.source).unwrap_or_default()),
                    ("state", state),
                ];
                page.value(&labels, count);
            }
        }
        let help = "CloudEvents that a destination did not receive, by reason.";
        page.family("counter", "plimsoll_cloudevents_dropped_total", help);
        for (id, Destination { dropped, .. }) in held.iter() {
            for (reason, count) in
                [("queue_full", dropped.queue_full), ("destination_failing", dropped.skipped)]
            {
                let labels = [
                    ("namespace", &*id.name.namespace),
                    ("cloudeventsource", &*id.name.name),
                    ("reason", reason),
                ];
                page.value(&labels, count);
            }
        }
        let waiting: usize = held.values().map(|one| MAX_QUEUED_EVENTS - one.queue.capacity()).sum();
        let help = "Indicates how many events are still queued.";
        page.family("gauge", "keda_cloudeventsource_events_queued", help)
            .value(&[("namespace", &self.shared.namespace)], waiting);
    }
}

impl Drop for CloudEvents {
    fn drop(&mut self) {
        // Ends the tasks, which hold the shared state.
        self.shared.destinations().clear();
    }
}

fn delivery_permits() -> NamespaceParts<Semaphore> {
    NamespaceParts::new(|| Semaphore::new(MAX_NAMESPACE_DELIVERIES))
}

/// The kind of destination of a source, as exported metrics name it; none if events cannot be delivered. A topic needs credentials.
fn sink_of(source: &CloudEventSource) -> Option<&'static str> {
    let destination = &source.spec.destination;
    if destination.http.is_some() {
        return Some("http");
    }
    let is_topic = destination.azure_event_grid_topic.is_some() && source.spec.authentication_ref.is_some();
    is_topic.then_some("azureEventGridTopic")
}

/// Whether a destination receives an event: one of a namespace only events of its own, which KEDA does not check.
fn receives(id: &DestinationId, source: &CloudEventSource, message: &CloudEvent, compat: Compat) -> bool {
    let is_its_own = id.of_cluster || compat.is_strict() || *id.name.namespace == *message.namespace;
    is_its_own && accepts(&source.spec.event_subscription, message.type_)
}

impl DeliveryState {
    fn destinations(&self) -> MutexGuard<'_, HashMap<DestinationId, Destination>> {
        self.destinations.locked()
    }
}
