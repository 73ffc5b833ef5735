//! A cluster with kubelets, a sample application, Prometheus, and the metrics server that is tested in front of them.
//! Each cluster has one such server at a time, so that all tests of this process share it, each in its own namespace.

mod direct;
mod register;
mod scaler;
pub(crate) mod subject;

use std::panic::{AssertUnwindSafe, resume_unwind};
use std::sync::{PoisonError, RwLock};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures::FutureExt as _;
use http::Method;
use kube::Client;
use serde_json::{Value, json};
use testbed::Access;
use testbed::harness::{Cluster, Failure, Workloads};
use testbed::kubelets::{Kubelets, Measures, PodLoad, objects};
use testbed::prometheus::{Front, Server, Trouble};
use testbed::sample::SampleApp;
use tokio::sync::Mutex;

use crate::shared::environments::{self, Environments, side_by_side};

pub(crate) use crate::shared::kubectl::Kubectl;
pub(crate) use crate::shared::program::{free_port, program};
pub(crate) use direct::{Caller, direct};
pub(crate) use register::register;
pub(crate) use scaler::Scaler;
pub(crate) use subject::{Subject, peers, rules};
pub(crate) use testbed::harness::{send, until};

/// Time between two looks at kubelets: the least that is allowed.
pub(crate) const RESOLUTION: Duration = Duration::from_secs(10);
/// Time between two looks of Prometheus at the application.
const INTERVAL: Duration = Duration::from_secs(1);
/// The node on which tests put their pods, and one that nobody else touches.
pub(crate) const NODES: [&str; 2] = ["busy", "quiet"];

/// Several tests at a time, or one that breaks what all of them use.
static ALONE: RwLock<()> = RwLock::new(());
static ENVIRONMENTS: Environments<MetricsEnv> = Environments::new();

/// One cluster and all that belongs to it.
pub(crate) struct MetricsEnv {
    pub(crate) cluster: Cluster,
    pub(crate) kubelets: Kubelets,
    pub(crate) app: SampleApp,
    pub(crate) prometheus: Mutex<Server>,
    pub(crate) front: Front,
    pub(crate) subject: Subject,
    /// Pods that Prometheus scrapes are told to it by one at a time.
    targets: std::sync::Mutex<()>,
}

/// A namespace on a env.
pub(crate) struct TestNamespace {
    pub(crate) env: &'static MetricsEnv,
    pub(crate) namespace: String,
}

/// Runs a test on both clusters at once.
pub(crate) fn on_both<T: Future<Output = ()>>(
    test: impl Fn(TestNamespace) -> T + Sync,
) -> Result<(), Failure> {
    let _shared = ALONE.read().unwrap_or_else(PoisonError::into_inner);
    side_by_side(|real| on_one(&test, real))
}

/// The same for a test that breaks what others use, while no other runs.
pub(crate) fn alone_on_both<T: Future<Output = ()>>(
    test: impl Fn(TestNamespace) -> T + Sync,
) -> Result<(), Failure> {
    let _alone = ALONE.write().unwrap_or_else(PoisonError::into_inner);
    let test = &test;
    let mended = async move |ns: TestNamespace| {
        let env = ns.env;
        let ended = AssertUnwindSafe(test(ns)).catch_unwind().await;
        // If it fails, it fails alone.
        env.front.set(Trouble::None);
        env.prometheus.lock().await.resume().await.unwrap();
        ended.unwrap_or_else(|panic| resume_unwind(panic));
    };
    side_by_side(|real| on_one(&mended, real))
}

/// Runs a test on the real cluster only.
pub(crate) fn on_real<T: Future<Output = ()>>(
    test: impl Fn(TestNamespace) -> T + Sync,
) -> Result<(), Failure> {
    let _shared = ALONE.read().unwrap_or_else(PoisonError::into_inner);
    environments::on_one(on_one(&test, true))
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
    let ns = TestNamespace { env, namespace: session.namespace().to_owned() };
    eprintln!("on {} in {}", env.cluster.name, ns.namespace);
    test(ns).await;
    env.cluster.leave(&session).await;
    Ok(())
}

