//! Reads of the cluster for decisions and scalers: replica counts, pods, endpoints, Secrets and ConfigMaps.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use api::keda::ScaledObject;
use api::names;
use api::provider::Compat;
use api::selector::{Selector, SelectorParseError};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cluster::discovery::Discovery;
use cluster::index::{PodIndex, TargetKind};
use cluster::lease::Leadership;
use cluster::request::ApiError;
use keda::OperationError;
use keda::executor::TARGET_NOT_RESOLVED;
use keda::fallback::{FallbackNeeds, TargetFacts, is_ready};
use kube::Client;
use locks::MutexExt as _;
use runtime::SingleFlight;
use scalers::ScalerError;
use scalers::backends::{Cluster, ClusterFuture, ConfigSource, PodView};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use sources::tenant::NamespaceParts;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit};
use tokio::time::Instant;

use super::leader_client::{LeaderClient, ResourcePath};
use super::secret_access::{RestrictedSecret, SecretAccess};
use super::store::Store;

/// How long a list of pods is reused: many triggers list the same pods.
const POD_LIST_MAX_AGE: Duration = Duration::from_secs(1);
/// Lists of pods that are cached.
const MAX_CACHED_POD_LISTS: usize = 1024;
/// Lists of pods and EndpointSlices that are requested and decoded at a time.
const MAX_LISTS: usize = 32;
/// The same for the triggers of one of several namespaces.
const MAX_NAMESPACE_LISTS: usize = 16;
/// Large lists that are requested and decoded at a time.
const MAX_LARGE_LISTS: usize = 4;
/// The same for the triggers of one of several namespaces.
const MAX_NAMESPACE_LARGE_LISTS: usize = 2;

