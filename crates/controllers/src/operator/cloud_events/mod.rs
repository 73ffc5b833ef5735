//! CloudEvents to HTTP destinations (docs/spec/keda.md 9.4): a bounded queue, a filter per destination, some retries.

mod deliver;
mod event;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use api::keda::CloudEventSource;
use api::meta::ObjectMeta;
use api::provider::Compat;
use cluster::Clock;
use keda::event::Event;
use runtime::reconcile_loop::PanicCounter;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::id::{DestinationId, EventSubject};
use super::leader_client::LeaderClient;
use super::settings::OperatorSettings;
use super::store::Store;
use crate::metrics::exported_metrics::MetricsWriter;
use event::CloudEvent;

/// Events that are queued.
const MAX_QUEUED_EVENTS: usize = 1024;
/// How long a failing destination is skipped.
const DESTINATION_RETRY_DELAY: Duration = Duration::from_mins(5);

/// Delivers CloudEvents in the background; never waits and never fails.
pub(crate) struct CloudEvents {
    queue: mpsc::Sender<CloudEvent>,
    shared: Arc<DeliveryState>,
    clock: Clock,
}

struct DeliveryState {
    client: LeaderClient,
    /// `/{cluster}/{namespace}/keda`, where the destination does not name the cluster.
    cluster: String,
    namespace: String,
    compat: Compat,
    destinations: Mutex<HashMap<DestinationId, Destination>>,
    dropped: AtomicU64,
}

/// A destination of CloudEvents.
#[derive(Clone, Debug)]
struct Destination {
    source: Arc<CloudEventSource>,
    /// Since when deliveries fail: the destination is skipped until it is edited or a delay has passed.
    failing_since: Option<Instant>,
    emitted: u64,
    failed: u64,
}

impl Destination {
    /// Whether events are sent. A failed destination is retried now and then; KEDA skips it until it is edited.
    fn is_due(&self, now: Instant, compat: Compat) -> bool {
        let is_over = |since: Instant| now.saturating_duration_since(since) >= DESTINATION_RETRY_DELAY;
        self.failing_since.is_none_or(|since| !compat.is_strict() && is_over(since))
    }
}

impl CloudEvents {
    /// Starts deliveries; `panics` counts those that panic.
    pub(crate) fn start(
        client: LeaderClient,
        settings: &OperatorSettings,
        clock: Clock,
        panics: PanicCounter,
    ) -> Arc<Self> {
        let (queue, waiting) = mpsc::channel(MAX_QUEUED_EVENTS);
        let shared = Arc::new(DeliveryState {
            client,
            cluster: settings.cluster_name.clone(),
            namespace: settings.cluster_object_namespace.clone(),
            compat: settings.compat,
            destinations: Mutex::default(),
            dropped: AtomicU64::new(0),
        });
        tokio::spawn(deliver::run(waiting, Arc::clone(&shared), panics));
        Arc::new(Self { queue, shared, clock })
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
            if source.spec.destination.http.is_none() {
                // Only HTTP is supported: the status says that nothing is delivered.
                self.shared.write_status(id, source, false);
                continue;
            }
            let known = held.remove(&id).filter(|known| known.source.spec == source.spec);
            let is_new = known.is_none();
            let fresh =
                || Destination { source: Arc::clone(source), failing_since: None, emitted: 0, failed: 0 };
            let mut destination = known.unwrap_or_else(fresh);
            destination.source = Arc::clone(source);
            new.insert(id.clone(), destination);
            if is_new {
                self.shared.write_status(id, source, true);
            }
        }
        *held = new;
    }

    /// Queues an event, if there is a destination and the event has a CloudEvent type.
    pub(crate) fn offer(&self, subject: EventSubject, metadata: &ObjectMeta, event: &Event) {
        if self.shared.destinations().is_empty() {
            return;
        }
        let Some(message) = CloudEvent::of(subject, metadata, event, self.clock.now()) else { return };
        if self.queue.try_send(message).is_err() {
            self.shared.dropped.fetch_add(1, Ordering::Relaxed);
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
                    ("eventsink", "http"),
                    ("state", state),
                ];
                page.value(&labels, count);
            }
        }
        let waiting = MAX_QUEUED_EVENTS - self.queue.capacity();
        let help = "Indicates how many events are still queued.";
        page.family("gauge", "keda_cloudeventsource_events_queued", help)
            .value(&[("namespace", &self.shared.namespace)], waiting);
    }
}

impl DeliveryState {
    fn destinations(&self) -> MutexGuard<'_, HashMap<DestinationId, Destination>> {
        self.destinations.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
