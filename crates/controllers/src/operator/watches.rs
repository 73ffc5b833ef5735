//! List-and-watch into the store: KEDA's resources and HPAs from the start, targets and jobs as soon as an object needs them.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use api::keda::annotations::SCALED_JOB_NAME;
use cluster::index::{Target, TargetKind};
use cluster::watch::{self, View, WatchEvent, WatchHealth, WatchSource};
use futures::StreamExt;
use kube::Client;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::id::NamespacedName;
use super::settings::OperatorSettings;
use super::store::{Job, JobPod, Store, StoreEvent};

/// Changes that are applied before the task yields.
const CHANGES_PER_YIELD: usize = 256;

const KEDA_PATH: &str = "/apis/keda.sh/v1alpha1";
const EVENTING_PATH: &str = "/apis/eventing.keda.sh/v1alpha1";

/// The watches, which end when this is dropped.
pub(crate) struct Watches {
    feed: Feed,
    tasks: JoinSet<()>,
    targets: HashMap<TargetKind, WatchHealth>,
    jobs: Vec<WatchHealth>,
}

/// Applies changes to the store and sends the resulting events.
#[derive(Clone)]
struct Feed {
    client: Client,
    store: Arc<Mutex<Store>>,
    settings: Arc<OperatorSettings>,
    tell: mpsc::UnboundedSender<StoreEvent>,
}

impl Watches {
    pub(crate) fn new(
        client: Client,
        store: Arc<Mutex<Store>>,
        settings: Arc<OperatorSettings>,
        tell: mpsc::UnboundedSender<StoreEvent>,
    ) -> Self {
        let feed = Feed { client, store, settings, tell };
        Self { feed, tasks: JoinSet::new(), targets: HashMap::new(), jobs: Vec::new() }
    }

    /// Starts the watches and waits until each is synced.
    pub(crate) async fn start(&mut self) {
        let mut healths = Vec::new();
        for scope in self.feed.scopes() {
            let (feed, tasks) = (&self.feed, &mut self.tasks);
            let store = feed.store.clone();
            let objects = WatchSource::new(scoped(KEDA_PATH, "scaledobjects", &scope));
            // Most changes are our own writes, which the store already holds.
            let objects = objects.knowing(move |namespace, name, version| {
                let store = store.lock().unwrap_or_else(PoisonError::into_inner);
                let held = store.objects.get(&NamespacedName::new(namespace, name));
                held.is_some_and(|held| held.metadata.resource_version == version)
            });
            healths.push(feed.run(tasks, objects, &scope, Store::take_object));
            healths.push(feed.spawn(tasks, KEDA_PATH, "scaledjobs", &scope, Store::take_scaled_job));
            healths.push(feed.spawn(
                tasks,
                KEDA_PATH,
                "triggerauthentications",
                &scope,
                |store, scope, change| store.take_authentication(false, scope, change),
            ));
            healths.push(feed.spawn(
                tasks,
                EVENTING_PATH,
                "cloudeventsources",
                &scope,
                |store, scope, change| store.take_destination(false, scope, change),
            ));
            let hpas = "horizontalpodautoscalers";
            healths.push(feed.spawn(tasks, "/apis/autoscaling/v2", hpas, &scope, Store::take_hpa));
        }
        let (feed, tasks) = (&self.feed, &mut self.tasks);
        healths.push(feed.spawn(
            tasks,
            KEDA_PATH,
            "clustertriggerauthentications",
            "",
            |store, scope, change| store.take_authentication(true, scope, change),
        ));
        healths.push(feed.spawn(
            tasks,
            EVENTING_PATH,
            "clustercloudeventsources",
            "",
            |store, scope, change| store.take_destination(true, scope, change),
        ));
        for health in &healths {
            // A resource that is not installed is watched as soon as it is.
            health.wait_until(|condition| condition.synced || condition.absent).await;
        }
    }

