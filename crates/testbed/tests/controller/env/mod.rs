//! What tests of the controller stand on: workloads made by hand, metrics that say what the test wants, and the controller.

mod controller;
mod proxied;
mod replica_watch;

use std::panic::{AssertUnwindSafe, resume_unwind};
use std::sync::{Arc, LazyLock, OnceLock, PoisonError, RwLock};
use std::time::Duration;

use cluster::request::{self, ApiError, Request};
use controllers::hpa::HpaSettings;
use futures::FutureExt as _;
use http::Method;
use kube::Client;
use localkube::metrics::{MetricsApi, PodUsage, Script, Series};
use localkube::store::ObjectKey;
use serde_json::{Value, json};
use testbed::Access;
use testbed::etcd::{self, Etcd};
use testbed::harness::{self, Cluster, Failure, Workloads};

pub(crate) use controller::RunningController;
pub(crate) use proxied::Proxied;
pub(crate) use replica_watch::ReplicaWatch;

/// Time between two decisions in tests.
pub(crate) const PERIOD: Duration = Duration::from_millis(500);
/// What a busy machine may take longer.
pub(crate) const BUSY: Duration = Duration::from_secs(3);

/// Several tests at a time, or one that makes the metrics APIs fail, which a cluster has only once.
static ALONE: RwLock<()> = RwLock::new(());

/// A namespace with workloads that nobody acts on but the test and the controller.
pub(crate) struct ControllerEnv {
    pub(crate) client: Client,
    pub(crate) namespace: String,
    pub(crate) cluster: &'static str,
    pub(crate) kubeconfig: String,
    pub(crate) script: Script,
    /// Behind the API server of the real one.
    pub(crate) access: Option<&'static Access>,
    in_memory: Option<localkube::Cluster>,
    /// Held for its end.
    metrics: Option<Arc<MetricsApi>>,
}

/// Whether to take the time for the long versions of tests.
pub(crate) fn soak() -> bool {
    std::env::var_os("PLIMSOLL_SOAK").is_some_and(|value| value != "0")
}

/// Runs a test on both clusters at once, with nobody else who acts on workloads.
pub(crate) fn on_both<F, T>(test: F) -> Result<(), Failure>
where
    F: Fn(ControllerEnv) -> T + Sync,
    T: Future<Output = ()>,
{
    let _shared = ALONE.read().unwrap_or_else(PoisonError::into_inner);
    side_by_side(&test)
}

/// The same for a test that makes the metrics APIs fail, while no other runs.
pub(crate) fn alone_on_both<F, T>(test: F) -> Result<(), Failure>
where
    F: Fn(ControllerEnv) -> T + Sync,
    T: Future<Output = ()>,
{
    let _alone = ALONE.write().unwrap_or_else(PoisonError::into_inner);
    side_by_side(&async |env: ControllerEnv| {
        let script = env.script.clone();
        test(env).await;
        script.clear();
    })
}

/// Most of a test is waiting, so that both together take little longer than one.
fn side_by_side<F, T>(test: &F) -> Result<(), Failure>
where
    F: Fn(ControllerEnv) -> T + Sync,
    T: Future<Output = ()>,
{
    std::thread::scope(|scope| {
        let real = scope.spawn(|| on_one(test, true));
        let local = scope.spawn(|| on_one(test, false));
        let ended = [local.join(), real.join()];
        ended.into_iter().try_for_each(|ended| ended.unwrap_or_else(|panic| resume_unwind(panic)))
    })
}

fn on_one<F, T>(test: &F, real: bool) -> Result<(), Failure>
where
    F: Fn(ControllerEnv) -> T,
    T: Future<Output = ()>,
{
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let cluster = if real {
            // That it cannot be had was said.
            let Some(cluster) = Cluster::real(Workloads::Off).await? else { return Ok(()) };
            cluster
        } else {
            Cluster::local(Workloads::Off).await?
        };
        let session = cluster.session("both").await?;
        let result =
            AssertUnwindSafe(async { test(ControllerEnv::new(&cluster, session.namespace()).await).await });
        let result = result.catch_unwind().await;
        cluster.leave(&session).await;
        result.map_err(|panic| {
            eprintln!("on {}", cluster.name);
            resume_unwind(panic)
        })
    })
}

