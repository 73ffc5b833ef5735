//! What scalers share: connections, answers to the same question, and the cluster.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use api::provider::Compat;
use api::selector::Selector;

use crate::web::{Settings, Web};

/// A pod, as far as scalers care.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodView {
    /// The node it is on; empty if it is on none.
    pub node: String,
    /// `Pending`, `Running`, `Succeeded`, `Failed` or `Unknown`.
    pub phase: String,
}

/// What holds small texts in a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holder {
    /// A ConfigMap.
    ConfigMap,
    /// A Secret.
    Secret,
}

/// An answer of the cluster.
pub type FromCluster<'a, T> = Pin<Box<dyn Future<Output = Result<T, String>> + Send + 'a>>;

/// What scalers ask of the cluster they run in. `controllers` answers; `scalers` knows no Kubernetes client.
pub trait Cluster: Send + Sync {
    /// The pods of a namespace that a selector takes.
    fn pods<'a>(&'a self, namespace: &'a str, selector: &'a Selector) -> FromCluster<'a, Vec<PodView>>;

    /// Addresses behind a service that are ready, or not known not to be, and the port if there is one.
    fn endpoints<'a>(
        &'a self,
        namespace: &'a str,
        service: &'a str,
    ) -> FromCluster<'a, Vec<(String, Option<u16>)>>;

    /// What stands under a key of a ConfigMap or Secret; none if that has no such key, an error if there is no such object.
    fn entry<'a>(
        &'a self,
        _holder: Holder,
        _namespace: &'a str,
        _name: &'a str,
        _key: &'a str,
    ) -> FromCluster<'a, Option<Vec<u8>>> {
        Box::pin(async { Err("ConfigMaps and Secrets cannot be read here".to_owned()) })
    }
}

/// What all scalers of a process share.
#[derive(Clone)]
pub struct Backends {
    /// The cluster.
    pub cluster: Arc<dyn Cluster>,
    /// HTTP.
    pub web: Arc<Web>,
    /// How exactly KEDA is imitated.
    pub compat: Compat,
}

impl Backends {
    /// Nothing is connected yet.
    pub fn new(cluster: Arc<dyn Cluster>, settings: Settings, compat: Compat) -> Self {
        Self { cluster, web: Arc::new(Web::new(settings)), compat }
    }

    /// Without a cluster: whoever needs one gets an error.
    pub fn without_cluster(settings: Settings, compat: Compat) -> Self {
        Self::new(Arc::new(Nowhere), settings, compat)
    }
}

/// No cluster at all.
struct Nowhere;

impl Cluster for Nowhere {
    fn pods<'a>(&'a self, _: &'a str, _: &'a Selector) -> FromCluster<'a, Vec<PodView>> {
        Box::pin(async { Err("there is no cluster".to_owned()) })
    }

    fn endpoints<'a>(&'a self, _: &'a str, _: &'a str) -> FromCluster<'a, Vec<(String, Option<u16>)>> {
        Box::pin(async { Err("there is no cluster".to_owned()) })
    }
}