async fn env(cluster: Cluster, network: u8) -> MetricsEnv {
    let kubelets = Kubelets::new(&authority(&cluster.kubeconfig), network).unwrap();
    let app = SampleApp::start().unwrap();
    // So that there is something to discover from the beginning.
    app.set_gauge("queue_depth{queue=\"idle\"}", 0.0);
    let prometheus = Server::start(INTERVAL).await.unwrap();
    prometheus.scrape(&app.targets()).unwrap();
    let front = Front::start(&prometheus.url()).unwrap();
    for name in NODES {
        let address = kubelets.add_node(name, Measures::Always).unwrap();
        make_node(&cluster.client, &objects::node(name, address, kubelets.port(), 3)).await;
        // A kubelet without pods has no container to speak of, and a server that knows none is not ready.
        kubelets
            .set_pod(name, PodLoad::new("kube-system", &format!("proxy-{name}"), &[("proxy", 10, 20 << 20)]));
        let labels = json!({"app": "proxy"});
        make_pod(
            &cluster.client,
            &objects::pod("kube-system", &format!("proxy-{name}"), name, &labels, &["proxy"]),
        )
        .await;
    }
    let subject = Subject::start(&cluster.kubeconfig, &kubelets, &front.url()).await;
    register(&cluster.client, &subject).await;
    let targets = std::sync::Mutex::default();
    MetricsEnv { cluster, kubelets, app, prometheus: Mutex::new(prometheus), front, subject, targets }
}

/// The authority that a kubeconfig names, which signed its user, too.
pub(crate) fn authority(kubeconfig: &str) -> String {
    let line = kubeconfig.lines().find_map(|line| line.trim().strip_prefix("certificate-authority-data: "));
    String::from_utf8(STANDARD.decode(line.unwrap().trim()).unwrap()).unwrap()
}

pub(crate) async fn make_node(client: &Client, node: &Value) {
    let (code, said) = send(client, Method::POST, "/api/v1/nodes", Some(&objects::to_create(node))).await;
    assert!(code == 201 || code == 409, "{code} {said}");
    let name = node["metadata"]["name"].as_str().unwrap();
    let status = json!({"status": node["status"]});
    let (code, said) =
        send(client, Method::PATCH, &format!("/api/v1/nodes/{name}/status"), Some(&status)).await;
    assert_eq!(code, 200, "{said}");
}

pub(crate) async fn make_pod(client: &Client, pod: &Value) {
    let meta = &pod["metadata"];
    let pods = format!("/api/v1/namespaces/{}/pods", meta["namespace"].as_str().unwrap());
    let made = async || {
        let (code, said) = send(client, Method::POST, &pods, Some(&objects::to_create(pod))).await;
        if code == 201 || code == 409 { Ok(()) } else { Err(said) }
    };
    // A new cluster refuses pods until the namespace has its service account.
    until("a pod", made).await;
    let status = json!({"status": pod["status"]});
    let path = format!("{pods}/{}/status", meta["name"].as_str().unwrap());
    let (code, said) = send(client, Method::PATCH, &path, Some(&status)).await;
    assert_eq!(code, 200, "{said}");
}