impl ControllerEnv {
    async fn new(cluster: &Cluster, namespace: &str) -> Self {
        let client = cluster.client.clone();
        let (script, own) = if cluster.access.is_some() {
            (real_metrics(&cluster.kubeconfig), None)
        } else {
            let api = MetricsApi::start(localkube::metrics::MetricsSettings::default()).await.unwrap();
            api.register(&client, "kube-system").await.unwrap();
            (api.script(), Some(Arc::new(api)))
        };
        Self {
            client,
            namespace: namespace.to_owned(),
            cluster: cluster.name,
            kubeconfig: cluster.kubeconfig.clone(),
            script,
            access: cluster.access,
            in_memory: cluster.in_memory().cloned(),
            metrics: own,
        }
    }

    pub(crate) fn is_real(&self) -> bool {
        self.access.is_some()
    }

    /// The same env in a namespace of its own, for tests that do several things at once.
    pub(crate) async fn room(&self, name: &str) -> Self {
        let namespace = format!("{}-{name}", self.namespace);
        let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
        self.create("/api/v1/namespaces", object).await;
        let room = Self {
            client: self.client.clone(),
            namespace,
            cluster: self.cluster,
            kubeconfig: self.kubeconfig.clone(),
            script: self.script.clone(),
            access: self.access,
            in_memory: self.in_memory.clone(),
            metrics: self.metrics.clone(),
        };
        // The API server refuses pods until the default service account exists.
        let account = "/api/v1/namespaces/{ns}/serviceaccounts/default";
        room.until("a service account", async || room.send(Method::GET, account, None).await.map(|_| ()))
            .await;
        room
    }

    /// Stores an HPA as it is, past everything that would refuse it.
    pub(crate) async fn store_raw(&self, name: &str, mut object: Value) {
        let meta = object["metadata"].as_object_mut().unwrap();
        meta.insert("name".into(), name.into());
        meta.insert("namespace".into(), self.namespace.as_str().into());
        meta.entry("uid").or_insert_with(|| format!("00000000-0000-4000-8000-{:012x}", unique()).into());
        meta.entry("creationTimestamp").or_insert_with(|| "2026-01-01T00:00:00Z".into());
        if let Some(cluster) = &self.in_memory {
            let key = ObjectKey::new(&self.namespace, name);
            assert!(cluster.store_raw("autoscaling", "horizontalpodautoscalers", &key, object));
        } else {
            let key = etcd::key("horizontalpodautoscalers", &self.namespace, name);
            Etcd::of(self.access.unwrap()).put(&key, &object).await.unwrap();
        }
    }

    /// Waits until lists from the API server's memory, with which watches begin, hold what is stored.
    pub(crate) async fn remembered(&self) {
        for path in
            ["/apis/autoscaling/v2/namespaces/{ns}/horizontalpodautoscalers", "/api/v1/namespaces/{ns}/pods"]
        {
            let stored = versions(&self.get(path).await);
            self.until("what is stored in memory", async || {
                let found = versions(&self.get(&format!("{path}?resourceVersion=0")).await);
                if found == stored { Ok(()) } else { Err(found) }
            })
            .await;
        }
    }

