//! The reflectors that fill the store: autoscalers and pods from the start, targets once an autoscaler refers to their kind.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};

use api::pod::Pod;
use cluster::index::{Target, TargetKind};
use cluster::request::within;
use cluster::watch::{self, View, WatchEvent, WatchHealth, WatchSource};
use cluster::{AutoscalerKey, AutoscalerKind};
use kube::Client;
use locks::MutexExt as _;
use runtime::{FaultInjector, Reflectors, WatchSet};
use tokio::sync::mpsc;

use super::autoscaler::AutoscalerEntry;
use super::settings::HpaSettings;
use super::store::{AutoscalerChange, AutoscalerStore};

/// Receives every event of the watch of pods.
pub type ApplyPodEvent = Box<dyn FnMut(&WatchEvent<Pod>) + Send>;

/// Takes part in the watch of all pods: another store that is filled by it.
pub struct PodObserver {
    /// The health of the watch.
    pub health: WatchHealth,
    /// Fills the store.
    pub apply: ApplyPodEvent,
}

/// The reflectors, which end when this is dropped.
pub(crate) struct HpaReflectors {
    client: Client,
    store: Arc<Mutex<AutoscalerStore>>,
    settings: Arc<HpaSettings>,
    changes: mpsc::UnboundedSender<AutoscalerChange>,
    reflectors: Reflectors,
    targets: HashMap<TargetKind, WatchHealth>,
    pod_observer: Option<PodObserver>,
}

impl HpaReflectors {
    pub(crate) fn new(
        client: Client,
        store: Arc<Mutex<AutoscalerStore>>,
        settings: Arc<HpaSettings>,
        changes: mpsc::UnboundedSender<AutoscalerChange>,
        faults: FaultInjector,
    ) -> Self {
        let reflectors = Reflectors::new(faults);
        Self { client, store, settings, changes, reflectors, targets: HashMap::new(), pod_observer: None }
    }

    /// Lets an observer take part in the watch of pods, if all namespaces are watched.
    pub(crate) fn observe_pods(&mut self, observer: PodObserver) {
        self.pod_observer = Some(observer);
    }

    /// The health of all watches.
    pub(crate) fn watches(&self) -> WatchSet {
        self.reflectors.watches()
    }

    /// Starts to watch autoscalers and pods, and waits until all of them were listed once.
    pub(crate) async fn start(&mut self) {
        let scopes = match self.settings.namespaces.as_slice() {
            [] => vec![String::new()],
            some => some.to_vec(),
        };
        let mut healths = Vec::new();
        for scope in scopes {
            healths.push(self.watch_pods(&scope));
            healths.push(self.watch_hpas(&scope));
            healths.push(self.watch_autoscalers(&scope));
        }
        for health in &healths {
            // The CRD of our own kind need not be installed; the kind is watched as soon as it is.
            health.wait_until(|condition| condition.synced || condition.absent).await;
        }
    }

    /// Watches these kinds of targets from now on; returns the health of their watches.
    pub(crate) fn targets(&mut self, wanted: &HashSet<TargetKind>) -> HashMap<TargetKind, WatchHealth> {
        // With several namespaces the scale is requested instead: one watch per kind and namespace is not worth it.
        if self.settings.namespaces.len() > 1 {
            return HashMap::new();
        }
        let scope = self.settings.namespaces.first().cloned().unwrap_or_default();
        for kind in wanted {
            if !self.targets.contains_key(kind) {
                let (kind, source) = (*kind, scoped(kind.path(), &scope));
                let health = self.spawn::<Target>(source, move |store, event| store.target(kind, event));
                self.targets.insert(kind, health);
            }
        }
        self.targets.clone()
    }

    fn watch_pods(&mut self, scope: &str) -> WatchHealth {
        let source = scoped("/api/v1/pods", scope);
        let Some(PodObserver { health, mut apply }) = self.pod_observer.take() else {
            return self.spawn(source, AutoscalerStore::pod);
        };
        let (client, store) = (self.client.clone(), self.store.clone());
        self.reflectors.spawn_with_health(
            source.resource().to_owned(),
            health.clone(),
            move |health| watch::list_and_watch::<Pod>(client.clone(), source.clone(), health),
            move |event| {
                apply(&event);
                store.locked().pod(event);
            },
        );
        health
    }

    fn watch_hpas(&mut self, scope: &str) -> WatchHealth {
        let store = self.store.clone();
        let source = scoped("/apis/autoscaling/v2/horizontalpodautoscalers", scope);
        let source = source.knowing(move |namespace, name, version| {
            let store = store.locked();
            let known = store.get(&AutoscalerKey::hpa(namespace, name));
            known.is_some_and(|entry| entry.object.metadata().resource_version == version)
        });
        let apply = self.autoscaler(AutoscalerKind::Hpa, scope, AutoscalerEntry::of_hpa);
        self.spawn(source, apply)
    }

    fn watch_autoscalers(&mut self, scope: &str) -> WatchHealth {
        let source = scoped("/apis/plimsoll.dev/v1alpha1/autoscalers", scope);
        let apply = self.autoscaler(AutoscalerKind::Autoscaler, scope, AutoscalerEntry::of_autoscaler);
        self.spawn(source, apply)
    }

    fn autoscaler<T: 'static>(
        &self,
        kind: AutoscalerKind,
        scope: &str,
        parse: fn(T) -> AutoscalerEntry,
    ) -> impl FnMut(&mut AutoscalerStore, WatchEvent<T>) + Send + use<T> {
        let (settings, changes, scope) = (self.settings.clone(), self.changes.clone(), scope.to_owned());
        move |store, event| {
            if let Some(change) = store.autoscaler(kind, &scope, &settings, event.map(parse)) {
                // The receiver is dropped only when the controller ends.
                let _ = changes.send(change);
            }
        }
    }

    fn spawn<T: View>(
        &mut self,
        source: WatchSource,
        mut apply: impl FnMut(&mut AutoscalerStore, WatchEvent<T>) + Send + 'static,
    ) -> WatchHealth {
        let (client, store) = (self.client.clone(), self.store.clone());
        self.reflectors.spawn(
            source.resource().to_owned(),
            move |health| watch::list_and_watch(client.clone(), source.clone(), health),
            move |event| apply(&mut store.locked(), event),
        )
    }
}

/// The source of a collection such as `/apis/apps/v1/deployments`, in one namespace if there is a scope.
fn scoped(collection: &str, scope: &str) -> WatchSource {
    WatchSource::new(within(collection, scope))
}
