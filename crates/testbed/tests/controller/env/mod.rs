//! The environment of controller tests: workloads written by the test, scripted metrics APIs, and the controller.

mod controller;
mod proxied;
mod replica_watch;
mod sync_times;
mod window;

use std::ops::Deref;
use std::panic::{AssertUnwindSafe, resume_unwind};
use std::sync::{Arc, RwLock};
use std::time::Duration;

use controllers::hpa::HpaSettings;
use futures::FutureExt as _;
use localkube::metrics::{MetricsApi, PodUsage, Script, Series};
use localkube::store::ObjectKey;
use locks::RwLockExt as _;
use serde_json::{Value, json};
use testbed::Access;
use testbed::etcd::{self, Etcd};
use testbed::harness::namespace::items;
use testbed::harness::{Cluster, Failure, TestNamespace, Workloads};
use tokio::sync::OnceCell;

use crate::shared::environments::side_by_side;

pub(crate) use crate::shared::replica_watch::ReplicaWatch;
pub(crate) use controller::RunningController;
pub(crate) use proxied::ProxiedClient;
pub(crate) use sync_times::{Handover, SyncTimes, missed_syncs};
pub(crate) use window::WindowMeasurement;

/// Time between two decisions in tests.
pub(crate) const PERIOD: Duration = Duration::from_millis(500);
/// The number of reconciles that were under way when the test began to count, or that end before it counts again.
const UNCOUNTED_RECONCILES: u64 = 6;

/// Lets either several tests run at the same time, or one that makes the metrics APIs of the cluster fail or that compares the times of two
/// controllers.
static EXCLUSIVE: RwLock<()> = RwLock::new(());

/// A namespace with workloads that only the test and the controller write to.
pub(crate) struct ControllerEnv {
    ns: TestNamespace,
    pub(crate) script: Script,
    /// The access to the real cluster; none on localkube.
    pub(crate) access: Option<&'static Access>,
    in_memory: Option<localkube::Cluster>,
    /// Keeps the local metrics APIs running.
    metrics: Option<Arc<MetricsApi>>,
}

impl Deref for ControllerEnv {
    type Target = TestNamespace;

    fn deref(&self) -> &TestNamespace {
        &self.ns
    }
}

/// The number of reconciles that a recovery may take which lasts `time` on an idle machine. A busy machine delays reconciles, so
/// recoveries are measured in reconciles.
pub(crate) fn reconciles_within(time: Duration) -> u64 {
    (time.as_millis().div_ceil(PERIOD.as_millis())) as u64 + UNCOUNTED_RECONCILES
}

/// Whether the long versions of tests run.
pub(crate) fn soak() -> bool {
    std::env::var_os("PLIMSOLL_SOAK").is_some_and(|value| value != "0")
}

/// Runs a test on both clusters at the same time, without workload controllers.
pub(crate) fn on_both<F, T>(test: F) -> Result<(), Failure>
where
    F: Fn(ControllerEnv) -> T + Sync,
    T: Future<Output = ()>,
{
    let _shared = EXCLUSIVE.read_locked();
    side_by_side(|real| on_one(&test, real))
}

/// Runs a test on both clusters while no other test runs.
pub(crate) fn alone_on_both<F, T>(test: F) -> Result<(), Failure>
where
    F: Fn(ControllerEnv) -> T + Sync,
    T: Future<Output = ()>,
{
    let _alone = EXCLUSIVE.write_locked();
    let test = &test;
    let cleared = async move |env: ControllerEnv| {
        let script = env.script.clone();
        test(env).await;
        script.clear();
    };
    side_by_side(|real| on_one(&cleared, real))
}

async fn on_one<F, T>(test: &F, real: bool) -> Result<(), Failure>
where
    F: Fn(ControllerEnv) -> T,
    T: Future<Output = ()>,
{
    let cluster = if real {
        // `Cluster::real` has reported that it cannot be built.
        let Some(cluster) = Cluster::real(Workloads::Off).await? else { return Ok(()) };
        cluster
    } else {
        Cluster::local(Workloads::Off).await?
    };
    let session = cluster.session("both").await?;
    let env = ControllerEnv::new(&cluster, cluster.namespace(&session)).await;
    let result = AssertUnwindSafe(test(env)).catch_unwind().await;
    cluster.delete_namespace(&session).await;
    result.map_err(|panic| {
        eprintln!("on {}", cluster.name);
        resume_unwind(panic)
    })
}

impl ControllerEnv {
    async fn new(cluster: &Cluster, ns: TestNamespace) -> Self {
        let (script, metrics) = if cluster.access.is_some() {
            (real_metrics(&ns).await, None)
        } else {
            let api = start_metrics(&ns).await;
            (api.script(), Some(Arc::new(api)))
        };
        Self { ns, script, access: cluster.access, in_memory: cluster.in_memory().cloned(), metrics }
    }

    pub(crate) fn is_real(&self) -> bool {
        self.access.is_some()
    }

    /// An environment in a new namespace of the same cluster, for tests that run several parts at once.
    pub(crate) async fn in_new_namespace(&self, name: &str) -> Self {
        Self {
            ns: self.ns.another(name).await,
            script: self.script.clone(),
            access: self.access,
            in_memory: self.in_memory.clone(),
            metrics: self.metrics.clone(),
        }
    }

    /// Stores an HPA without validation.
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

