//! 1,000 autoscalers on a real API server: first Kubernetes' own controller looks after them, then ours.

use localkube::metrics::{MetricsApi, MetricsSettings};
use testbed::peer::{Peer, PeerOptions};
use testbed::proxy::{Proxy, ProxyOptions};
use testbed::{Access, ControlPlane, Error, Options, harness, ports};
use tokio::runtime::Runtime;

use crate::load::Load;
use crate::measure::{Measured, MeasuredController};
use crate::shared::table::{ComparisonTable, mebibytes};
use crate::start_controller;
use crate::workloads::Workloads;
use crate::{PERIOD, WINDOW};

const WORKLOADS: Workloads = Workloads { autoscalers: 1_000, namespaces: 20 };

/// Workload controllers would create pods, so they are disabled.
const WITHOUT_WORKLOADS: &str = "--controllers=-deployment-controller,-replicaset-controller,-statefulset-controller,\
    -job-controller,-pod-garbage-collector-controller,-taint-eviction-controller,-disruption-controller";

/// Whether every status write was due: values change at every look, so every look writes.
const WRITES: std::ops::RangeInclusive<f64> = 0.9..=1.1;

pub(crate) fn run(runtime: &Runtime) -> bool {
    match plane() {
        Ok(plane) => runtime.block_on(compare(plane.access())),
        Err(error) => {
            eprintln!("{error}");
            false
        }
    }
}

fn plane() -> Result<ControlPlane, Error> {
    let controller_manager_args = vec![WITHOUT_WORKLOADS.to_owned()];
    ControlPlane::start(&Options { controller_manager_args, ..Options::default() })
}

/// Keeps the cluster, with changing values, until its standard input ends: for a profiler.
pub(crate) fn hold(runtime: &Runtime, file: &str) {
    let plane = plane().unwrap();
    let kubeconfig = plane.access().kubeconfig_for(plane.access().admin());
    let (_metrics, load) = runtime.block_on(env(&kubeconfig));
    load.changes(true);
    std::fs::write(file, kubeconfig).unwrap();
    println!("ready");
    for word in std::io::stdin().lines().map_while(Result::ok) {
        load.changes(word == "change");
    }
}

async fn env(kubeconfig: &str) -> (MetricsApi, Load) {
    let client =
        harness::connect(kubeconfig).await.unwrap_or_else(|_| panic!("the real cluster cannot be reached"));
    let metrics = MetricsApi::start(MetricsSettings::default()).await.unwrap();
    metrics.register(&client, "kube-system").await.unwrap();
    eprintln!("making {} autoscalers and their pods", WORKLOADS.autoscalers);
    WORKLOADS.make(&client).await;
    let load = Load::start(WORKLOADS, metrics.script());
    (metrics, load)
}

async fn compare(access: &Access) -> bool {
    let kubeconfig = access.kubeconfig_for(access.admin());
    let (_metrics, load) = env(&kubeconfig).await;
    eprintln!("Kubernetes' own controller");
    let theirs = theirs(access, &load).await;
    eprintln!("ours");
    let ours = ours(&kubeconfig, &load).await;

    println!(
        "{} autoscalers × 10 pods, one period is {} s, measured for {} s",
        WORKLOADS.autoscalers,
        PERIOD.as_secs(),
        WINDOW.as_secs()
    );
    let steady = compare_variant("values stay as they are", &theirs[0], &ours[0]);
    let changing = compare_variant("values change at every look", &theirs[1], &ours[1]);
    let mut good = steady && changing;
    for (who, measured) in [("theirs", &theirs[1]), ("ours", &ours[1])] {
        if !WRITES.contains(&measured.writes_per_sync()) {
            println!("not what was meant: {who} wrote {:.3} statuses per sync", measured.writes_per_sync());
            good = false;
        }
    }
    good
}

async fn theirs(access: &Access, load: &Load) -> [Measured; 2] {
    let port = ports::free().unwrap();
    let args = vec![
        "--bind-address=127.0.0.1".to_owned(),
        format!("--secure-port={port}"),
        "--authorization-always-allow-paths=/healthz,/metrics".to_owned(),
    ];
    let options = PeerOptions { counted: true, args, ..PeerOptions::default() };
    let peer = Peer::start(access, &options).await.unwrap();
    let subject = MeasuredController::new(peer.pid().expect("its process is there"), port, peer.rules());
    both(&subject, load).await
}

async fn ours(kubeconfig: &str, load: &Load) -> [Measured; 2] {
    let settings = ProxyOptions { remember_lists: false, ..ProxyOptions::default() };
    let proxy = Proxy::start_with(kubeconfig, settings).await.unwrap();
    let mut ours = start_controller(&proxy.kubeconfig());
    let subject = MeasuredController::new(ours.pid(), ours.port, Some(proxy.rules()));
    let measured = both(&subject, load).await;
    ours.check();
    measured
}

/// Both variants: values that stay, and values that change.
async fn both(subject: &MeasuredController, load: &Load) -> [Measured; 2] {
    load.changes(false);
    subject.warm(WORKLOADS.autoscalers).await;
    let steady = subject.measure(WINDOW).await;
    load.changes(true);
    tokio::time::sleep(PERIOD * 2).await;
    let changing = subject.measure(WINDOW).await;
    load.changes(false);
    [steady, changing]
}

/// Prints one variant of both controllers; true if all limits are kept.
fn compare_variant(variant: &str, theirs: &Measured, ours: &Measured) -> bool {
    let mut table = ComparisonTable::new(variant);
    table.row("CPU per sync, µs", theirs.cpu_per_sync(), ours.cpu_per_sync(), 0, Some(0.2));
    let memory = |measured: &Measured| mebibytes(measured.usage.resident);
    table.row("resident memory, MiB", memory(theirs), memory(ours), 1, Some(0.25));
    let peak = |measured: &Measured| mebibytes(measured.usage.peak);
    table.row("… at most since the start, MiB", peak(theirs), peak(ours), 1, None);
    table.row("API requests per sync", theirs.requests_per_sync(), ours.requests_per_sync(), 3, Some(0.5));
    table.row("status writes per sync", theirs.writes_per_sync(), ours.writes_per_sync(), 3, None);
    table.row("syncs", theirs.syncs as f64, ours.syncs as f64, 0, None);
    for (who, measured) in [("theirs", theirs), ("ours", ours)] {
        println!("requests of {who}:");
        for ((method, shape), count) in &measured.requests {
            println!("  {count:>8}  {method} {shape}");
        }
    }
    table.good()
}