/// Why a read for a decision or a scaler failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ReadError {
    /// The target is not resolved yet.
    #[error("{TARGET_NOT_RESOLVED}")]
    TargetNotResolved,
    /// The workload does not exist. KEDA's cached client names the kind, not the resource.
    #[error("{kind}.{group} {name:?} not found")]
    WorkloadNotFound { kind: String, group: String, name: String },
    /// The request failed.
    #[error(transparent)]
    Request(#[from] ApiError),
    /// Secrets are read in one namespace only.
    #[error(transparent)]
    Restricted(#[from] RestrictedSecret),
    /// The selector cannot be parsed.
    #[error(transparent)]
    Selector(#[from] SelectorParseError),
    /// A value is not base64. The text does not repeat the value.
    #[error("the value of {0:?} is not base64")]
    NotBase64(String),
}

/// Reads the cluster. Cheap to clone.
#[derive(Clone)]
pub(crate) struct ClusterReader {
    client: LeaderClient,
    store: Arc<Mutex<Store>>,
    /// The kinds of targets whose watch is synced.
    seen: Arc<Mutex<HashSet<TargetKind>>>,
    pods: Arc<Mutex<PodLists>>,
    /// Lists of pods under way.
    listing: Arc<SingleFlight<(String, String), PodList>>,
    compat: Compat,
    secrets: SecretAccess,
}

/// Limits lists of objects that tenants fill, so that only some of such lists are in memory.
struct ListLimiter {
    all: Semaphore,
    parts: NamespaceParts<Semaphore>,
}

/// Permission to request a list.
struct ListPermits {
    _of_namespace: Option<OwnedSemaphorePermit>,
    _of_all: Option<SemaphorePermit<'static>>,
}

static LISTS: ListLimiter = ListLimiter::new(MAX_LISTS, || Semaphore::new(MAX_NAMESPACE_LISTS));
static LARGE_LISTS: ListLimiter =
    ListLimiter::new(MAX_LARGE_LISTS, || Semaphore::new(MAX_NAMESPACE_LARGE_LISTS));

impl ListLimiter {
    const fn new(all: usize, new_part: fn() -> Semaphore) -> Self {
        Self { all: Semaphore::const_new(all), parts: NamespaceParts::new(new_part) }
    }

    /// Waits for permits. That of the namespace is first: a list that waits for others of its namespace holds nothing that others
    /// wait for. The semaphores are never closed.
    async fn acquire(&'static self, namespace: &str) -> ListPermits {
        let of_namespace = match self.parts.of_several(&Arc::from(namespace)) {
            Some(part) => part.acquire_owned().await.ok(),
            None => None,
        };
        ListPermits { _of_namespace: of_namespace, _of_all: self.all.acquire().await.ok() }
    }
}

type PodList = Result<Arc<Vec<SlimPod>>, ApiError>;
type PodLists = HashMap<(String, String), (Instant, Arc<Vec<SlimPod>>)>;

/// The data of a ConfigMap or Secret.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct KeyedData {
    data: Option<BTreeMap<String, String>>,
    binary_data: Option<BTreeMap<String, String>>,
}

impl KeyedData {
    /// The value of a key. An error does not repeat the value.
    fn entry(&self, holder: ConfigSource, key: &str) -> Result<Option<Vec<u8>>, ReadError> {
        let of = |map: &Option<BTreeMap<String, String>>| map.as_ref().and_then(|map| map.get(key).cloned());
        let plain = of(&self.data).filter(|_| holder == ConfigSource::ConfigMap);
        if let Some(text) = plain {
            return Ok(Some(text.into_bytes()));
        }
        let coded = match holder {
            ConfigSource::Secret => of(&self.data),
            ConfigSource::ConfigMap => of(&self.binary_data),
        };
        coded.map(|text| STANDARD.decode(text)).transpose().map_err(|_| ReadError::NotBase64(key.to_owned()))
    }
}

/// The fields of a pod that scalers and fallbacks need.
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
struct EndpointSlice {
    endpoints: Option<Vec<Endpoint>>,
    ports: Option<Vec<EndpointPort>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Endpoint {
    addresses: Vec<String>,
    conditions: BTreeMap<String, Option<bool>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct EndpointPort {
    port: Option<u16>,
}

/// The cluster for scalers outside of an operator.
pub fn cluster_reader(client: Client, discovery: Discovery, compat: Compat) -> Arc<dyn Cluster> {
    let client = LeaderClient::new(client, discovery, Leadership::without_election());
    Arc::new(ClusterReader::new(client, Arc::default(), compat, SecretAccess::default()))
}

impl ClusterReader {
    pub(crate) fn new(
        client: LeaderClient,
        store: Arc<Mutex<Store>>,
        compat: Compat,
        secrets: SecretAccess,
    ) -> Self {
        Self {
            client,
            store,
            seen: Arc::default(),
            pods: Arc::default(),
            listing: Arc::default(),
            compat,
            secrets,
        }
    }

    fn store(&self) -> MutexGuard<'_, Store> {
        self.store.locked()
    }

    /// Sets the kinds of targets whose watch is synced.
    pub(crate) fn set_watched_kinds(&self, kinds: HashSet<TargetKind>) {
        *self.seen.locked() = kinds;
    }

    /// The replica count of a target from the store, if its kind is watched.
    pub(crate) fn cached(&self, group: &str, kind: &str, namespace: &str, name: &str) -> Option<i32> {
        let kind = TargetKind::of(group, kind)?;
        if !self.seen.locked().contains(&kind) {
            return None;
        }
        self.store().scale(kind, namespace, name).map(|cached| cached.scale.spec_replicas.get())
    }

    /// `spec.replicas` of the target (docs/spec/keda.md 3.6).
    pub(crate) async fn current(&self, object: &ScaledObject) -> Result<i32, ReadError> {
        let (namespace, name) = (&object.metadata.namespace, &object.spec.scale_target_ref.name);
        // The status of an object whose name was removed still has the target, and a request without a name is a list.
        let resolved = object.status.scale_target_gvkr.as_ref().filter(|_| !name.is_empty());
        let Some(target) = resolved else { return Err(ReadError::TargetNotResolved) };
        if let Some(known) = self.cached(&target.group, &target.kind, namespace, name) {
            return Ok(known);
        }
        let is_workload = TargetKind::of(&target.group, &target.kind).is_some();
        if !is_workload && !self.compat.is_strict() {
            // For custom resources the scale counts: `spec.replicas` may mean something else (docs/spec/keda.md, trap 55), and reading
            // objects of any kind would need a further permission.
            return Ok(self.client.scale(namespace, name, target).await?.scale.spec_replicas.get());
        }
        let path = ResourcePath {
            group: &target.group,
            version: &target.version,
            plural: &target.resource,
            namespace,
            name,
        };
        let found: Value = self.client.get(path).await.map_err(|error| {
            if is_workload && error.is_not_found() {
                let (kind, group) = (target.kind.clone(), target.group.clone());
                ReadError::WorkloadNotFound { kind, group, name: name.clone() }
            } else {
                error.into()
            }
        })?;
        let replicas = found.pointer("/spec/replicas");
        match replicas.and_then(Value::as_i64).and_then(|count| i32::try_from(count).ok()) {
            Some(count) => Ok(count),
            // The API server's default for workloads.
            None if is_workload => Ok(1),
            None => Ok(self.client.scale(namespace, name, target).await?.scale.spec_replicas.get()),
        }
    }

    /// Reads what a fallback needs.
    pub(crate) async fn facts(&self, object: &ScaledObject, needs: FallbackNeeds) -> TargetFacts {
        let mut facts = TargetFacts::default();
        if needs.current {
            facts.current = self.current(object).await.map_err(OperationError::from_error);
        }
        if needs.ready_pods {
            facts.ready_pods = self.ready_pods(object).await.map_err(OperationError::from_error);
        }
        facts
    }

    async fn ready_pods(&self, object: &ScaledObject) -> Result<u32, ReadError> {
        let Some(target) = &object.status.scale_target_gvkr else {
            return Err(ReadError::TargetNotResolved);
        };
        let namespace = &object.metadata.namespace;
        let scale = self.client.scale(namespace, &object.spec.scale_target_ref.name, target).await;
        let pods = self.list(namespace, &scale?.scale.selector).await?;
        let ready = pods.iter().filter(|pod| {
            let ready = pod.status.conditions.iter().find(|condition| condition.type_ == "Ready");
            is_ready(&pod.status.phase, ready.map(|condition| condition.status.as_str()))
        });
        Ok(u32::try_from(ready.count()).unwrap_or(u32::MAX))
    }

    /// The pods that match a selector, as the engine takes them.
    pub(crate) async fn pods_of(
        &self,
        namespace: &str,
        selector: &str,
    ) -> Result<Vec<engine::Pod>, ReadError> {
        let parsed = Selector::parse(selector)?;
        let path = ResourcePath::core("pods", namespace, "");
        let list: Vec<api::pod::Pod> = self.limited_list(path, selector).await?;
        Ok(engine_pods(namespace, &parsed, &list))
    }

    async fn list(&self, namespace: &str, selector: &str) -> PodList {
        let key = (namespace.to_owned(), selector.to_owned());
        if let Some((at, known)) = self.lists().get(&key)
            && at.elapsed() < POD_LIST_MAX_AGE
        {
            return Ok(Arc::clone(known));
        }
        let reader = self.clone();
        self.listing.run(key.clone(), || async move { reader.list_now(key).await }).await
    }

    /// Requests the list of a namespace and a selector.
    async fn list_now(&self, key: (String, String)) -> PodList {
        let (namespace, selector) = &key;
        let pods = self.limited_list(ResourcePath::core("pods", namespace, ""), selector).await?;
        let pods = Arc::new(pods);
        let mut lists = self.lists();
        if lists.len() >= MAX_CACHED_POD_LISTS {
            lists.retain(|_, (at, _)| at.elapsed() < POD_LIST_MAX_AGE);
        }
        if lists.len() < MAX_CACHED_POD_LISTS {
            lists.insert(key, (Instant::now(), Arc::clone(&pods)));
        }
        Ok(pods)
    }

    /// Lists a collection that a tenant fills. Most lists are small and need not wait for large ones, of which only a few are in
    /// memory; a list that proves to be large is requested again.
    async fn limited_list<T: DeserializeOwned + Send + 'static>(
        &self,
        path: ResourcePath<'_>,
        selector: &str,
    ) -> Result<Vec<T>, ApiError> {
        {
            let _permits = LISTS.acquire(path.namespace).await;
            match self.client.small_list(path, selector).await {
                Err(error) if error.is_too_large() => {}
                listed => return listed,
            }
        }
        let _permits = LARGE_LISTS.acquire(path.namespace).await;
        self.client.large_list(path, selector).await
    }

    fn lists(&self) -> MutexGuard<'_, PodLists> {
        self.pods.locked()
    }
}