/// Cores of a quantity in thousandths, to the nearest: rates are cut off, so that a third of a core may be one part in a
/// thousand million less.
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
    pub(crate) fn client(&self) -> &Client {
        &self.env.cluster.client
    }

    /// None where there is no kubectl.
    pub(crate) fn kubectl(&self) -> Option<Kubectl> {
        Kubectl::new(&self.env.cluster.kubeconfig, &self.namespace)
    }

    pub(crate) fn access(&self) -> Option<&'static Access> {
        self.env.cluster.access
    }

    /// A path with the namespace of the test for `{ns}`.
    pub(crate) async fn get(&self, path: &str) -> (u16, Value) {
        send(self.client(), Method::GET, &path.replace("{ns}", &self.namespace), None).await
    }

    pub(crate) async fn create(&self, path: &str, object: &Value) -> Value {
        let (code, said) =
            send(self.client(), Method::POST, &path.replace("{ns}", &self.namespace), Some(object)).await;
        assert_eq!(code, 201, "{path}: {said}");
        said
    }

    /// A pod of a workload on a node, which runs there and in the cluster, with thousandths of a core and bytes of each container.
    pub(crate) async fn pod(&self, node: &str, workload: &str, name: &str, containers: &[(&str, u64, u64)]) {
        self.env.kubelets.set_pod(node, PodLoad::new(&self.namespace, name, containers));
        let names: Vec<&str> = containers.iter().map(|(name, _, _)| *name).collect();
        let pod = objects::pod(&self.namespace, name, node, &json!({"app": workload}), &names);
        make_pod(self.client(), &pod).await;
    }

    /// What each pod of a workload uses from now on.
    pub(crate) fn use_cpu(&self, pods: &[&str], container: &str, milli: u64) {
        for pod in pods {
            self.env.kubelets.set_cpu(&self.namespace, pod, container, milli);
        }
    }

    /// How many requests a pod gets each second from now on.
    pub(crate) async fn serve(&self, pod: &str, per_second: f64) {
        self.env.app.set_load(&self.namespace, pod, per_second);
        let server = self.env.prometheus.lock().await;
        let _one = self.env.targets.lock().unwrap_or_else(PoisonError::into_inner);
        server.scrape(&self.env.app.targets()).unwrap();
    }

    /// Waits until an address answers so that `wanted` is content, and returns the answer.
    pub(crate) async fn until_answer(&self, path: &str, wanted: impl Fn(u16, &Value) -> bool) -> Value {
        let mut found = Value::Null;
        until(&format!("{path} on {}", self.env.cluster.name), async || {
            let (code, said) = self.get(path).await;
            if wanted(code, &said) {
                found = said;
                return Ok(());
            }
            Err(format!("{code} {said}; the end of the log:\n{}", self.env.subject.log_end()))
        })
        .await;
        found
    }

    /// A deployment that says it has so many replicas.
    pub(crate) async fn deployment(&self, name: &str, replicas: usize) {
        let labels = json!({"app": name});
        let object = json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
            "spec": {
                "replicas": replicas, "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "app", "image": "app"}]}}
            }
        });
        self.create("/apis/apps/v1/namespaces/{ns}/deployments", &object).await;
        let status =
            json!({"status": {"replicas": replicas, "readyReplicas": replicas, "observedGeneration": 1}});
        let path = format!("/apis/apps/v1/namespaces/{}/deployments/{name}/status", self.namespace);
        assert_eq!(send(self.client(), Method::PATCH, &path, Some(&status)).await.0, 200);
    }

    /// An HPA of the deployment of the same name, which is quick to scale down.
    pub(crate) async fn hpa(&self, name: &str, metrics: Value) {
        let spec = json!({
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name},
            "minReplicas": 1, "maxReplicas": 20, "metrics": metrics,
            "behavior": {"scaleDown": {"stabilizationWindowSeconds": 0}}
        });
        let object = json!({
            "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": name}, "spec": spec
        });
        self.create("/apis/autoscaling/v2/namespaces/{ns}/horizontalpodautoscalers", &object).await;
    }

    /// Waits until a deployment is asked for a number of replicas.
    pub(crate) async fn until_replicas(&self, name: &str, wanted: impl Fn(i64) -> bool) {
        let path = format!("/apis/apps/v1/namespaces/{{ns}}/deployments/{name}");
        until(&format!("another size of {name} on {}", self.env.cluster.name), async || {
            let found = self.get(&path).await.1["spec"]["replicas"].as_i64().unwrap();
            if wanted(found) {
                return Ok(());
            }
            let hpa = format!("/apis/autoscaling/v2/namespaces/{{ns}}/horizontalpodautoscalers/{name}");
            Err(format!("{found}: {}", self.get(&hpa).await.1["status"]))
        })
        .await;
    }

    /// `status reason` of a condition of an HPA.
    pub(crate) async fn condition(&self, name: &str, kind: &str) -> String {
        let path = format!("/apis/autoscaling/v2/namespaces/{{ns}}/horizontalpodautoscalers/{name}");
        let conditions =
            self.get(&path).await.1["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let found = conditions.into_iter().find(|condition| condition["type"] == kind).unwrap_or_default();
        let text = |field: &str| found[field].as_str().unwrap_or_default().to_owned();
        format!("{} {}", text("status"), text("reason"))
    }

    pub(crate) async fn until_condition(&self, name: &str, kind: &str, wanted: &str) {
        until(&format!("{kind} {wanted} of {name} on {}", self.env.cluster.name), async || {
            let found = self.condition(name, kind).await;
            if found == wanted { Ok(()) } else { Err(found) }
        })
        .await;
    }
}