    /// Waits until the API server's watch cache has the stored objects, because watches start from it.
    pub(crate) async fn remembered(&self) {
        for path in
            ["/apis/autoscaling/v2/namespaces/{ns}/horizontalpodautoscalers", "/api/v1/namespaces/{ns}/pods"]
        {
            let stored = versions(&self.read(path).await);
            self.until("what is stored in memory", async || {
                let found = versions(&self.read(&format!("{path}?resourceVersion=0")).await);
                if found == stored { Ok(()) } else { Err(found) }
            })
            .await;
        }
    }

    /// Creates a Deployment of `replicas`, and as many running and ready pods that request 1 CPU and 1Gi of memory.
    pub(crate) async fn workload(&self, name: &str, replicas: usize) {
        self.deployment(name, replicas).await;
        for number in 0..replicas {
            self.pod(name, number).await;
        }
    }

    /// Creates a pod of a workload that has been running and ready for an hour.
    pub(crate) async fn pod(&self, workload: &str, number: usize) {
        self.pod_with(workload, number, json!({"requests": {"cpu": "1", "memory": "1Gi"}})).await;
    }

    /// Creates such a pod with other resource requests.
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

    /// Sets the usage of each pod of a workload.
    pub(crate) fn usage(&self, workload: &str, pods: usize, cpu_milli: i64, memory: i64) {
        for number in 0..pods {
            let usage = PodUsage::new(&[("app", workload)], &[("app", cpu_milli, memory)]);
            self.script.set_pod(&self.namespace, &format!("{workload}-{number}"), usage);
        }
    }

    /// Sets the external metric with the name of a workload so that this many replicas are right for [`queue`].
    pub(crate) fn ask_for(&self, workload: &str, replicas: i64) {
        self.script.set_external(&self.namespace, workload, Series::milli(replicas * 10_000));
    }

    /// Creates an HPA of the Deployment of the same name.
    pub(crate) async fn hpa(&self, name: &str, min: i32, max: i32, metrics: Value) {
        self.hpa_with(name, json!({"minReplicas": min, "maxReplicas": max, "metrics": metrics})).await;
    }

    /// Waits until the status of an HPA has this `desiredReplicas`. The condition that it has just scaled lasts one period only.
    pub(crate) async fn until_reported(&self, name: &str, wanted: i64) {
        self.until(&format!("{wanted} in the status of {name}"), async || {
            let status = self.hpa_object(name).await["status"].take();
            if status["desiredReplicas"] == wanted { Ok(()) } else { Err(status) }
        })
        .await;
    }

    /// The number of reads of a workload's external metric; every reconcile reads it once.
    pub(crate) fn metric_reads(&self, workload: &str) -> u64 {
        self.metric_counter().reads(workload)
    }

    fn metric_counter(&self) -> MetricCounter {
        MetricCounter { script: self.script.clone(), namespace: self.namespace.clone() }
    }

    /// Waits until the external metric of a workload was read this many more times: all reconciles but the last have ended.
    pub(crate) async fn until_metric_reads(&self, workload: &str, count: u64) {
        let before = self.metric_reads(workload);
        self.until(&format!("{count} reads of {workload}"), async || {
            let reads = self.metric_reads(workload) - before;
            if reads >= count { Ok(()) } else { Err(reads) }
        })
        .await;
    }

    /// Waits until a controller has made this many more decisions on each of these HPAs.
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

    /// Settings for tests: a short sync period, no stabilization window, only this namespace.
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

/// Counts reads of external metrics in one namespace.
struct MetricCounter {
    script: Script,
    namespace: String,
}

impl MetricCounter {
    fn reads(&self, workload: &str) -> u64 {
        let namespace = &self.namespace;
        self.script.count(&format!("/apis/external.metrics.k8s.io/v1beta1/namespaces/{namespace}/{workload}"))
    }
}

/// The names and resource versions of a list.
fn versions(list: &Value) -> Vec<(String, String)> {
    let text = |item: &Value, field: &str| item["metadata"][field].as_str().unwrap_or_default().to_owned();
    let mut versions: Vec<_> =
        items(list).iter().map(|item| (text(item, "name"), text(item, "resourceVersion"))).collect();
    versions.sort();
    versions
}

/// An external metric with the name of a workload, and a target of ten per replica.
pub(crate) fn queue(workload: &str) -> Value {
    json!({"type": "External", "external": {
        "metric": {"name": workload}, "target": {"type": "AverageValue", "averageValue": "10"}
    }})
}

/// A CPU metric with a target in percent of the request.
pub(crate) fn cpu(percent: i32) -> Value {
    json!({"type": "Resource", "resource": {
        "name": "cpu", "target": {"type": "Utilization", "averageUtilization": percent}
    }})
}

/// A unique number.
pub(crate) fn unique() -> u64 {
    static COUNT: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(1);
    COUNT.fetch_add(1, std::sync::atomic::Ordering::Relaxed)
}

/// Starts the metrics APIs on the cluster of a namespace.
async fn start_metrics(ns: &TestNamespace) -> MetricsApi {
    let api = MetricsApi::start(localkube::metrics::MetricsSettings::default()).await.unwrap();
    api.register(&ns.client, "kube-system").await.unwrap();
    api
}

/// The metrics APIs of the real cluster, for all tests of this process.
async fn real_metrics(ns: &TestNamespace) -> Script {
    static API: OnceCell<MetricsApi> = OnceCell::const_new();
    API.get_or_init(async || start_metrics(ns).await).await.script()
}
