//! Shared state of all scalers: connections, shared responses, and access to the cluster.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use api::provider::Compat;
use api::selector::Selector;
use locks::MutexExt as _;

use sources::dial::Dialer;

use crate::tenant_files::TenantFiles;
use crate::web::{HttpSettings, SharedHttpClient};
use crate::{ScalerError, ScalerFuture};

/// The fields of a pod that scalers use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodView {
    /// Name of its node; empty before it is scheduled.
    pub node: String,
    /// `Pending`, `Running`, `Succeeded`, `Failed` or `Unknown`.
    pub phase: String,
}

/// The kind of object that a value is read from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConfigSource {
    /// A ConfigMap.
    ConfigMap,
    /// A Secret.
    Secret,
}

/// A pending read from the cluster.
pub type ClusterFuture<'a, T> = ScalerFuture<'a, T>;

/// What scalers read from their cluster. `controllers` implements it, because this crate has no Kubernetes client.
pub trait Cluster: Send + Sync {
    /// The pods of a namespace that match a selector.
    fn pods<'a>(&'a self, namespace: &'a str, selector: &'a Selector) -> ClusterFuture<'a, Vec<PodView>>;

    /// The endpoint addresses of a service that are ready or whose readiness is unknown, with the port if there is one.
    fn endpoints<'a>(
        &'a self,
        namespace: &'a str,
        service: &'a str,
    ) -> ClusterFuture<'a, Vec<(String, Option<u16>)>>;

    /// The value of a key in a ConfigMap or Secret; none without such a key, an error without such an object.
    fn entry<'a>(
        &'a self,
        _holder: ConfigSource,
        _namespace: &'a str,
        _name: &'a str,
        _key: &'a str,
    ) -> ClusterFuture<'a, Option<Vec<u8>>> {
        Box::pin(async {
            Err(ScalerError::caused_by("ConfigMaps and Secrets cannot be read here", NoClusterError))
        })
    }
}

/// Which triggers may use credentials of the operator for clouds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OperatorIdentity {
    /// Every trigger, as in KEDA.
    #[default]
    Tenants,
    /// Only what administrators wrote.
    Administrators,
}

/// Shared state of all scalers of a process.
#[derive(Clone)]
pub struct Backends {
    /// Access to the cluster.
    pub cluster: Arc<dyn Cluster>,
    /// The shared HTTP client.
    pub web: Arc<SharedHttpClient>,
    /// Opens all connections to addresses of triggers; the HTTP client uses it, too.
    pub dialer: Dialer,
    /// Files that triggers may name.
    pub files: TenantFiles,
    /// Which triggers may use credentials of the operator for clouds.
    pub operator_identity: OperatorIdentity,
    /// Whether KEDA's behavior is reproduced exactly.
    pub compat: Compat,
    /// Connection pools and the like of single scalers, by type.
    state: Arc<Mutex<HashMap<TypeId, Arc<dyn Any + Send + Sync>>>>,
}

impl Backends {
    /// Creates the shared state; nothing is connected yet.
    pub fn new(cluster: Arc<dyn Cluster>, settings: HttpSettings, compat: Compat) -> Self {
        let dialer = settings.dialer.clone();
        Self {
            cluster,
            web: Arc::new(SharedHttpClient::new(settings)),
            dialer,
            files: TenantFiles::Nothing,
            operator_identity: OperatorIdentity::default(),
            compat,
            state: Arc::default(),
        }
    }

    /// The files that triggers may name; without this call none.
    pub fn with_files(self, files: TenantFiles) -> Self {
        Self { files, ..self }
    }

    /// The same for other users of the operator's credentials.
    pub fn with_operator_identity(self, operator_identity: OperatorIdentity) -> Self {
        Self { operator_identity, ..self }
    }

    /// Shared state without a cluster: reads from the cluster fail.
    pub fn without_cluster(settings: HttpSettings, compat: Compat) -> Self {
        Self::new(Arc::new(NoCluster), settings, compat)
    }

    /// The shared state of this type, e.g. the connection pools of one scaler; created on first use. Scalers own the type, so
    /// that this module needs to know none of them.
    pub fn state<T: Any + Send + Sync + Default>(&self) -> Arc<T> {
        let mut all = self.state.locked();
        let state = all.entry(TypeId::of::<T>()).or_insert_with(|| Arc::new(T::default()));
        // The entry of a type always has this type.
        Arc::clone(state).downcast().unwrap_or_default()
    }
}

/// Why a read from the cluster fails in a process without one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no cluster")]
pub struct NoClusterError;

impl From<NoClusterError> for ScalerError {
    fn from(error: NoClusterError) -> Self {
        Self::caused_by(error.to_string(), error)
    }
}

/// A cluster whose reads all fail.
struct NoCluster;

impl Cluster for NoCluster {
    fn pods<'a>(&'a self, _: &'a str, _: &'a Selector) -> ClusterFuture<'a, Vec<PodView>> {
        Box::pin(async { Err(ScalerError::from(NoClusterError)) })
    }

    fn endpoints<'a>(&'a self, _: &'a str, _: &'a str) -> ClusterFuture<'a, Vec<(String, Option<u16>)>> {
        Box::pin(async { Err(ScalerError::from(NoClusterError)) })
    }
}
