//! Simulated nodes: pods that are created in a cluster find a node, start, become ready, use cpu and memory for the work
//! they get, and stop.
//!
//! Everything is said and seen through a [`kube::Client`], so nodes run on localkube and on a real control plane alike.
//!
//! ```text
//! view  ─► state ─► requests      what is seen, what follows, what is told
//!          place                  which node a pod goes to
//!          life, status           how it lives there, and how that reads
//!          usage, meter           what it uses
//!          families, metrics      how that reads
//! register, heartbeat             the node objects and their signs of life
//! endpoint                        the port on which each node answers as a kubelet
//! run                             the loop around it
//! ```

mod endpoint;
pub mod families;
mod heartbeat;
mod life;
mod meter;
mod metrics;
mod place;
mod plan;
mod register;
mod requests;
mod run;
mod shape;
mod state;
mod status;
#[cfg(test)]
mod tests;
mod usage;
mod view;

use std::net::Ipv4Addr;

use futures::{StreamExt, TryStreamExt, stream};
use kube::Client;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

pub use meter::{ContainerReading, Meter, NodeReading, PodReading};
pub use plan::{Admission, Capacity, Plan, Workload, annotation};

use endpoint::Identity;
use run::Shared;
use state::State;

/// How many nodes are registered at once.
const AT_ONCE: usize = 16;

/// Running nodes; dropping them ends them, and their objects stay as those of dead machines would.
pub struct Nodes {
    client: Client,
    names: Vec<String>,
    ports: Vec<u16>,
    ca_pem: String,
    shared: Shared,
    tasks: JoinSet<()>,
}

/// Why nodes cannot be started.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no such name.
    #[error("no node can be called {0:?}")]
    Name(String),
    /// The server does not take the node.
    #[error("failed to register node {node}")]
    Register {
        /// Which node.
        node: String,
        /// What the server said.
        source: kube::Error,
    },
    /// There is no port for a kubelet.
    #[error("failed to listen for a kubelet")]
    Listen(#[from] std::io::Error),
    /// There is no certificate for kubelets.
    #[error("failed to make a certificate for kubelets")]
    Certificate(#[from] rcgen::Error),
    /// The certificate cannot be used.
    #[error("failed to set up TLS for kubelets")]
    Tls(#[from] rustls::Error),
}

impl Nodes {
    /// Registers the nodes of `plan` and lets pods live on them.
    pub async fn start(client: Client, plan: Plan) -> Result<Self, Error> {
        let names = plan.names();
        let shared = Shared::new(State::new(plan.clone()), plan.clock);
        let mut tasks = JoinSet::new();
        let identity = Identity::new()?;
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
        let patients = registered.buffered(AT_ONCE).try_collect().await?;
        tasks.spawn(run::run(client.clone(), shared.clone(), plan.namespace.clone()));
        if let Some(period) = plan.heartbeat {
            tasks.spawn(heartbeat::beat(client.clone(), patients, period, plan.clock));
        }
        Ok(Self { client, names, ports, ca_pem: identity.ca_pem, shared, tasks })
    }

    /// Ends the nodes and deletes their objects.
    pub async fn stop(mut self) {
        self.tasks.shutdown().await;
        let deleted = self.names.iter().filter_map(|name| requests::delete_node(name));
        let deleted =
            stream::iter(deleted).map(|request| self.client.request::<serde::de::IgnoredAny>(request));
        // Whoever deleted them before us was quicker.
        deleted.buffer_unordered(AT_ONCE).for_each(|_| async {}).await;
    }

    /// Changes the work of the pods that `workload` selects, or gives them some.
    pub fn set_load(&self, workload: Workload) {
        self.shared.set_load(workload);
    }

    /// The certificate that clients of the kubelets have to trust, as PEM.
    pub fn ca_pem(&self) -> &str {
        &self.ca_pem
    }

    /// The names of the nodes.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The port on which a node answers; absent if there is no such node, or it does not serve.
    pub fn port(&self, node: &str) -> Option<u16> {
        let port = self.ports.get(self.place(node)?).copied();
        port.filter(|port| *port != 0)
    }

    /// What a node's `/metrics/resource` shows, without asking over the network.
    pub fn metrics(&self, node: &str) -> Option<String> {
        self.shared.metrics(self.place(node)?)
    }

    /// Reads the counters of all nodes.
    pub fn meter(&self) -> Meter {
        Meter { shared: self.shared.clone() }
    }

    /// The last error that writing about a pod met, for messages of tests that wait in vain.
    pub fn trouble(&self) -> Option<String> {
        self.shared.trouble()
    }

    fn place(&self, node: &str) -> Option<usize> {
        self.names.iter().position(|name| name == node)
    }
}
