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
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::event_recorder::EventSubject;
use super::id::Name;
use super::leader_client::LeaderClient;
use super::settings::OperatorSettings;
use super::store::Store;
use crate::metrics::exported_metrics::MetricsWriter;
use event::Message;

/// SampleQuery many events may wait.
const QUEUE: usize = 1024;
/// So long a destination that takes nothing is left alone.
const REST: Duration = Duration::from_mins(5);

/// Tells CloudEvents in the background; never waits, never fails.
pub(crate) struct CloudEvents {
    queue: mpsc::Sender<Message>,
    shared: Arc<Shared>,
    clock: Clock,
}

struct Shared {
    client: LeaderClient,
    /// `/{cluster}/{namespace}/keda`, where the destination does not name the cluster.
    cluster: String,
    namespace: String,
    compat: Compat,
    destinations: Mutex<HashMap<Which, Destination>>,
    dropped: AtomicU64,
}

/// Names a destination.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Which {
    of_cluster: bool,
    name: Name,
}

/// Where events go.
#[derive(Clone, Debug)]
struct Destination {
    source: Arc<CloudEventSource>,
    /// Since when it takes nothing, if it does not: then it is left alone until it is changed, or for a while.
    rests: Option<Instant>,
    emitted: u64,
    failed: u64,
}

impl Destination {
    /// Whether it is sent anything. One that took nothing is tried again now and then; to the original it is dead until
    /// somebody changes it.
    fn is_due(&self, now: Instant, compat: Compat) -> bool {
        let is_over = |since: Instant| now.saturating_duration_since(since) >= REST;
        self.rests.is_none_or(|since| !compat.is_strict() && is_over(since))
    }
}

impl CloudEvents {
    pub(crate) fn start(client: LeaderClient, settings: &OperatorSettings, clock: Clock) -> Arc<Self> {
        let (queue, waiting) = mpsc::channel(QUEUE);
        let shared = Arc::new(Shared {
            client,
            cluster: settings.cluster_name.clone(),
            namespace: settings.cluster_object_namespace.clone(),
            compat: settings.compat,
            destinations: Mutex::default(),
            dropped: AtomicU64::new(0),
        });
        tokio::spawn(deliver::run(waiting, Arc::clone(&shared)));
        Arc::new(Self { queue, shared, clock })
    }

    /// Takes over the destinations as they are now.
    pub(crate) fn update(&self, store: &Store) {
        let mut held = self.shared.destinations();
        let mut new = HashMap::new();
        let own = store.destinations.iter().map(|(name, source)| (false, name, source));
        let all = own.chain(store.cluster_destinations.iter().map(|(name, source)| (true, name, source)));
        for (of_cluster, name, source) in all {
            if source.metadata.deletion_timestamp.is_some() {
                continue;
            }
            let which = Which { of_cluster, name: name.clone() };
            if source.spec.destination.http.is_none() {
                // Nobody else is known to deliver to: it must not look as if somebody did.
                self.shared.say(which, source, false);
                continue;
            }
            let known = held.remove(&which).filter(|known| known.source.spec == source.spec);
            let is_new = known.is_none();
            let fresh = || Destination { source: Arc::clone(source), rests: None, emitted: 0, failed: 0 };
            let mut destination = known.unwrap_or_else(fresh);
            destination.source = Arc::clone(source);
            new.insert(which.clone(), destination);
            if is_new {
                self.shared.say(which, source, true);
            }
        }
        *held = new;
    }

    /// Tells an event, if somebody listens and it is one of those that are told.
    pub(crate) fn offer(&self, subject: EventSubject, metadata: &ObjectMeta, event: &Event) {
        if self.shared.destinations().is_empty() {
            return;
        }
        let Some(message) = Message::of(subject, metadata, event, self.clock.now()) else { return };
        if self.queue.try_send(message).is_err() {
            self.shared.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(crate) fn figures(&self, page: &mut MetricsWriter) {
        let held = self.shared.destinations();
        let help = "Measured the number of emitted cloudevents.";
        page.family("counter", "keda_cloudeventsource_events_emitted_total", help);
        for (which, destination) in held.iter() {
            let states = [("emitted", destination.emitted), ("failed", destination.failed)];
            for (state, count) in states {
                let labels = [
                    ("namespace", &*which.name.namespace),
                    ("cloudeventsource", &*which.name.name),
                    ("eventsink", "http"),
                    ("state", state),
                ];
                page.value(&labels, count);
            }
        }
        let waiting = QUEUE - self.queue.capacity();
        let help = "Indicates how many events are still queued.";
        page.family("gauge", "keda_cloudeventsource_events_queued", help)
            .value(&[("namespace", &self.shared.namespace)], waiting);
    }
}

impl Shared {
    fn destinations(&self) -> MutexGuard<'_, HashMap<Which, Destination>> {
        self.destinations.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
