//! A cluster with simulated kubelets, a sample application, Prometheus, and the tested metrics server.
//! Each cluster has one such server at a time, so that all tests of this process share it, each in its own namespace.

mod direct;
mod register;
mod scaler;
pub(crate) mod tested_server;

use std::ops::Deref;
use std::panic::{AssertUnwindSafe, resume_unwind};
use std::sync::RwLock;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures::FutureExt as _;
use http::Method;
use kube::Client;
use locks::{MutexExt as _, RwLockExt as _};
use serde_json::{Value, json};
use testbed::Access;
use testbed::harness::{self, Cluster, Failure, Workloads};
use testbed::kubelets::{Kubelets, Measures, PodLoad, objects};
use testbed::prometheus::{PrometheusProxy, ResponseFault, Server};
use testbed::sample::SampleApp;
use tokio::sync::Mutex;

use crate::shared::environments::{self, Environments, side_by_side};

pub(crate) use crate::shared::kubectl::Kubectl;
pub(crate) use crate::shared::program::{free_port, program};
pub(crate) use direct::{Caller, direct};
pub(crate) use register::register;
pub(crate) use scaler::Scaler;
pub(crate) use testbed::harness::{send, until};
pub(crate) use tested_server::{TestedServer, peers, rules};

/// Scrape interval of kubelets: the minimum.
pub(crate) const RESOLUTION: Duration = Duration::from_secs(10);
/// Scrape interval of Prometheus.
const SCRAPE_INTERVAL: Duration = Duration::from_secs(1);
/// The node of the tests' pods, and one without other pods.
pub(crate) const NODES: [&str; 2] = ["busy", "quiet"];

/// Lets either several tests run at the same time, or one that breaks shared parts.
static EXCLUSIVE: RwLock<()> = RwLock::new(());
static ENVIRONMENTS: Environments<MetricsEnv> = Environments::new();

/// One cluster with all servers of the tests.
pub(crate) struct MetricsEnv {
    pub(crate) cluster: Cluster,
    pub(crate) kubelets: Kubelets,
    pub(crate) app: SampleApp,
    pub(crate) prometheus: Mutex<Server>,
    pub(crate) prometheus_proxy: PrometheusProxy,
    pub(crate) tested_server: TestedServer,
    /// Serializes changes of Prometheus' scrape targets.
    targets: std::sync::Mutex<()>,
}

/// A namespace in an environment.
pub(crate) struct TestNamespace {
    pub(crate) env: &'static MetricsEnv,
    ns: harness::TestNamespace,
}

impl Deref for TestNamespace {
    type Target = harness::TestNamespace;

    fn deref(&self) -> &harness::TestNamespace {
        &self.ns
    }
}

/// Runs a test on both clusters at once.
pub(crate) fn on_both<T: Future<Output = ()>>(
    test: impl Fn(TestNamespace) -> T + Sync,
) -> Result<(), Failure> {
    let _shared = EXCLUSIVE.read_locked();
    side_by_side(|real| on_one(&test, real))
}

/// Runs a test that breaks shared parts on both clusters, while no other test runs.
pub(crate) fn alone_on_both<T: Future<Output = ()>>(
    test: impl Fn(TestNamespace) -> T + Sync,
) -> Result<(), Failure> {
    let _alone = EXCLUSIVE.write_locked();
    let test = &test;
    let mended = async move |ns: TestNamespace| {
        let env = ns.env;
        let ended = AssertUnwindSafe(test(ns)).catch_unwind().await;
        // A failed test must not break the following tests.
        env.prometheus_proxy.set_fault(ResponseFault::None);
        env.prometheus.lock().await.resume().await.unwrap();
        ended.unwrap_or_else(|panic| resume_unwind(panic));
    };
    side_by_side(|real| on_one(&mended, real))
}

/// Runs a test on the real cluster only.
pub(crate) fn on_real<T: Future<Output = ()>>(
    test: impl Fn(TestNamespace) -> T + Sync,
) -> Result<(), Failure> {
    let _shared = EXCLUSIVE.read_locked();
    environments::on_one(on_one(&test, true))
}

/// Runs a test on the cluster in memory only.
pub(crate) fn on_local<T: Future<Output = ()>>(
    test: impl Fn(TestNamespace) -> T + Sync,
) -> Result<(), Failure> {
    let _shared = EXCLUSIVE.read_locked();
    environments::on_one(on_one(&test, false))
}

async fn on_one<T: Future<Output = ()>>(
    test: &impl Fn(TestNamespace) -> T,
    real: bool,
) -> Result<(), Failure> {
    let network = if real { 81 } else { 82 };
    let made =
        ENVIRONMENTS.of(real, Workloads::Off, async |cluster| Some(env(cluster, network).await)).await?;
    let Some(env) = made else { return Ok(()) };
    let session = env.cluster.session("metrics").await?;
    let ns = TestNamespace { env, ns: env.cluster.namespace(&session) };
    eprintln!("on {} in {}", env.cluster.name, ns.namespace);
    test(ns).await;
    env.cluster.delete_namespace(&session).await;
    Ok(())
}

