//! 1,000 ScaledObjects on a real API server: first KEDA reconciles them, then Plimsoll reconciles copies of them in another namespace.
//!
//! Both poll the same Prometheus every 30 s, and all objects are active. Every metric is requested every 15 s through the API server, which
//! forwards the requests to KEDA's adapter, and so to KEDA's operator, or directly to our operator. First Kubernetes' own HPA controller sends
//! the requests. It syncs all HPAs that it found at its start together, five at a time. Then the benchmark sends the requests evenly over
//! time, so that each of them finds CPU caches with the code of other programs.

use std::time::Duration;

use http::Method;
use kube::Client;
use serde_json::Value;
use testbed::keda::{Keda, KedaOptions, prepare};
use testbed::peer::{Peer, PeerOptions};
use testbed::proxy::{Proxy, ProxyOptions, Rules};
use testbed::{Access, harness};

use crate::env::{on_control_plane, register};
use crate::metric_requests::MetricRequests;
use crate::operator_process;
use crate::scripted_prometheus::ScriptedPrometheus;
use crate::shared::table::{ComparisonTable, mebibytes};
use crate::shared::usage::{ProcessMeasurement, measure};
use crate::workloads::{OperatorWorkloads, Queries};
use crate::{MEASUREMENT_WINDOW, POLLING_INTERVAL};

const OBJECTS: usize = 1_000;
const MAX_CPU_RATIO: f64 = 1.0 / 8.0;
const MAX_MEMORY_RATIO: f64 = 1.0 / 5.0;
const KEDA_NAMESPACE: &str = "keda";
/// The shape of the path of metric requests, under which a proxy counts those of the HPA controller.
const METRIC_REQUEST_SHAPE: &str = "/apis/external.metrics.k8s.io/v1beta1/namespaces/{ns}/s0-prometheus";

/// What both sides did while metrics were requested in one way.
struct SideComparison {
    requested_by: &'static str,
    theirs: SideMeasurement,
    ours: SideMeasurement,
}

/// What one side did in a measurement window.
struct SideMeasurement {
    processes: Vec<(&'static str, ProcessMeasurement)>,
    queries: u64,
    answered: u64,
    failed: u64,
    requests: u64,
}

impl SideMeasurement {
    fn all(&self) -> ProcessMeasurement {
        self.processes.iter().map(|(_, measured)| *measured).reduce(ProcessMeasurement::and).unwrap()
    }
}

impl SideComparison {
    /// Prints the comparison, and returns whether all limits are kept.
    fn show(&self) -> bool {
        let title = format!(
            "{OBJECTS} ScaledObjects on a real API server, polled every 30 s, measured for {} s; {}",
            MEASUREMENT_WINDOW.as_secs(),
            self.requested_by
        );
        let mut table = ComparisonTable::new(&title);
        let (theirs, ours) = (&self.theirs, &self.ours);
        let (their, our) = (theirs.all(), ours.all());
        table.row("CPU, thousandths of a core", their.millicores(), our.millicores(), 1, Some(MAX_CPU_RATIO));
        table.row(
            "resident memory, MiB",
            mebibytes(their.resident),
            mebibytes(our.resident),
            1,
            Some(MAX_MEMORY_RATIO),
        );
        table.row("… at most since the start, MiB", mebibytes(their.peak), mebibytes(our.peak), 1, None);
        table.row("queries to Prometheus", theirs.queries as f64, ours.queries as f64, 0, None);
        table.row("metric requests", theirs.answered as f64, ours.answered as f64, 0, None);
        table.row("requests to the API server", theirs.requests as f64, ours.requests as f64, 0, None);
        for (name, measured) in theirs.processes.iter().chain(&ours.processes) {
            println!("{name:<44} {:>8.1} m {:>8.1} MiB", measured.millicores(), mebibytes(measured.resident));
        }
        println!("failed metric requests: theirs {}, ours {}", theirs.failed, ours.failed);
        table.good() && theirs.failed == 0 && ours.failed == 0
    }
}

pub(crate) async fn run() -> bool {
    on_control_plane(compare).await
}

async fn compare(access: &Access) -> bool {
    let kubeconfig = access.kubeconfig_for(access.admin());
    let client =
        harness::connect(&kubeconfig).await.unwrap_or_else(|_| panic!("the cluster cannot be reached"));
    prepare(access, KEDA_NAMESPACE).await.unwrap();
    let source = ScriptedPrometheus::start(5).await;
    let sides = ["theirs", "ours"]
        .map(|namespace| OperatorWorkloads::new(namespace, OBJECTS, &source.url, Queries::Distinct));
    for workloads in &sides {
        workloads.create(&client).await;
    }
    eprintln!("KEDA");
    let theirs = theirs(access, &client, &source, &sides[0]).await;
    eprintln!("ours");
    let ours = ours(access, &kubeconfig, &client, &source, &sides[1]).await;
    let requested_by =
        ["metrics requested by Kubernetes' HPA controller", "metrics requested every 15 s, evenly over time"];
    let ways = requested_by.into_iter().zip(theirs.into_iter().zip(ours));
    let kept: Vec<bool> = ways
        .map(|(requested_by, (theirs, ours))| SideComparison { requested_by, theirs, ours }.show())
        .collect();
    kept.into_iter().all(|kept| kept)
}

async fn theirs(
    access: &Access,
    client: &Client,
    source: &ScriptedPrometheus,
    workloads: &OperatorWorkloads,
) -> [SideMeasurement; 2] {
    let options = KedaOptions {
        namespace: Some(workloads.namespace.to_owned()),
        own_namespace: KEDA_NAMESPACE.to_owned(),
        adapter: true,
        counted: true,
        ..KedaOptions::default()
    };
    let keda = Keda::start(access, &options).await.unwrap();
    let processes = [
        ("KEDA's operator", keda.pid().unwrap()),
        ("KEDA's metrics adapter", keda.adapter().unwrap().pid().unwrap()),
    ];
    let rules = keda.rules().expect("its requests are counted");
    both(&SideEnv { access, client, source, workloads, rules }, processes).await
}

async fn ours(
    access: &Access,
    kubeconfig: &str,
    client: &Client,
    source: &ScriptedPrometheus,
    workloads: &OperatorWorkloads,
) -> [SideMeasurement; 2] {
    let settings = ProxyOptions { store_lists: false, ..ProxyOptions::default() };
    let proxy = Proxy::start_with(kubeconfig, settings).await.unwrap();
    let mut operator = operator_process::start(&proxy.kubeconfig(), workloads.namespace).await;
    register(client, workloads.namespace, operator.port).await;
    let processes = [("plimsoll operator", operator.pid())];
    let rules = proxy.rules();
    let sides = both(&SideEnv { access, client, source, workloads, rules }, processes).await;
    operator.check();
    sides
}

/// The environment of one side.
struct SideEnv<'a> {
    access: &'a Access,
    client: &'a Client,
    source: &'a ScriptedPrometheus,
    workloads: &'a OperatorWorkloads,
    /// The rules of the proxy through which the side sends its requests.
    rules: Rules,
}

