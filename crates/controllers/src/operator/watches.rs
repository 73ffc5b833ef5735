//! The reflectors that fill the store: KEDA's resources and HPAs from the start, targets and jobs as soon as an object needs them.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};

use api::keda::annotations::SCALED_JOB_NAME;
use cluster::index::{Target, TargetKind};
use cluster::request::within;
use cluster::watch::{self, View, WatchEvent, WatchHealth, WatchSource};
use kube::Client;
use locks::MutexExt as _;
use runtime::{FaultInjector, Reflectors, WatchSet};
use tokio::sync::mpsc;

use super::id::NamespacedName;
use super::settings::OperatorSettings;
use super::store::{Job, JobPod, Store, StoreEvent};

const SCALED_OBJECTS: &str = "/apis/keda.sh/v1alpha1/scaledobjects";
const SCALED_JOBS: &str = "/apis/keda.sh/v1alpha1/scaledjobs";
const AUTHENTICATIONS: &str = "/apis/keda.sh/v1alpha1/triggerauthentications";
const CLUSTER_AUTHENTICATIONS: &str = "/apis/keda.sh/v1alpha1/clustertriggerauthentications";
const DESTINATIONS: &str = "/apis/eventing.keda.sh/v1alpha1/cloudeventsources";
const CLUSTER_DESTINATIONS: &str = "/apis/eventing.keda.sh/v1alpha1/clustercloudeventsources";
const HPAS: &str = "/apis/autoscaling/v2/horizontalpodautoscalers";

/// The reflectors, which end when this is dropped.
pub(crate) struct OperatorReflectors {
    client: Client,
    store: Arc<Mutex<Store>>,
    settings: Arc<OperatorSettings>,
    events: mpsc::UnboundedSender<StoreEvent>,
    reflectors: Reflectors,
    targets: HashMap<TargetKind, WatchHealth>,
    jobs: Vec<WatchHealth>,
}

impl OperatorReflectors {
    pub(crate) fn new(
        client: Client,
        store: Arc<Mutex<Store>>,
        settings: Arc<OperatorSettings>,
        events: mpsc::UnboundedSender<StoreEvent>,
        faults: FaultInjector,
    ) -> Self {
        let (targets, jobs) = (HashMap::new(), Vec::new());
        Self { client, store, settings, events, reflectors: Reflectors::new(faults), targets, jobs }
    }

    /// The health of all watches.
    pub(crate) fn watches(&self) -> WatchSet {
        self.reflectors.watches()
    }

    /// Starts the watches and waits until each is synced.
    pub(crate) async fn start(&mut self) {
        let mut healths = Vec::new();
        for scope in &self.scopes() {
            healths.push(self.watch_objects(scope));
            let jobs = selected(SCALED_JOBS, scope, &self.settings.label_selector);
            healths.push(self.spawn(jobs, scope, Store::apply_scaled_job));
            let authentications = selected(AUTHENTICATIONS, scope, &self.settings.authentication_selector);
            healths.push(self.spawn(authentications, scope, |store, scope, event| {
                store.apply_authentication(false, scope, event)
            }));
            healths.push(self.spawn(scoped(DESTINATIONS, scope), scope, |store, scope, event| {
                store.apply_destination(false, scope, event)
            }));
            // Generated HPAs have the labels of their ScaledObjects.
            let hpas = selected(HPAS, scope, &self.settings.label_selector);
            healths.push(self.spawn(hpas, scope, Store::apply_hpa));
        }
        let authentications = selected(CLUSTER_AUTHENTICATIONS, "", &self.settings.authentication_selector);
        healths.push(self.spawn(authentications, "", |store, scope, event| {
            store.apply_authentication(true, scope, event)
        }));
        healths.push(self.spawn(scoped(CLUSTER_DESTINATIONS, ""), "", |store, scope, event| {
            store.apply_destination(true, scope, event)
        }));
        for health in &healths {
            // A resource that is not installed is watched as soon as it is.
            health.wait_until(|condition| condition.synced || condition.absent).await;
        }
    }

