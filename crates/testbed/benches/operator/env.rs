//! localkube with KEDA's definitions, in a separate process.

use api::yaml::{SourceFile, parse};
use cluster::index::Target;
use cluster::watch::{self, WatchEvent};
use futures::{Stream, StreamExt as _};
use http::Method;
use kube::Client;
use localkube::{Cluster, Options};
use serde_json::Value;
use testbed::aggregate::Aggregated;
use testbed::harness::{self, send, write};
use testbed::{Access, ControlPlane};

use crate::shared::definitions::define_keda_resources;
use crate::shared::server::{ServerProcess, ready};

/// A cluster with KEDA's definitions; it ends when this is dropped.
pub(crate) struct OperatorBenchEnv {
    pub(crate) kubeconfig: String,
    pub(crate) client: Client,
    _server: ServerProcess,
}

/// Runs in the server process: serves until its standard input is closed.
pub(crate) async fn serve(file: &str) {
    let running = Cluster::start(Options { workloads: false, ..Options::default() }).await.unwrap();
    let server = running.serve().await.unwrap();
    ready(file, &server.kubeconfig, |_| {}).await;
}

impl OperatorBenchEnv {
    pub(crate) async fn start() -> Self {
        let server = ServerProcess::start().await;
        let kubeconfig = server.kubeconfig.clone();
        let client = harness::connect(&kubeconfig).await.unwrap();
        define_keda_resources(&client).await;
        Self { kubeconfig, client, _server: server }
    }
}

/// Registers the server on a local port as the server of `external.metrics.k8s.io`.
pub(crate) async fn register(client: &Client, namespace: &str, port: u16) {
    let api = Aggregated {
        group: "external.metrics.k8s.io".into(),
        version: "v1beta1".into(),
        namespace: namespace.into(),
        service: "external-metrics".into(),
        port,
        authority: None,
    };
    let source = SourceFile::new("manifest", api.manifest());
    let objects: Vec<Value> =
        parse(&source).unwrap().iter().map(|one| one.decode_lenient::<Value>().unwrap()).collect();
    write(client, Method::POST, &format!("/api/v1/namespaces/{namespace}/services"), &objects[0]).await;
    let all = "/apis/apiregistration.k8s.io/v1/apiservices";
    let own = format!("{all}/{}", api.name());
    // Another server may still be registered.
    send(client, Method::DELETE, &own, None).await;
    write(client, Method::POST, all, &objects[1]).await;
}

/// The names and replica counts of Deployments: of all that exist when the watch begins, then of each that changes.
pub(crate) fn counts(client: &Client, namespace: &str) -> impl Stream<Item = (String, i32)> + use<> {
    let source = watch::WatchSource::new(format!("/apis/apps/v1/namespaces/{namespace}/deployments"));
    let (_, changes) = watch::watch::<Target>(client.clone(), source);
    changes.filter_map(|change| async {
        match change {
            WatchEvent::Applied(target) => Some((target.metadata.name, target.spec.replicas.unwrap_or(1))),
            _ => None,
        }
    })
}

/// Runs a comparison on a real control plane without kube-controller-manager, so that no other controller acts on Deployments and HPAs.
pub(crate) async fn on_control_plane(compare: impl AsyncFnOnce(&Access) -> bool) -> bool {
    let options = testbed::Options { controller_manager: false, ..testbed::Options::default() };
    let plane = tokio::task::spawn_blocking(move || ControlPlane::start(&options)).await.unwrap();
    match plane {
        Ok(plane) => compare(plane.access()).await,
        Err(error) => {
            eprintln!("{error}");
            false
        }
    }
}