/// An error for scalers, with the same text.
fn scaler_error(error: impl Into<ReadError>) -> ScalerError {
    let error = error.into();
    ScalerError::caused_by(error.to_string(), error)
}

/// The pods of a list, as the engine takes them.
fn engine_pods(namespace: &str, selector: &Selector, list: &[api::pod::Pod]) -> Vec<engine::Pod> {
    let mut pods = PodIndex::default();
    for pod in list {
        pods.apply(pod);
    }
    pods.matching(namespace, selector)
}

impl Cluster for ClusterReader {
    fn pods<'a>(&'a self, namespace: &'a str, selector: &'a Selector) -> ClusterFuture<'a, Vec<PodView>> {
        Box::pin(async move {
            let pods = self.list(namespace, &selector.to_string()).await.map_err(scaler_error)?;
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
            // The name comes from a URL of a tenant: other characters could select more than the slices of one Service.
            if !names::dns_label_faults(service).is_empty() {
                return Err(ScalerError::new(format!("{service:?} is not the name of a Service")));
            }
            let selector = format!("kubernetes.io/service-name={service}");
            let slices: Vec<EndpointSlice> =
                self.limited_list(path, &selector).await.map_err(scaler_error)?;
            let mut found = Vec::new();
            for slice in slices {
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
                ConfigSource::Secret => {
                    self.secrets.check(namespace, name).map_err(scaler_error)?;
                    "secrets"
                }
            };
            let held: KeyedData =
                self.client.get(ResourcePath::core(plural, namespace, name)).await.map_err(scaler_error)?;
            held.entry(holder, key).map_err(scaler_error)
        })
    }
}

#[cfg(test)]
mod tests;
