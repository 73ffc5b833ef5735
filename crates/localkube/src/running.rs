//! A running cluster: its API and its controllers.

use std::io;

use tokio::task::JoinSet;
use tower::ServiceExt as _;

use crate::access::{Access, User};
use crate::bootstrap;
use crate::clock::Clock;
use crate::cluster::{Cluster, Options};
use crate::housekeeping;
use crate::http::Api;
use crate::server::Server;
use crate::workloads::{self, Workloads};

/// A running cluster; its controllers stop when this is dropped.
pub struct Running {
    cluster: Cluster,
    #[allow(dead_code, reason = "held for their end")]
    tasks: JoinSet<()>,
    #[allow(dead_code, reason = "held for its end")]
    workloads: Option<Workloads>,
}

impl Cluster {
    /// Starts a cluster with its initial objects.
    pub async fn start(options: Options) -> io::Result<Running> {
        let access = Access::new().map_err(io::Error::other)?;
        let (cluster, notices_received) = Self::empty(&options, access);
        let mut tasks = JoinSet::new();
        bootstrap::fill(&cluster).await.map_err(io::Error::other)?;
        tasks.spawn(housekeeping::run(cluster.clone(), notices_received));
        let mut running = Running { cluster, tasks, workloads: None };
        if options.workloads {
            running.workloads = Some(workloads::start(running.client(), running.cluster.0.clock));
        }
        Ok(running)
    }
}

impl Running {
    /// The API in this process.
    pub fn api(&self) -> Api {
        Api::new(self.cluster.clone())
    }

    /// A client in this process, authenticated as administrator.
    pub fn client(&self) -> kube::Client {
        let api = self.api().map_request(|mut request: http::Request<kube::client::Body>| {
            request.extensions_mut().insert(User::admin());
            request
        });
        kube::Client::new(api, "default")
    }

    /// The clock of the cluster.
    pub fn clock(&self) -> Clock {
        self.cluster.0.clock
    }

    /// The state of the cluster.
    pub fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    /// Serves the cluster on a free port of this machine.
    pub async fn serve(&self) -> io::Result<Server> {
        Server::start(self.cluster.clone(), 0).await
    }
}
