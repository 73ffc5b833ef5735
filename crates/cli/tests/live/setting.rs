//! A cluster with a folder, and the binary run against it.

use std::net::{Ipv4Addr, TcpListener};
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use http::{Method, Request};
use localkube::{Cluster, Options, Running, Server};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};

use crate::controller::Controller;
use crate::sample;

/// The timeout of a wait, which is much longer than any wait here takes.
const WAIT_TIMEOUT: Duration = Duration::from_mins(1);
/// Below the ephemeral ports of the system, which an outgoing connection might take before the program listens.
const FIRST_PORT: u32 = 12_000;
const PORT_COUNT: u32 = 8_000;

/// A port on which no program listens, and which this process does not return again.
pub(crate) fn free_port() -> u16 {
    static GIVEN: AtomicU32 = AtomicU32::new(0);
    // Processes that run at the same time start at different ports.
    let begin = std::process::id().wrapping_mul(101);
    let next = || begin.wrapping_add(GIVEN.fetch_add(1, Ordering::Relaxed)) % PORT_COUNT + FIRST_PORT;
    let ports = std::iter::repeat_with(next).take(PORT_COUNT as usize);
    let is_free = |port: &u16| TcpListener::bind((Ipv4Addr::UNSPECIFIED, *port)).is_ok();
    ports.filter_map(|port| u16::try_from(port).ok()).find(is_free).unwrap()
}

/// A cluster, and its kubeconfig.
pub(crate) struct Setting {
    cluster: Option<(Running, Server)>,
    pub(crate) folder: PathBuf,
}

/// The result of a run.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

/// A run that has not ended.
pub(crate) struct Going {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Setting {
    pub(crate) async fn new() -> Self {
        Self::with(Options { workloads: false, ..Options::default() }).await
    }

    /// Starts a cluster with these options.
    pub(crate) async fn with(options: Options) -> Self {
        let running = Cluster::start(options).await.unwrap();
        let server = running.serve().await.unwrap();
        let folder = folder();
        std::fs::write(folder.join("kubeconfig"), &server.kubeconfig).unwrap();
        let setting = Self { cluster: Some((running, server)), folder };
        let shop = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}});
        setting.send(Method::POST, "/api/v1/namespaces", &shop).await;
        setting
    }

    /// A kubeconfig with an address at which no server listens.
    pub(crate) fn nowhere() -> Self {
        let folder = folder();
        let config = json!({"apiVersion": "v1", "kind": "Config", "current-context": "a",
            "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:1"}}], "users": [{"name": "u", "user": {}}],
            "contexts": [{"name": "a", "context": {"cluster": "c", "user": "u"}}]});
        std::fs::write(folder.join("kubeconfig"), config.to_string()).unwrap();
        Self { cluster: None, folder }
    }

    /// A client for the cluster.
    pub(crate) fn client(&self) -> kube::Client {
        self.cluster.as_ref().unwrap().0.client()
    }

    pub(crate) async fn send(&self, method: Method, path: &str, body: &Value) {
        let client = self.cluster.as_ref().unwrap().0.client();
        let request = Request::builder().method(method).uri(path).header("content-type", "application/json");
        let _: Value = client.request(request.body(body.to_string().into_bytes()).unwrap()).await.unwrap();
    }

    /// Creates an HPA.
    pub(crate) async fn hpa(&self, namespace: &str, name: &str) {
        let mut object = sample::hpa(name);
        object["apiVersion"] = json!("autoscaling/v2");
        object["kind"] = json!("HorizontalPodAutoscaler");
        object["metadata"] = json!({"name": name, "labels": {"name": name}});
        let path = format!("/apis/autoscaling/v2/namespaces/{namespace}/horizontalpodautoscalers");
        self.send(Method::POST, &path, &object).await;
    }

    /// Writes the status of an HPA.
    pub(crate) async fn status(&self, namespace: &str, name: &str, status: &Value) {
        let path =
            format!("/apis/autoscaling/v2/namespaces/{namespace}/horizontalpodautoscalers/{name}/status");
        let client = self.cluster.as_ref().unwrap().0.client();
        let request = Request::patch(path).header("content-type", "application/merge-patch+json");
        let body = json!({"status": status}).to_string().into_bytes();
        let _: Value = client.request(request.body(body).unwrap()).await.unwrap();
    }

    /// Starts a controller behind the cluster.
    pub(crate) async fn controller(&self) -> Controller {
        let (controller, port) = Controller::start().await;
        self.register(port).await;
        controller
    }

    /// Registers the server on a local port as the server of the decisions API.
    pub(crate) async fn register(&self, port: u16) {
        self.register_api("decisions.plimsoll.dev", "v1alpha1", "plimsoll", port).await;
    }

    /// Registers the server on a local port as the server of an API.
    pub(crate) async fn register_api(&self, group: &str, version: &str, service: &str, port: u16) {
        let object = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": service},
            "spec": {"type": "ExternalName", "externalName": "localhost", "ports": [{"port": port}]}});
        let request =
            Request::post("/api/v1/namespaces/default/services").header("content-type", "application/json");
        // Several APIs may have one Service.
        let _ = self.client().request::<Value>(request.body(object.to_string().into_bytes()).unwrap()).await;
        let api = json!({"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
            "metadata": {"name": format!("{version}.{group}")},
            "spec": {"group": group, "version": version, "groupPriorityMinimum": 100,
                "versionPriority": 100, "insecureSkipTLSVerify": true,
                "service": {"name": service, "namespace": "default", "port": port}}});
        self.send(Method::POST, "/apis/apiregistration.k8s.io/v1/apiservices", &api).await;
    }

    /// The binary with arguments, which reads this kubeconfig.
    pub(crate) fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_plimsoll"));
        command.args(words).current_dir(&self.folder).kill_on_drop(true).stdin(Stdio::null());
        command.env("KUBECONFIG", self.folder.join("kubeconfig")).env("HOME", &self.folder).env("TZ", "UTC");
        command
    }

    /// Runs the binary until it ends.
    pub(crate) async fn run(&self, words: &[&str]) -> Ended {
        let output = tokio::time::timeout(WAIT_TIMEOUT, self.command(words).output()).await.unwrap().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        Ended { code: output.status.code().unwrap(), out: text(output.stdout), err: text(output.stderr) }
    }

    /// Starts the binary.
    pub(crate) fn start(&self, words: &[&str]) -> Going {
        let mut child = self.command(words).stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Going { child, lines }
    }
}

impl Drop for Setting {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

impl Going {
    /// The next line of output.
    pub(crate) async fn line(&mut self) -> String {
        tokio::time::timeout(WAIT_TIMEOUT, self.lines.next_line()).await.unwrap().unwrap().unwrap()
    }

    /// Sends SIGINT, as Ctrl-C does.
    pub(crate) fn interrupt(&self) {
        self.signal("-INT");
    }

    /// Sends SIGTERM, as a kubelet does.
    pub(crate) fn terminate(&self) {
        self.signal("-TERM");
    }

    fn signal(&self, signal: &str) {
        let id = self.child.id().unwrap().to_string();
        let sent = std::process::Command::new("kill").args([signal, &id]).status().unwrap();
        assert!(sent.success());
    }

    /// Waits until the process has ended.
    pub(crate) async fn end(mut self) -> Option<i32> {
        tokio::time::timeout(WAIT_TIMEOUT, self.child.wait()).await.unwrap().unwrap().code()
    }
}

/// Creates an empty folder for one test.
fn folder() -> PathBuf {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let folder = std::env::temp_dir().join(format!("plimsoll-live-{}-{number}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    folder
}