    /// Sends a request; the answer as JSON.
    pub(crate) async fn send(
        &self,
        method: Method,
        path: &str,
        body: Option<Value>,
    ) -> Result<Value, ApiError> {
        let content = match method {
            Method::PATCH if path.contains("fieldManager=") => "application/apply-patch+yaml",
            Method::PATCH => "application/merge-patch+json",
            _ => "application/json",
        };
        let request = Request {
            method,
            uri: path.replace("{ns}", &self.namespace),
            resource: String::new(),
            name: String::new(),
            body: body.map(|body| (content, body.to_string().replace("{ns}", &self.namespace).into_bytes())),
            deadline: Duration::from_secs(30),
        };
        let answer = request::send(&self.client, request).await?;
        Ok(serde_json::from_slice(&answer).unwrap_or(Value::Null))
    }

    pub(crate) async fn get(&self, path: &str) -> Value {
        self.send(Method::GET, path, None).await.unwrap_or_else(|error| panic!("GET {path}: {error}"))
    }

    pub(crate) async fn create(&self, path: &str, body: Value) -> Value {
        self.send(Method::POST, path, Some(body)).await.unwrap_or_else(|error| panic!("POST {path}: {error}"))
    }

    pub(crate) async fn patch(&self, path: &str, body: Value) -> Value {
        self.send(Method::PATCH, path, Some(body))
            .await
            .unwrap_or_else(|error| panic!("PATCH {path}: {error}"))
    }

    /// A deployment of `replicas`, and as many pods that run and are ready and request 1 cpu and 1Gi of memory.
    pub(crate) async fn workload(&self, name: &str, replicas: usize) {
        self.deployment(name, replicas).await;
        for number in 0..replicas {
            self.pod(name, number).await;
        }
    }