    /// Watches these kinds of targets; returns those whose store is current and whose server sends changes.
    pub(crate) fn targets(&mut self, wanted: &HashSet<TargetKind>) -> HashSet<TargetKind> {
        // With several namespaces, targets are read on demand instead of one watch per kind and namespace.
        if self.settings.namespaces.len() > 1 {
            return HashSet::new();
        }
        let scope = self.settings.namespaces.first().cloned().unwrap_or_default();
        for kind in wanted {
            if !self.targets.contains_key(kind) {
                let (kind, source) = (*kind, scoped(kind.path(), &scope));
                let apply = move |store: &mut Store, _: &str, event| store.apply_target(kind, event);
                let health = self.spawn::<Target>(source, &scope, apply);
                self.targets.insert(kind, health);
            }
        }
        let connected = self.targets.iter().filter(|(_, health)| health.is_connected());
        connected.map(|(kind, _)| *kind).collect()
    }

    /// Watches the jobs of ScaledJobs and their pods; returns whether all are listed and current.
    pub(crate) fn jobs(&mut self) -> bool {
        if self.jobs.is_empty() {
            for scope in &self.scopes() {
                let jobs = labelled("/apis/batch/v1/jobs", scope);
                let jobs = self.spawn::<Job>(jobs, scope, |store, scope, event| {
                    store.jobs.apply_job(scope, event);
                    Vec::new()
                });
                let pods = labelled("/api/v1/pods", scope);
                let pods = self.spawn::<JobPod>(pods, scope, |store, scope, event| {
                    store.jobs.apply_pod(scope, event);
                    Vec::new()
                });
                self.jobs.extend([jobs, pods]);
            }
        }
        self.jobs.iter().all(|health| health.synced() && health.is_current())
    }

    fn scopes(&self) -> Vec<String> {
        match self.settings.namespaces.as_slice() {
            [] => vec![String::new()],
            some => some.to_vec(),
        }
    }

    fn watch_objects(&mut self, scope: &str) -> WatchHealth {
        let store = self.store.clone();
        // Most changes are our own writes, which the store already holds.
        let source = selected(SCALED_OBJECTS, scope, &self.settings.label_selector);
        let source = source.knowing(move |namespace, name, version| {
            let store = store.locked();
            let held = store.objects.get(&NamespacedName::new(namespace, name));
            held.is_some_and(|held| held.metadata.resource_version == version)
        });
        self.spawn(source, scope, Store::apply_object)
    }

    fn spawn<T: View>(
        &mut self,
        source: WatchSource,
        scope: &str,
        mut apply: impl FnMut(&mut Store, &str, WatchEvent<T>) -> Vec<StoreEvent> + Send + 'static,
    ) -> WatchHealth {
        let (client, store) = (self.client.clone(), self.store.clone());
        let (events, scope) = (self.events.clone(), scope.to_owned());
        self.reflectors.spawn(
            source.resource().to_owned(),
            move |health| watch::list_and_watch(client.clone(), source.clone(), health),
            move |event| {
                let caused = apply(&mut store.locked(), &scope, event);
                for event in caused {
                    // The receiver is dropped only when the operator ends.
                    let _ = events.send(event);
                }
            },
        )
    }
}

/// Selects objects with the label of a ScaledJob, so that other pods of the cluster are not cached.
fn labelled(collection: &str, scope: &str) -> WatchSource {
    selected(collection, scope, SCALED_JOB_NAME)
}

/// The source of a collection, with a label selector if it is not empty.
fn selected(collection: &str, scope: &str, selector: &str) -> WatchSource {
    let mut source = scoped(collection, scope);
    if !selector.is_empty() {
        source.parameters.push(("labelSelector", selector.to_owned()));
    }
    source
}

/// The source of a collection such as `/apis/apps/v1/deployments`, within a namespace if `scope` is not empty.
fn scoped(collection: &str, scope: &str) -> WatchSource {
    WatchSource::new(within(collection, scope))
}
