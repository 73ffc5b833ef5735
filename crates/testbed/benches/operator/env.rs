//! localkube in a process of its own, so that its work and its memory are counted apart.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};

use api::yaml::{SourceFile, parse};
use cluster::index::Target;
use cluster::watch::{self, WatchEvent};
use futures::{Stream, StreamExt as _};
use http::Method;
use kube::Client;
use localkube::{Cluster, Options};
use serde_json::Value;
use testbed::aggregate::Aggregated;
use testbed::harness;

use crate::workloads::{send, write};

/// The word with which this program becomes the server.
pub(crate) const SERVER: &str = "serve";

/// A cluster with KEDA's definitions; it ends when this is dropped.
pub(crate) struct OperatorBenchEnv {
    child: Child,
    /// When this is closed, the other process ends.
    words: Option<ChildStdin>,
    pub(crate) kubeconfig: String,
    pub(crate) client: Client,
}

/// The other process: serves until nobody speaks to it any more.
pub(crate) async fn serve(file: &str) {
    let running = Cluster::start(Options { workloads: false, ..Options::default() }).await.unwrap();
    let server = running.serve().await.unwrap();
    std::fs::write(file, &server.kubeconfig).unwrap();
    println!("ready");
    let _ = tokio::task::spawn_blocking(|| std::io::stdin().lines().map_while(Result::ok).count()).await;
}

impl OperatorBenchEnv {
    pub(crate) async fn start() -> Self {
        let (child, words, kubeconfig) = tokio::task::spawn_blocking(spawn).await.unwrap();
        let client =
            harness::connect(&kubeconfig).await.unwrap_or_else(|_| panic!("localkube cannot be reached"));
        for definition in definitions() {
            let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
            write(&client, Method::POST, path, &definition).await;
        }
        Self { child, words, kubeconfig, client }
    }
}

impl Drop for OperatorBenchEnv {
    fn drop(&mut self) {
        drop(self.words.take());
        let _ = self.child.wait();
    }
}

fn spawn() -> (Child, Option<ChildStdin>, String) {
    let file = std::env::temp_dir().join(format!("bench-operator-{}.kubeconfig", std::process::id()));
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.arg(SERVER).arg(&file).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let words = child.stdin.take();
    let mut said = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut said).unwrap();
    assert_eq!(said.trim(), "ready", "the server ended");
    let kubeconfig = std::fs::read_to_string(&file).unwrap();
    let _ = std::fs::remove_file(&file);
    (child, words, kubeconfig)
}

/// Our definitions of KEDA's resources.
fn definitions() -> Vec<Value> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/crds/keda");
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let source = SourceFile::new(path.to_string_lossy(), std::fs::read_to_string(&path).unwrap());
        found.extend(parse(&source).unwrap().iter().map(|one| one.decode_lenient::<Value>().unwrap()));
    }
    found
}

/// Has the API server ask whoever listens on a port for external metrics.
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
    // Somebody else may have been registered.
    send(client, Method::DELETE, &own, &Value::Null).await;
    write(client, Method::POST, all, &objects[1]).await;
}

/// Names and counts of deployments as they change, and of those that were there when the watch began.
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
