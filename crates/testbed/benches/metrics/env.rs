//! A real API server with simulated nodes and pods.

use std::time::{Duration, Instant};

use serde_json::Value;
use testbed::direct::{Caller, DirectClient};
use testbed::etcd::Etcd;
use testbed::kubelets::Kubelets;
use testbed::kubelets::fleet::Fleet;
use testbed::{Access, ControlPlane, Options};

const METADATA: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";

fn count(list: &Value) -> usize {
    list["items"].as_array().map_or(0, Vec::len)
}

/// A control plane and its simulated kubelets; they end when this is dropped.
pub(crate) struct MetricsBenchEnv {
    plane: ControlPlane,
    pub(crate) kubelets: Kubelets,
}

impl MetricsBenchEnv {
    /// Starts the control plane and the kubelets, and waits until the API server lists all pods.
    pub(crate) async fn new(fleet: Fleet) -> Self {
        // No other controller may act on these nodes and pods, and no service accounts are needed.
        let options = Options { controller_manager: false, ..Options::default() };
        let plane =
            tokio::task::spawn_blocking(move || ControlPlane::start(&options)).await.unwrap().unwrap();
        let kubelets = Kubelets::new(plane.access().authority().certificate(), 90).unwrap();
        let begun = Instant::now();
        fleet.run(&kubelets).unwrap();
        fleet.store(&Etcd::of(plane.access()), &kubelets).await.unwrap();
        let env = Self { plane, kubelets };
        let (namespace, name) = fleet.pod(fleet.size() - 1);
        let last = format!("/api/v1/namespaces/{namespace}/pods/{name}");
        let client = DirectClient::new(env.access().ports.api_server, &env.admin()).unwrap();
        while client.get(&last).await.map_or(0, |response| response.code) != 200 {
            assert!(begun.elapsed() < Duration::from_mins(5), "the API server does not know {last}");
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        // Many pods share a revision here, and a watch that begins within such a revision misses the rest of it.
        let all = "/api/v1/pods?resourceVersion=0";
        while client.get_as(all, Some(METADATA)).await.map_or(0, |response| count(&response.json()))
            != fleet.size()
        {
            assert!(begun.elapsed() < Duration::from_mins(5), "the API server does not list all pods");
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        eprintln!(
            "{} nodes and {} pods created in {:.0} s",
            fleet.nodes,
            fleet.size(),
            begun.elapsed().as_secs_f64()
        );
        env
    }

    pub(crate) fn access(&self) -> &Access {
        self.plane.access()
    }

    /// The administrator, whose requests are authorized without a SubjectAccessReview.
    pub(crate) fn admin(&self) -> Caller {
        Caller::with_certificate(self.access().admin())
    }

    pub(crate) fn kubeconfig(&self) -> String {
        self.access().kubeconfig_for(self.access().admin())
    }
}