    /// A deployment without pods, for metrics that are not of pods.
    pub(crate) async fn deployment(&self, name: &str, replicas: usize) {
        let labels = json!({"app": name});
        let deployment = json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
            "spec": {
                "replicas": replicas, "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "app", "image": "app"}]}}
            }
        });
        self.create("/apis/apps/v1/namespaces/{ns}/deployments", deployment).await;
        self.tell(name, replicas).await;
    }

    /// Says how many replicas a deployment has, as its controller would.
    pub(crate) async fn tell(&self, name: &str, replicas: usize) {
        let status =
            json!({"status": {"replicas": replicas, "readyReplicas": replicas, "observedGeneration": 1}});
        self.patch(&format!("/apis/apps/v1/namespaces/{{ns}}/deployments/{name}/status"), status).await;
    }

    /// A pod of a workload that runs and is ready, for an hour.
    pub(crate) async fn pod(&self, workload: &str, number: usize) {
        self.pod_with(workload, number, json!({"requests": {"cpu": "1", "memory": "1Gi"}})).await;
    }

    /// The same with other resources.
    pub(crate) async fn pod_with(&self, workload: &str, number: usize, resources: Value) {
        let name = format!("{workload}-{number}");
        let pod = json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"app": workload}},
            "spec": {"containers": [{"name": "app", "image": "app", "resources": resources}]}
        });
        self.create("/api/v1/namespaces/{ns}/pods", pod).await;
        let since = jiff::Timestamp::now() - jiff::SignedDuration::from_hours(1);
        let since = api::instant::format(since);
        let status = json!({"status": {
            "phase": "Running", "startTime": since,
            "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": since}]
        }});
        self.patch(&format!("/api/v1/namespaces/{{ns}}/pods/{name}/status"), status).await;
    }

    /// What each pod of a workload uses.
    pub(crate) fn usage(&self, workload: &str, pods: usize, cpu_milli: i64, memory: i64) {
        for number in 0..pods {
            let usage = PodUsage::new(&[("app", workload)], &[("app", cpu_milli, memory)]);
            self.script.set_pod(&self.namespace, &format!("{workload}-{number}"), usage);
        }
    }

    /// Sets the external metric of the name of a workload, so that so many replicas are right for [`queue`].
    pub(crate) fn ask_for(&self, workload: &str, replicas: i64) {
        self.script.set_external(&self.namespace, workload, Series::milli(replicas * 10_000));
    }

    /// An HPA of the deployment of the same name.
    pub(crate) async fn hpa(&self, name: &str, min: i32, max: i32, metrics: Value) {
        self.hpa_with(name, json!({"minReplicas": min, "maxReplicas": max, "metrics": metrics})).await;
    }

    /// An HPA of the deployment of the same name, with this spec.
    pub(crate) async fn hpa_with(&self, name: &str, mut spec: Value) {
        spec["scaleTargetRef"] = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": name});
        let hpa = json!({
            "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": name}, "spec": spec
        });
        self.create("/apis/autoscaling/v2/namespaces/{ns}/horizontalpodautoscalers", hpa).await;
    }

    pub(crate) async fn hpa_object(&self, name: &str) -> Value {
        self.get(&format!("/apis/autoscaling/v2/namespaces/{{ns}}/horizontalpodautoscalers/{name}")).await
    }

    /// The count asked of a deployment.
    pub(crate) async fn replicas(&self, name: &str) -> i64 {
        let deployment = self.get(&format!("/apis/apps/v1/namespaces/{{ns}}/deployments/{name}")).await;
        deployment["spec"]["replicas"].as_i64().unwrap()
    }

    /// `type/reason: message` of the events about an HPA, in the order of their first time.
    pub(crate) async fn events(&self, name: &str) -> Vec<String> {
        let list = self.get("/api/v1/namespaces/{ns}/events").await;
        let about = |event: &&Value| event["involvedObject"]["name"] == name;
        let mut found: Vec<&Value> = list["items"].as_array().unwrap().iter().filter(about).collect();
        found.sort_by_key(|event| {
            event["metadata"]["resourceVersion"].as_str().unwrap().parse::<u64>().unwrap()
        });
        let text = |event: &Value, field: &str| event[field].as_str().unwrap_or_default().to_owned();
        found
            .iter()
            .map(|e| format!("{}/{}: {}", text(e, "type"), text(e, "reason"), text(e, "message")))
            .collect()
    }

    /// `status reason` of a condition.
    pub(crate) async fn condition(&self, name: &str, kind: &str) -> String {
        let hpa = self.hpa_object(name).await;
        let conditions = hpa["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let found = conditions.iter().find(|c| c["type"] == kind);
        found.map_or_else(String::new, |c| {
            format!(
                "{} {}",
                c["status"].as_str().unwrap_or_default(),
                c["reason"].as_str().unwrap_or_default()
            )
        })
    }

    /// Waits until `look` succeeds; the message of a failure has the cluster and what was seen last.
    pub(crate) async fn until<T: std::fmt::Debug>(
        &self,
        what: &str,
        look: impl AsyncFnMut() -> Result<(), T>,
    ) {
        harness::until(&format!("on {}: {what}", self.cluster), look).await;
    }

    /// Waits until a deployment is asked for this many.
    pub(crate) async fn until_replicas(&self, name: &str, wanted: i64) {
        self.until(&format!("{name} at {wanted}"), async || {
            let found = self.replicas(name).await;
            if found == wanted { Ok(()) } else { Err(found) }
        })
        .await;
    }

    /// Waits until the status of an HPA tells of this count. That it has just scaled is told for one period only.
    pub(crate) async fn until_told(&self, name: &str, wanted: i64) {
        self.until(&format!("{wanted} in the status of {name}"), async || {
            let status = self.hpa_object(name).await["status"].take();
            if status["desiredReplicas"] == wanted { Ok(()) } else { Err(status) }
        })
        .await;
    }

    /// Waits until a condition says this.
    pub(crate) async fn until_condition(&self, name: &str, kind: &str, wanted: &str) {
        self.until(&format!("{kind} {wanted} of {name}"), async || {
            let found = self.condition(name, kind).await;
            if found == wanted { Ok(()) } else { Err(found) }
        })
        .await;
    }

    /// How often the external metric of the name of a workload was read, which every reconcile does once.
    pub(crate) fn metric_reads(&self, workload: &str) -> u64 {
        let namespace = &self.namespace;
        self.script.count(&format!("/apis/external.metrics.k8s.io/v1beta1/namespaces/{namespace}/{workload}"))
    }

    /// Waits until the external metric of a workload was read so many more times: all reconciles but the last are over.
    pub(crate) async fn until_metric_reads(&self, workload: &str, count: u64) {
        let before = self.metric_reads(workload);
        self.until(&format!("{count} reads of {workload}"), async || {
            let reads = self.metric_reads(workload) - before;
            if reads >= count { Ok(()) } else { Err(reads) }
        })
        .await;
    }

    /// Waits until a controller has decided so many more times on each of these HPAs.
    pub(crate) async fn until_decisions(&self, controller: &RunningController, names: &[&str], count: u64) {
        let decisions = |name: &str| controller.decisions(&self.namespace, name);
        let before: Vec<u64> = names.iter().map(|name| decisions(name)).collect();
        self.until(&format!("{count} decisions on {names:?}"), async || {
            let made: Vec<u64> = names
                .iter()
                .zip(&before)
                .map(|(name, before)| decisions(name).saturating_sub(*before))
                .collect();
            if made.iter().all(|made| *made >= count) { Ok(()) } else { Err(made) }
        })
        .await;
    }

    /// Settings for tests: a short period, no stabilisation, only this namespace.
    pub(crate) fn settings(&self) -> HpaSettings {
        let config = engine::ControllerConfig {
            downscale_stabilization: jiff::SignedDuration::ZERO,
            ..engine::ControllerConfig::default()
        };
        HpaSettings {
            config: Arc::new(config),
            period: PERIOD,
            namespaces: vec![self.namespace.clone()],
            ..HpaSettings::default()
        }
    }

    /// Starts our controller on this namespace.
    pub(crate) fn controller(&self, settings: HpaSettings) -> RunningController {
        RunningController::start(self.client.clone(), settings)
    }
}