/// Waits until all HPAs exist and all objects are polled, and measures twice: with requests of an HPA controller, and with evenly spread requests.
async fn both<const N: usize>(
    env: &SideEnv<'_>,
    processes: [(&'static str, u32); N],
) -> [SideMeasurement; 2] {
    let SideEnv { access, client, source, workloads, .. } = *env;
    let begun = std::time::Instant::now();
    while env.hpas(|_| true).await < workloads.objects {
        assert!(begun.elapsed() < Duration::from_mins(5), "there are {} HPAs", env.hpas(|_| true).await);
        tokio::time::sleep(Duration::from_secs(2)).await;
    }
    eprintln!("all HPAs after {:.0} s", begun.elapsed().as_secs_f64());
    source.until_queried(workloads.objects as u64, 1).await;

    let namespace = Some(workloads.namespace.to_owned());
    let peer = PeerOptions { namespace, counted: true, ..PeerOptions::default() };
    let peer = Peer::start(access, &peer).await.unwrap();
    tokio::time::sleep(POLLING_INTERVAL * 2).await;
    let metric_requests = peer.rules().expect("its requests are counted");
    metric_requests.clear_log();
    let mut by_controller = env.measure(processes).await;
    by_controller.answered = metric_requests.count(&Method::GET, METRIC_REQUEST_SHAPE);
    // An HPA without a value for its metric has the condition `ScalingActive` with status `False`.
    by_controller.failed = (workloads.objects - env.hpas(is_scaling).await) as u64;
    drop(peer);

    let metric_requests = MetricRequests::start(client, workloads);
    tokio::time::sleep(POLLING_INTERVAL * 2).await;
    let (_, early) = metric_requests.counts();
    if early > 0 {
        eprintln!("{early} metric requests failed before the measurement");
    }
    let mut evenly = env.measure(processes).await;
    (evenly.answered, evenly.failed) = metric_requests.counts();
    [by_controller, evenly]
}

impl SideEnv<'_> {
    /// The number of HPAs for which `which` is true.
    async fn hpas(&self, which: impl Fn(&Value) -> bool) -> usize {
        let namespace = self.workloads.namespace;
        let path = format!("/apis/autoscaling/v2/namespaces/{namespace}/horizontalpodautoscalers?limit=2000");
        let (_, list) = harness::send(self.client, Method::GET, &path, None).await;
        list["items"].as_array().map_or(0, |items| items.iter().filter(|item| which(item)).count())
    }

    /// Measures the processes, queries and requests. The caller adds the counts of metric requests.
    async fn measure<const N: usize>(&self, processes: [(&'static str, u32); N]) -> SideMeasurement {
        self.rules.clear_log();
        let before = self.source.query_count();
        let measured = measure(processes.map(|(_, pid)| pid), MEASUREMENT_WINDOW).await;
        let counts = self.rules.counts();
        for ((method, shape), count) in &counts {
            eprintln!("  {count:>8}  {method} {shape}");
        }
        SideMeasurement {
            processes: processes.iter().map(|(name, _)| *name).zip(measured).collect(),
            queries: self.source.query_count() - before,
            answered: 0,
            failed: 0,
            requests: counts.values().sum(),
        }
    }
}

/// Whether the condition `ScalingActive` of an HPA is true: the controller got all metrics that it needs.
fn is_scaling(hpa: &Value) -> bool {
    let conditions = hpa["status"]["conditions"].as_array();
    conditions
        .is_some_and(|all| all.iter().any(|one| one["type"] == "ScalingActive" && one["status"] == "True"))
}