    /// Watches these kinds of targets; returns those whose watch is synced.
    pub(crate) fn targets(&mut self, wanted: &HashSet<TargetKind>) -> HashSet<TargetKind> {
        // With several namespaces, targets are read on demand instead of one watch per kind and namespace.
        if self.feed.settings.namespaces.len() > 1 {
            return HashSet::new();
        }
        let scope = self.feed.settings.namespaces.first().cloned().unwrap_or_default();
        for kind in wanted {
            if !self.targets.contains_key(kind) {
                let (base, plural) = kind.path().rsplit_once('/').unwrap_or_default();
                let kind = *kind;
                let health = self.feed.spawn::<Target>(
                    &mut self.tasks,
                    base,
                    plural,
                    &scope,
                    move |store, _, change| store.take_target(kind, change),
                );
                self.targets.insert(kind, health);
            }
        }
        let seen = self.targets.iter().filter(|(_, health)| {
            let condition = health.condition();
            condition.synced && condition.disconnected_since.is_none()
        });
        seen.map(|(kind, _)| *kind).collect()
    }

    /// Watches the jobs of ScaledJobs and their pods; returns whether all are listed.
    pub(crate) fn jobs(&mut self) -> bool {
        if self.jobs.is_empty() {
            for scope in self.feed.scopes() {
                let (feed, tasks) = (&self.feed, &mut self.tasks);
                let jobs = labelled("/apis/batch/v1", "jobs", &scope);
                self.jobs.push(feed.run::<Job>(tasks, jobs, &scope, |store, scope, change| {
                    store.jobs.take_job(scope, change);
                    Vec::new()
                }));
                let pods = labelled("/api/v1", "pods", &scope);
                self.jobs.push(feed.run::<JobPod>(tasks, pods, &scope, |store, scope, change| {
                    store.jobs.take_pod(scope, change);
                    Vec::new()
                }));
            }
        }
        self.jobs.iter().all(WatchHealth::synced)
    }
}

/// Selects objects with the label of a ScaledJob, so that other pods of the cluster are not cached.
fn labelled(base: &str, plural: &str, scope: &str) -> WatchSource {
    let mut source = WatchSource::new(scoped(base, plural, scope));
    source.parameters.push(("labelSelector", SCALED_JOB_NAME.to_owned()));
    source
}

/// `/apis/apps/v1/deployments`, within a namespace if `scope` is not empty.
fn scoped(base: &str, plural: &str, scope: &str) -> String {
    if scope.is_empty() { format!("{base}/{plural}") } else { format!("{base}/namespaces/{scope}/{plural}") }
}

impl Feed {
    fn scopes(&self) -> Vec<String> {
        match self.settings.namespaces.as_slice() {
            [] => vec![String::new()],
            some => some.to_vec(),
        }
    }

    fn spawn<T: View>(
        &self,
        tasks: &mut JoinSet<()>,
        base: &str,
        plural: &str,
        scope: &str,
        take: impl FnMut(&mut Store, &str, WatchEvent<T>) -> Vec<StoreEvent> + Send + 'static,
    ) -> WatchHealth {
        self.run(tasks, WatchSource::new(scoped(base, plural, scope)), scope, take)
    }

    fn run<T: View>(
        &self,
        tasks: &mut JoinSet<()>,
        source: WatchSource,
        scope: &str,
        mut take: impl FnMut(&mut Store, &str, WatchEvent<T>) -> Vec<StoreEvent> + Send + 'static,
    ) -> WatchHealth {
        let (health, changes) = watch::watch::<T>(self.client.clone(), source);
        let (store, tell, scope) = (self.store.clone(), self.tell.clone(), scope.to_owned());
        tasks.spawn(async move {
            let mut changes = std::pin::pin!(changes);
            let mut taken = 0;
            while let Some(change) = changes.next().await {
                let signals = take(&mut store.lock().unwrap_or_else(PoisonError::into_inner), &scope, change);
                for signal in signals {
                    // Sending fails only when the operator has ended.
                    let _ = tell.send(signal);
                }
                taken += 1;
                if taken % CHANGES_PER_YIELD == 0 {
                    tokio::task::yield_now().await;
                }
            }
        });
        health
    }
}
