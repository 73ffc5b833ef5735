//! What is looked up of the cluster: counts of targets, pods, endpoints.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use api::keda::ScaledObject;
use api::provider::Compat;
use api::selector::Selector;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cluster::discovery::Discovery;
use cluster::index::TargetKind;
use cluster::lease::Leadership;
use keda::executor::TARGET_NOT_RESOLVED;
use keda::fallback::{FallbackNeeds, TargetFacts, is_ready};
use kube::Client;
use scalers::backends::{Cluster, ClusterFuture, ConfigSource, PodView};
use serde::Deserialize;
use serde_json::Value;
use tokio::time::Instant;

use super::direct::engine_pods;
use super::leader_client::{LeaderClient, ResourcePath};
use super::store::Store;

/// SampleQuery long a list of pods is as good as new: many triggers ask for the same.
const FRESH: Duration = Duration::from_secs(1);
/// No more lists are remembered.
const MOST: usize = 1024;

/// Looks things up. Cheap to clone.
#[derive(Clone)]
pub(crate) struct ClusterReader {
    client: LeaderClient,
    store: Arc<Mutex<Store>>,
    /// The kinds of targets that are watched, all of which were seen.
    seen: Arc<Mutex<HashSet<TargetKind>>>,
    pods: Arc<Mutex<Lists>>,
    compat: Compat,
}

type Lists = HashMap<(String, String), (Instant, Arc<Vec<SlimPod>>)>;

#[derive(Debug, Deserialize)]
#[serde(default, bound = "T: Deserialize<'de>")]
struct List<T> {
    items: Vec<T>,
}

/// A ConfigMap or Secret, as far as anybody asks.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Held {
    data: Option<BTreeMap<String, String>>,
    binary_data: Option<BTreeMap<String, String>>,
}

impl Held {
    /// What stands under a key; an error does not repeat it.
    fn entry(&self, holder: ConfigSource, key: &str) -> Result<Option<Vec<u8>>, String> {
        let of = |map: &Option<BTreeMap<String, String>>| map.as_ref().and_then(|map| map.get(key).cloned());
        let plain = of(&self.data).filter(|_| holder == ConfigSource::ConfigMap);
        if let Some(text) = plain {
            return Ok(Some(text.into_bytes()));
        }
        let coded = match holder {
            ConfigSource::Secret => of(&self.data),
            ConfigSource::ConfigMap => of(&self.binary_data),
        };
        coded
            .map(|text| STANDARD.decode(text))
            .transpose()
            .map_err(|_| format!("the value of {key:?} is not base64"))
    }
}

impl<T> Default for List<T> {
    fn default() -> Self {
        Self { items: Vec::new() }
    }
}

