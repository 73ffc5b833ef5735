//! 1,000 ScaledObjects on a real API server: first KEDA looks after them, then Plimsoll looks after copies of them in another namespace.
//!
//! Both poll the same Prometheus every 30 s, and all objects are active. Both are asked for every metric every 15 s, through
//! the API server: KEDA's adapter, which asks its operator, and our operator itself. First Kubernetes' own HPA controller
//! asks, which comes back to all HPAs it found at its start together, five at a time; then somebody who leaves the same time
//! between any two questions, so that each of them finds processors that were busy with something else.

use std::time::Duration;

use http::Method;
use kube::Client;
use serde_json::Value;
use testbed::keda::{Keda, KedaOptions, prepare};
use testbed::peer::{Peer, PeerOptions};
use testbed::proxy::{Proxy, ProxyOptions, Rules};
use testbed::{Access, harness};

use crate::env::{on_control_plane, register};
use crate::questions::Questions;
use crate::shared::table::{ComparisonTable, mebibytes};
use crate::shared::usage::{ProcessMeasurement, measure};
use crate::source::Source;
use crate::subject;
use crate::workloads::{OperatorWorkloads, Queries};
use crate::{INTERVAL, WINDOW};

const OBJECTS: usize = 1_000;
const CPU: f64 = 1.0 / 8.0;
const MEMORY: f64 = 1.0 / 5.0;
const HOME: &str = "keda";
/// How a proxy counts what the HPA controller asks.
const QUESTION: &str = "/apis/external.metrics.k8s.io/v1beta1/namespaces/{ns}/s0-prometheus";

/// What both sides did while they were asked in one way.
struct MetricQueries {
    how: &'static str,
    theirs: Side,
    ours: Side,
}

