//! The watches that fill the store: autoscalers and pods from the start, targets once somebody scales such a thing.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use cluster::index::{Target, TargetKind};
use cluster::watch::{self, View, WatchEvent, WatchHealth, WatchSource};
use cluster::{AutoscalerKey, AutoscalerKind};
use futures::StreamExt;
use kube::Client;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::autoscaler::AutoscalerEntry;
use super::settings::HpaSettings;
use super::store::{AutoscalerChange, AutoscalerStore};

/// How many changes are taken in before others have a turn.
const BREATH: usize = 256;

/// The watches, which end when this is dropped.
pub(crate) struct Watches {
    feed: Feed,
    tasks: JoinSet<()>,
    targets: HashMap<TargetKind, WatchHealth>,
}

/// Where changes go.
#[derive(Clone)]
struct Feed {
    client: Client,
    store: Arc<Mutex<AutoscalerStore>>,
    settings: Arc<HpaSettings>,
    tell: mpsc::UnboundedSender<AutoscalerChange>,
}

impl Watches {
    pub(crate) fn new(
        client: Client,
        store: Arc<Mutex<AutoscalerStore>>,
        settings: Arc<HpaSettings>,
        tell: mpsc::UnboundedSender<AutoscalerChange>,
    ) -> Self {
        let feed = Feed { client, store, settings, tell };
        Self { feed, tasks: JoinSet::new(), targets: HashMap::new() }
    }

    /// Starts to watch autoscalers and pods, and waits until all of them were seen once.
    pub(crate) async fn start(&mut self) {
        let scopes = match self.feed.settings.namespaces.as_slice() {
            [] => vec![String::new()],
            some => some.to_vec(),
        };
        let mut healths = Vec::new();
        for scope in scopes {
            healths.push(self.feed.pods(&mut self.tasks, &scope));
            healths.push(self.feed.hpas(&mut self.tasks, &scope));
            healths.push(self.feed.autoscalers(&mut self.tasks, &scope));
        }
        for health in &healths {
            // Our own kind need not be known to the cluster; it is watched as soon as it is.
            health.wait_until(|condition| condition.synced || condition.absent).await;
        }
    }

    /// Watches these kinds of targets from now on; how their watches fare.
    pub(crate) fn targets(&mut self, wanted: &HashSet<TargetKind>) -> HashMap<TargetKind, WatchHealth> {
        // In several namespaces a target is asked for: one watch per kind and namespace is not worth it.
        if self.feed.settings.namespaces.len() > 1 {
            return HashMap::new();
        }
        let scope = self.feed.settings.namespaces.first().cloned().unwrap_or_default();
        for kind in wanted {
            if !self.targets.contains_key(kind) {
                let health = self.feed.target(&mut self.tasks, *kind, &scope);
                self.targets.insert(*kind, health);
            }
        }
        self.targets.clone()
    }
}

/// `/apis/apps/v1/deployments`, in one namespace if there is a scope.
fn scoped(collection: &str, scope: &str) -> String {
    match collection.rsplit_once('/') {
        Some((base, plural)) if !scope.is_empty() => format!("{base}/namespaces/{scope}/{plural}"),
        _ => collection.to_owned(),
    }
}

impl Feed {
    fn source(collection: &str, scope: &str) -> WatchSource {
        WatchSource::new(scoped(collection, scope))
    }

    fn spawn<T: View>(
        &self,
        tasks: &mut JoinSet<()>,
        source: WatchSource,
        mut take: impl FnMut(&mut AutoscalerStore, WatchEvent<T>) + Send + 'static,
    ) -> WatchHealth {
        let (health, changes) = watch::watch::<T>(self.client.clone(), source);
        let store = self.store.clone();
        tasks.spawn(async move {
            let mut changes = std::pin::pin!(changes);
            let mut taken = 0;
            while let Some(change) = changes.next().await {
                take(&mut store.lock().unwrap_or_else(PoisonError::into_inner), change);
                taken += 1;
                if taken % BREATH == 0 {
                    tokio::task::yield_now().await;
                }
            }
        });
        health
    }

    fn pods(&self, tasks: &mut JoinSet<()>, scope: &str) -> WatchHealth {
        self.spawn(tasks, Self::source("/api/v1/pods", scope), AutoscalerStore::pod)
    }

    fn hpas(&self, tasks: &mut JoinSet<()>, scope: &str) -> WatchHealth {
        let store = self.store.clone();
        let source = Self::source("/apis/autoscaling/v2/horizontalpodautoscalers", scope);
        let source = source.knowing(move |namespace, name, version| {
            let store = store.lock().unwrap_or_else(PoisonError::into_inner);
            let known = store.get(&AutoscalerKey::hpa(namespace, name));
            known.is_some_and(|entry| entry.object.metadata().resource_version == version)
        });
        self.spawn(tasks, source, self.autoscaler(AutoscalerKind::Hpa, scope, AutoscalerEntry::of_hpa))
    }

    fn autoscalers(&self, tasks: &mut JoinSet<()>, scope: &str) -> WatchHealth {
        let source = Self::source("/apis/plimsoll.dev/v1alpha1/autoscalers", scope);
        self.spawn(
            tasks,
            source,
            self.autoscaler(AutoscalerKind::Autoscaler, scope, AutoscalerEntry::of_autoscaler),
        )
    }

    fn autoscaler<T: 'static>(
        &self,
        kind: AutoscalerKind,
        scope: &str,
        parse: fn(T) -> AutoscalerEntry,
    ) -> impl Fn(&mut AutoscalerStore, WatchEvent<T>) + Send + 'static {
        let (settings, tell, scope) = (self.settings.clone(), self.tell.clone(), scope.to_owned());
        move |store, change| {
            if let Some(signal) = store.autoscaler(kind, &scope, &settings, map(change, parse)) {
                // The loop is gone only when everything ends.
                let _ = tell.send(signal);
            }
        }
    }

    fn target(&self, tasks: &mut JoinSet<()>, kind: TargetKind, scope: &str) -> WatchHealth {
        let source = Self::source(kind.path(), scope);
        self.spawn::<Target>(tasks, source, move |store, change| store.target(kind, change))
    }
}

fn map<T, U>(change: WatchEvent<T>, with: impl FnOnce(T) -> U) -> WatchEvent<U> {
    match change {
        WatchEvent::Listing => WatchEvent::Listing,
        WatchEvent::Listed => WatchEvent::Listed,
        WatchEvent::Applied(object) => WatchEvent::Applied(with(object)),
        WatchEvent::Deleted { namespace, name } => WatchEvent::Deleted { namespace, name },
        WatchEvent::Unreadable { namespace, name, error } => {
            WatchEvent::Unreadable { namespace, name, error }
        }
    }
}
