//! Simulated nodes: they schedule the pods of a cluster, start and stop them, and simulate their CPU and memory usage
//! under load.
//!
//! The nodes use only a [`kube::Client`], so they run on localkube and on a real control plane.
//!
//! ```text
//! view  ─► state ─► requests      observed objects, state, writes
//!          scheduling             which node a pod is placed on
//!          lifecycle, status      the stages of a pod, and its status
//!          usage, meter           simulated usage
//!          families               metric families of a kubelet
//!          kubelet_metrics        the text of `/metrics/resource`
//! register, heartbeat             node objects and leases
//! endpoint                        the kubelet port of each node
//! loss                            nodes that are lost and come back
//! run                             the event loop
//! ```

mod endpoint;
pub mod families;
mod heartbeat;
mod kubelet_metrics;
mod lifecycle;
mod loss;
mod meter;
mod plan;
mod register;
mod requests;
mod run;
mod scheduling;
mod state;
mod status;
mod template;
#[cfg(test)]
mod tests;
mod usage;
mod view;

use std::net::Ipv4Addr;

use futures::{StreamExt, TryStreamExt, stream};
use kube::Client;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

pub use loss::NodeLossError;
pub use meter::{ContainerReading, NodeReading, PodReading};
pub use plan::{Admission, Capacity, Plan, Workload, annotation};
pub use run::Meter;

use endpoint::KubeletTls;
use run::SharedState;
use state::NodesState;

/// How many nodes are registered concurrently.
const MAX_CONCURRENT_REGISTRATIONS: usize = 16;

/// Running nodes. Dropping them stops them; their objects stay.
pub struct Nodes {
    client: Client,
    names: Vec<String>,
    ports: Vec<u16>,
    ca_pem: String,
    shared: SharedState,
    tasks: JoinSet<()>,
}

/// Nodes could not be started.
#[derive(Debug, thiserror::Error)]
pub enum NodesError {
    /// The name is invalid.
    #[error("no node can be called {0:?}")]
    Name(String),
    /// The server refused the node.
    #[error("failed to register node {node}")]
    Register {
        /// The node's name.
        node: String,
        /// The server's error.
        source: kube::Error,
    },
    /// Listening for a kubelet failed.
    #[error("failed to listen for a kubelet")]
    Listen(#[from] std::io::Error),
    /// The kubelets' certificate could not be created.
    #[error("failed to make a certificate for kubelets")]
    Certificate(#[from] crate::access::PkiError),
    /// The certificate is not usable.
    #[error("failed to set up TLS for kubelets")]
    Tls(#[from] rustls::Error),
}

impl Nodes {
    /// Registers the nodes of `plan` and runs pods on them.
    pub async fn start(client: Client, plan: Plan) -> Result<Self, NodesError> {
        let names = plan.names();
        let shared = SharedState::new(NodesState::new(plan.clone()), plan.clock);
        let mut tasks = JoinSet::new();
        let identity = KubeletTls::new()?;
        let mut ports = vec![0; names.len()];
        if plan.serve {
            for (node, port) in ports.iter_mut().enumerate() {
                let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
                *port = listener.local_addr()?.port();
                tasks.spawn(identity.serve(listener, node, shared.clone(), plan.admission));
            }
        }
        let registered = stream::iter(names.iter().zip(&ports));
        let registered = registered.map(|(name, port)| register::register(&client, &plan, name, *port));
        let patients = registered.buffered(MAX_CONCURRENT_REGISTRATIONS).try_collect().await?;
        tasks.spawn(run::run(client.clone(), shared.clone(), plan.namespace.clone()));
        if let Some(period) = plan.heartbeat {
            let state = shared.clone();
            let is_lost = move |node| state.is_lost(node);
            tasks.spawn(heartbeat::beat(client.clone(), patients, period, plan.clock, is_lost));
        }
        Ok(Self { client, names, ports, ca_pem: identity.ca_pem, shared, tasks })
    }

    /// Stops the nodes and deletes their objects.
    pub async fn stop(mut self) {
        self.tasks.shutdown().await;
        let deleted = self.names.iter().filter_map(|name| requests::delete_node(name));
        let deleted =
            stream::iter(deleted).map(|request| self.client.request::<serde::de::IgnoredAny>(request));
        // A node object may already be deleted.
        deleted.buffer_unordered(MAX_CONCURRENT_REGISTRATIONS).for_each(|_| async {}).await;
    }

    /// Sets the load of the pods that `workload` selects.
    pub fn set_load(&self, workload: Workload) {
        self.shared.set_load(workload);
    }

    /// The CA certificate of the kubelets, as PEM.
    pub fn ca_pem(&self) -> &str {
        &self.ca_pem
    }

    /// The names of the nodes.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The kubelet port of a node; `None` if there is no such node or it does not listen.
    pub fn port(&self, node: &str) -> Option<u16> {
        let port = self.ports.get(self.node_index(node)?).copied();
        port.filter(|port| *port != 0)
    }

    /// The `/metrics/resource` text of a node, without a request.
    pub fn metrics(&self, node: &str) -> Option<String> {
        self.shared.metrics(self.node_index(node)?)
    }

    /// Reads the counters of all nodes.
    pub fn meter(&self) -> Meter {
        Meter { shared: self.shared.clone() }
    }

    /// The last error of a pod write, for messages of tests that time out.
    pub fn last_error(&self) -> Option<String> {
        self.shared.last_error()
    }

    fn node_index(&self, node: &str) -> Option<usize> {
        self.names.iter().position(|name| name == node)
    }
}