/// A pod, as far as anybody asks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
struct SlimPod {
    spec: SlimSpec,
    status: SlimStatus,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct SlimSpec {
    node_name: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
struct SlimStatus {
    phase: String,
    conditions: Vec<SlimCondition>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
struct SlimCondition {
    #[serde(rename = "type")]
    type_: String,
    status: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Slice {
    endpoints: Option<Vec<Endpoint>>,
    ports: Option<Vec<Port>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Endpoint {
    addresses: Vec<String>,
    conditions: BTreeMap<String, Option<bool>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Port {
    port: Option<u16>,
}

/// What scalers ask of a cluster, for whoever is no operator.
pub fn cluster_reader(client: Client, discovery: Discovery, compat: Compat) -> Arc<dyn Cluster> {
    let client = LeaderClient::new(client, discovery, Leadership::without_election());
    Arc::new(ClusterReader::new(client, Arc::default(), compat))
}

impl ClusterReader {
    pub(crate) fn new(client: LeaderClient, store: Arc<Mutex<Store>>, compat: Compat) -> Self {
        Self { client, store, seen: Arc::default(), pods: Arc::default(), compat }
    }

    fn store(&self) -> MutexGuard<'_, Store> {
        self.store.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// These kinds of targets are watched, and all of them were seen.
    pub(crate) fn watched(&self, kinds: HashSet<TargetKind>) {
        *self.seen.lock().unwrap_or_else(PoisonError::into_inner) = kinds;
    }

    /// The scale of a target, if it is watched and there.
    pub(crate) fn cached(&self, group: &str, kind: &str, namespace: &str, name: &str) -> Option<i32> {
        let kind = TargetKind::of(group, kind)?;
        if !self.seen.lock().unwrap_or_else(PoisonError::into_inner).contains(&kind) {
            return None;
        }
        self.store().scale(kind, namespace, name).map(|cached| cached.scale.spec_replicas)
    }

    /// Replicas the target is to have (docs/spec/keda.md 3.6).
    pub(crate) async fn current(&self, object: &ScaledObject) -> Result<i32, String> {
        let Some(target) = &object.status.scale_target_gvkr else {
            return Err(TARGET_NOT_RESOLVED.to_owned());
        };
        let (namespace, name) = (&object.metadata.namespace, &object.spec.scale_target_ref.name);
        if let Some(known) = self.cached(&target.group, &target.kind, namespace, name) {
            return Ok(known);
        }
        let is_workload = TargetKind::of(&target.group, &target.kind).is_some();
        if !is_workload && !self.compat.is_strict() {
            // What the scale says is what is scaled; `spec.replicas` may be something else (trap 55), and reading objects of
            // any kind is a right that nobody else here needs.
            let scale = self.client.scale(namespace, name, target).await;
            return scale.map(|held| held.scale.spec_replicas).map_err(|error| error.message);
        }
        let path = ResourcePath {
            group: &target.group,
            version: &target.version,
            plural: &target.resource,
            namespace,
            name,
        };
        let found: Value = self.client.get(path).await.map_err(|error| {
            // In the words of the original, whose cache knows kinds, not resources.
            let absent = is_workload && error.is_not_found();
            if absent {
                format!("{}.{} {name:?} not found", target.kind, target.group)
            } else {
                error.message
            }
        })?;
        let replicas = found.pointer("/spec/replicas");
        match replicas.and_then(Value::as_i64).and_then(|count| i32::try_from(count).ok()) {
            Some(count) => Ok(count),
            // One is what these have when nobody says.
            None if is_workload => Ok(1),
            None => {
                let scale = self.client.scale(namespace, name, target).await;
                scale.map(|held| held.scale.spec_replicas).map_err(|error| error.message)
            }
        }
    }

    /// What has to be found out for a fallback.
    pub(crate) async fn facts(&self, object: &ScaledObject, needs: FallbackNeeds) -> TargetFacts {
        let mut facts = TargetFacts::default();
        if needs.current {
            facts.current = self.current(object).await;
        }
        if needs.ready_pods {
            facts.ready_pods = self.ready_pods(object).await;
        }
        facts
    }

    async fn ready_pods(&self, object: &ScaledObject) -> Result<u32, String> {
        let Some(target) = &object.status.scale_target_gvkr else {
            return Err(TARGET_NOT_RESOLVED.to_owned());
        };
        let namespace = &object.metadata.namespace;
        let scale = self.client.scale(namespace, &object.spec.scale_target_ref.name, target).await;
        let selector = scale.map_err(|error| error.message)?.scale.selector;
        let pods = self.list(namespace, &selector).await?;
        let ready = pods.iter().filter(|pod| {
            let ready = pod.status.conditions.iter().find(|condition| condition.type_ == "Ready");
            is_ready(&pod.status.phase, ready.map(|condition| condition.status.as_str()))
        });
        Ok(u32::try_from(ready.count()).unwrap_or(u32::MAX))
    }

    /// The pods that a selector takes, as the engine sees them.
    pub(crate) async fn pods_of(&self, namespace: &str, selector: &str) -> Result<Vec<engine::Pod>, String> {
        let parsed = Selector::parse(selector).map_err(|error| error.to_string())?;
        let path = ResourcePath::core("pods", namespace, "");
        let list: List<api::pod::Pod> =
            self.client.list(path, selector).await.map_err(|error| error.message)?;
        Ok(engine_pods(namespace, &parsed, &list.items))
    }

    async fn list(&self, namespace: &str, selector: &str) -> Result<Arc<Vec<SlimPod>>, String> {
        let key = (namespace.to_owned(), selector.to_owned());
        if let Some((at, known)) = self.lists().get(&key)
            && at.elapsed() < FRESH
        {
            return Ok(Arc::clone(known));
        }
        let path = ResourcePath::core("pods", namespace, "");
        let list: List<SlimPod> = self.client.list(path, selector).await.map_err(|error| error.message)?;
        let pods = Arc::new(list.items);
        let mut lists = self.lists();
        if lists.len() >= MOST {
            lists.retain(|_, (at, _)| at.elapsed() < FRESH);
        }
        if lists.len() < MOST {
            lists.insert(key, (Instant::now(), Arc::clone(&pods)));
        }
        Ok(pods)
    }

    fn lists(&self) -> MutexGuard<'_, Lists> {
        self.pods.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Cluster for ClusterReader {
    fn pods<'a>(&'a self, namespace: &'a str, selector: &'a Selector) -> ClusterFuture<'a, Vec<PodView>> {
        Box::pin(async move {
            let pods = self.list(namespace, &selector.to_string()).await?;
            let view =
                |pod: &SlimPod| PodView { node: pod.spec.node_name.clone(), phase: pod.status.phase.clone() };
            Ok(pods.iter().map(view).collect())
        })
    }

    fn endpoints<'a>(
        &'a self,
        namespace: &'a str,
        service: &'a str,
    ) -> ClusterFuture<'a, Vec<(String, Option<u16>)>> {
        Box::pin(async move {
            let path = ResourcePath {
                group: "discovery.k8s.io",
                version: "v1",
                plural: "endpointslices",
                namespace,
                name: "",
            };
            let selector = format!("kubernetes.io/service-name={service}");
            let list: List<Slice> = self.client.list(path, &selector).await.map_err(|error| error.message)?;
            let mut found = Vec::new();
            for slice in list.items {
                let port = slice.ports.iter().flatten().find_map(|port| port.port);
                let ready =
                    |endpoint: &&Endpoint| endpoint.conditions.get("ready").copied().flatten() != Some(false);
                let endpoints = slice.endpoints.iter().flatten().filter(ready);
                found.extend(endpoints.flat_map(|one| &one.addresses).map(|address| (address.clone(), port)));
            }
            Ok(found)
        })
    }

    fn entry<'a>(
        &'a self,
        holder: ConfigSource,
        namespace: &'a str,
        name: &'a str,
        key: &'a str,
    ) -> ClusterFuture<'a, Option<Vec<u8>>> {
        Box::pin(async move {
            let plural = match holder {
                ConfigSource::ConfigMap => "configmaps",
                ConfigSource::Secret => "secrets",
            };
            let held: Held = self
                .client
                .get(ResourcePath::core(plural, namespace, name))
                .await
                .map_err(|error| error.message)?;
            held.entry(holder, key)
        })
    }
}