async fn env(cluster: Cluster, network: u8) -> MetricsEnv {
    let kubelets = Kubelets::new(&authority(&cluster.kubeconfig), network).unwrap();
    let app = SampleApp::start().unwrap();
    // Discovery finds a series from the beginning.
    app.set_gauge("queue_depth{queue=\"idle\"}", 0.0);
    let prometheus = Server::start(SCRAPE_INTERVAL).await.unwrap();
    prometheus.scrape(&app.targets()).unwrap();
    let prometheus_proxy = PrometheusProxy::start(&prometheus.url()).unwrap();
    for name in NODES {
        let address = kubelets.add_node(name, Measures::Always).unwrap();
        make_node(&cluster.client, &objects::node(name, address, kubelets.port(), 3)).await;
        // A kubelet without pods has no container metrics, and a server without any is not ready.
        kubelets
            .set_pod(name, PodLoad::new("kube-system", &format!("proxy-{name}"), &[("proxy", 10, 20 << 20)]));
        let labels = json!({"app": "proxy"});
        make_pod(
            &cluster.client,
            &objects::pod("kube-system", &format!("proxy-{name}"), name, &labels, &["proxy"]),
        )
        .await;
    }
    let tested_server = TestedServer::start(&cluster.kubeconfig, &kubelets, &prometheus_proxy.url()).await;
    register(&cluster.client, &tested_server).await;
    let targets = std::sync::Mutex::default();
    MetricsEnv {
        cluster,
        kubelets,
        app,
        prometheus: Mutex::new(prometheus),
        prometheus_proxy,
        tested_server,
        targets,
    }
}

/// The certificate of a kubeconfig's CA, which also signed the certificate of its user.
pub(crate) fn authority(kubeconfig: &str) -> String {
    let line = kubeconfig.lines().find_map(|line| line.trim().strip_prefix("certificate-authority-data: "));
    String::from_utf8(STANDARD.decode(line.unwrap().trim()).unwrap()).unwrap()
}

pub(crate) async fn make_node(client: &Client, node: &Value) {
    let (code, response) = send(client, Method::POST, "/api/v1/nodes", Some(&objects::to_create(node))).await;
    assert!(code == 201 || code == 409, "{code} {response}");
    let name = node["metadata"]["name"].as_str().unwrap();
    let status = json!({"status": node["status"]});
    let (code, response) =
        send(client, Method::PATCH, &format!("/api/v1/nodes/{name}/status"), Some(&status)).await;
    assert_eq!(code, 200, "{response}");
}

pub(crate) async fn make_pod(client: &Client, pod: &Value) {
    let meta = &pod["metadata"];
    let pods = format!("/api/v1/namespaces/{}/pods", meta["namespace"].as_str().unwrap());
    let made = async || {
        let (code, response) = send(client, Method::POST, &pods, Some(&objects::to_create(pod))).await;
        if code == 201 || code == 409 { Ok(()) } else { Err(response) }
    };
    // A new cluster refuses pods until the namespace has its service account.
    until("a pod", made).await;
    let status = json!({"status": pod["status"]});
    let path = format!("{pods}/{}/status", meta["name"].as_str().unwrap());
    let (code, response) = send(client, Method::PATCH, &path, Some(&status)).await;
    assert_eq!(code, 200, "{response}");
}

/// A quantity in millicores, rounded to the nearest. Rates are truncated, so that a third of a core may be one nanocore less.
pub(crate) fn milli(quantity: &Value) -> Option<i64> {
    let text = quantity.as_str()?;
    let place = text.find(|letter: char| letter.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, unit) = text.split_at(place);
    let nano = match unit {
        "n" => 1,
        "u" => 1_000,
        "m" => 1_000_000,
        "" => 1_000_000_000,
        _ => return None,
    };
    Some((number.parse::<i64>().ok()? * nano + 500_000) / 1_000_000)
}

impl TestNamespace {
    /// Returns none if there is no kubectl.
    pub(crate) fn kubectl(&self) -> Option<Kubectl> {
        Kubectl::new(&self.env.cluster.kubeconfig, &self.namespace)
    }

    pub(crate) fn access(&self) -> Option<&'static Access> {
        self.env.cluster.access
    }

    /// Adds a pod of a workload to a kubelet and to the cluster, with the CPU usage (thousandths of a core) and memory usage (bytes) of each
    /// container.
    pub(crate) async fn pod(&self, node: &str, workload: &str, name: &str, containers: &[(&str, u64, u64)]) {
        self.env.kubelets.set_pod(node, PodLoad::new(&self.namespace, name, containers));
        let names: Vec<&str> = containers.iter().map(|(name, _, _)| *name).collect();
        let pod = objects::pod(&self.namespace, name, node, &json!({"app": workload}), &names);
        make_pod(&self.client, &pod).await;
    }

    /// Sets the CPU usage of pods.
    pub(crate) fn use_cpu(&self, pods: &[&str], container: &str, milli: u64) {
        for pod in pods {
            self.env.kubelets.set_cpu(&self.namespace, pod, container, milli);
        }
    }

    /// Sets the requests per second of a pod.
    pub(crate) async fn serve(&self, pod: &str, per_second: f64) {
        self.env.app.set_load(&self.namespace, pod, per_second);
        let server = self.env.prometheus.lock().await;
        let _one = self.env.targets.locked();
        server.scrape(&self.env.app.targets()).unwrap();
    }

    /// Waits until `wanted` is true for the response of a path, and returns it.
    pub(crate) async fn until_answer(&self, path: &str, wanted: impl Fn(u16, &Value) -> bool) -> Value {
        let mut found = Value::Null;
        until(&format!("{path} on {}", self.env.cluster.name), async || {
            let (code, response) = self.get(path).await;
            if wanted(code, &response) {
                found = response;
                return Ok(());
            }
            Err(format!("{code} {response}; the end of the log:\n{}", self.env.tested_server.log_end()))
        })
        .await;
        found
    }

    /// An HPA of the deployment of the same name, without a stabilization window.
    pub(crate) async fn hpa(&self, name: &str, metrics: Value) {
        let behavior = json!({"scaleDown": {"stabilizationWindowSeconds": 0}});
        let spec = json!({"minReplicas": 1, "maxReplicas": 20, "metrics": metrics, "behavior": behavior});
        self.hpa_with(name, spec).await;
    }
}