/// What one side did.
struct Side {
    processes: Vec<(&'static str, ProcessMeasurement)>,
    queries: u64,
    answered: u64,
    failed: u64,
    requests: u64,
}

impl Side {
    fn all(&self) -> ProcessMeasurement {
        self.processes.iter().map(|(_, measured)| *measured).reduce(ProcessMeasurement::and).unwrap()
    }
}

impl MetricQueries {
    /// Whether limits are kept.
    fn show(&self) -> bool {
        let title = format!(
            "{OBJECTS} ScaledObjects on a real API server, polled every 30 s, measured for {} s; {}",
            WINDOW.as_secs(),
            self.how
        );
        let mut table = ComparisonTable::new(&title);
        let (theirs, ours) = (&self.theirs, &self.ours);
        let (their, our) = (theirs.all(), ours.all());
        table.row("CPU, thousandths of a core", their.millicores(), our.millicores(), 1, Some(CPU));
        table.row(
            "resident memory, MiB",
            mebibytes(their.resident),
            mebibytes(our.resident),
            1,
            Some(MEMORY),
        );
        table.row("… at most since the start, MiB", mebibytes(their.peak), mebibytes(our.peak), 1, None);
        table.row("queries to Prometheus", theirs.queries as f64, ours.queries as f64, 0, None);
        table.row("questions", theirs.answered as f64, ours.answered as f64, 0, None);
        table.row("requests to the API server", theirs.requests as f64, ours.requests as f64, 0, None);
        for (name, measured) in theirs.processes.iter().chain(&ours.processes) {
            println!("{name:<44} {:>8.1} m {:>8.1} MiB", measured.millicores(), mebibytes(measured.resident));
        }
        println!("questions that failed: theirs {}, ours {}", theirs.failed, ours.failed);
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
    prepare(access, HOME).await.unwrap();
    let source = Source::start(5).await;
    let sides = ["theirs", "ours"]
        .map(|namespace| OperatorWorkloads::new(namespace, OBJECTS, &source.url, Queries::Distinct));
    for workloads in &sides {
        workloads.make(&client).await;
    }
    eprintln!("KEDA");
    let theirs = theirs(access, &client, &source, &sides[0]).await;
    eprintln!("ours");
    let ours = ours(access, &kubeconfig, &client, &source, &sides[1]).await;
    let how = ["asked by Kubernetes' HPA controller", "asked every 15 s, evenly over time"];
    let ways = how.into_iter().zip(theirs.into_iter().zip(ours));
    let kept: Vec<bool> =
        ways.map(|(how, (theirs, ours))| MetricQueries { how, theirs, ours }.show()).collect();
    kept.into_iter().all(|kept| kept)
}

async fn theirs(
    access: &Access,
    client: &Client,
    source: &Source,
    workloads: &OperatorWorkloads,
) -> [Side; 2] {
    let options = KedaOptions {
        namespace: Some(workloads.namespace.to_owned()),
        home: HOME.to_owned(),
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
    source: &Source,
    workloads: &OperatorWorkloads,
) -> [Side; 2] {
    let settings = ProxyOptions { remember_lists: false, ..ProxyOptions::default() };
    let proxy = Proxy::start_with(kubeconfig, settings).await.unwrap();
    let mut operator = subject::start(&proxy.kubeconfig(), workloads.namespace).await;
    register(client, workloads.namespace, operator.port).await;
    let processes = [("plimsoll operator", operator.pid())];
    let rules = proxy.rules();
    let sides = both(&SideEnv { access, client, source, workloads, rules }, processes).await;
    operator.check();
    sides
}

/// Where a side is measured.
struct SideEnv<'a> {
    access: &'a Access,
    client: &'a Client,
    source: &'a Source,
    workloads: &'a OperatorWorkloads,
    /// Through which its requests go.
    rules: Rules,
}

/// Waits until all is at work, and measures twice: asked by an HPA controller, and asked evenly.
async fn both<const N: usize>(env: &SideEnv<'_>, processes: [(&'static str, u32); N]) -> [Side; 2] {
    let SideEnv { access, client, source, workloads, .. } = *env;
    let begun = std::time::Instant::now();
    while env.hpas(|_| true).await < workloads.objects {
        assert!(begun.elapsed() < Duration::from_mins(5), "there are {} HPAs", env.hpas(|_| true).await);
        tokio::time::sleep(Duration::from_secs(2)).await;
    }
    eprintln!("all HPAs after {:.0} s", begun.elapsed().as_secs_f64());
    source.until_asked(workloads.objects as u64, 1).await;

    let namespace = Some(workloads.namespace.to_owned());
    let peer = PeerOptions { namespace, counted: true, ..PeerOptions::default() };
    let peer = Peer::start(access, &peer).await.unwrap();
    tokio::time::sleep(INTERVAL * 2).await;
    let questions = peer.rules().expect("its requests are counted");
    questions.clear_log();
    let mut by_controller = env.measure(processes).await;
    by_controller.answered = questions.count(&Method::GET, QUESTION);
    // An HPA without a value for its metric reports so in this condition.
    by_controller.failed = (workloads.objects - env.hpas(is_scaling).await) as u64;
    drop(peer);

    let questions = Questions::start(client, workloads);
    tokio::time::sleep(INTERVAL * 2).await;
    let (_, early) = questions.counts();
    if early > 0 {
        eprintln!("{early} questions failed before all was at work");
    }
    let mut evenly = env.measure(processes).await;
    (evenly.answered, evenly.failed) = questions.counts();
    [by_controller, evenly]
}

impl SideEnv<'_> {
    /// How many HPAs there are for which something holds.
    async fn hpas(&self, which: impl Fn(&Value) -> bool) -> usize {
        let namespace = self.workloads.namespace;
        let path = format!("/apis/autoscaling/v2/namespaces/{namespace}/horizontalpodautoscalers?limit=2000");
        let (_, list) = harness::send(self.client, Method::GET, &path, None).await;
        list["items"].as_array().map_or(0, |items| items.iter().filter(|item| which(item)).count())
    }

    /// What happens from now on; who asks knows how often.
    async fn measure<const N: usize>(&self, processes: [(&'static str, u32); N]) -> Side {
        self.rules.clear_log();
        let before = self.source.asked();
        let measured = measure(processes.map(|(_, pid)| pid), WINDOW).await;
        let counts = self.rules.counts();
        for ((method, shape), count) in &counts {
            eprintln!("  {count:>8}  {method} {shape}");
        }
        Side {
            processes: processes.iter().map(|(name, _)| *name).zip(measured).collect(),
            queries: self.source.asked() - before,
            answered: 0,
            failed: 0,
            requests: counts.values().sum(),
        }
    }
}

/// Whether the controller got all it needs to decide about an HPA.
fn is_scaling(hpa: &Value) -> bool {
    let conditions = hpa["status"]["conditions"].as_array();
    conditions
        .is_some_and(|all| all.iter().any(|one| one["type"] == "ScalingActive" && one["status"] == "True"))
}
