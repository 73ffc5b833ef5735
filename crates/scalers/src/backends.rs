//! What scalers share: connections, answers to the same question, and the cluster.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use api::selector::Selector;

/// A pod, as far as scalers care.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodView {
    /// The node it is on; empty if it is on none.
    pub node: String,
    /// `Pending`, `Running`, `Succeeded`, `Failed` or `Unknown`.
    pub phase: String,
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
}

/// What all scalers of a process share.
#[derive(Clone)]
pub struct Backends {
    /// The cluster.
    pub cluster: Arc<dyn Cluster>,
}