/// Names and versions of a list.
fn versions(list: &Value) -> Vec<(String, String)> {
    let text = |item: &Value, field: &str| item["metadata"][field].as_str().unwrap_or_default().to_owned();
    let items = list["items"].as_array().unwrap().iter();
    let mut versions: Vec<_> =
        items.map(|item| (text(item, "name"), text(item, "resourceVersion"))).collect();
    versions.sort();
    versions
}

/// The external metric of the name of a workload, ten for each replica.
pub(crate) fn queue(workload: &str) -> Value {
    json!({"type": "External", "external": {
        "metric": {"name": workload}, "target": {"type": "AverageValue", "averageValue": "10"}
    }})
}

/// Usage of cpu in percent of what was requested.
pub(crate) fn cpu(percent: i32) -> Value {
    json!({"type": "Resource", "resource": {
        "name": "cpu", "target": {"type": "Utilization", "averageUtilization": percent}
    }})
}

/// A number that no other call gets.
pub(crate) fn unique() -> u64 {
    static COUNT: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(1);
    COUNT.fetch_add(1, std::sync::atomic::Ordering::Relaxed)
}

/// The metrics APIs of the real cluster, for all tests of this process: they live longer than a test's runtime.
fn real_metrics(kubeconfig: &str) -> Script {
    static RUNTIME: LazyLock<tokio::runtime::Runtime> = LazyLock::new(|| {
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap()
    });
    static API: OnceLock<MetricsApi> = OnceLock::new();
    let kubeconfig = kubeconfig.to_owned();
    let start = move || {
        RUNTIME.block_on(async {
            let client = harness::connect(&kubeconfig).await.unwrap();
            let api = MetricsApi::start(localkube::metrics::MetricsSettings::default()).await.unwrap();
            api.register(&client, "kube-system").await.unwrap();
            api
        })
    };
    // A thread of its own: a runtime cannot wait inside another.
    std::thread::scope(|scope| scope.spawn(|| API.get_or_init(start).script()).join().unwrap())
}
