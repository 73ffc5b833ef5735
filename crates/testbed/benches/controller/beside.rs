//! 1,000 autoscalers on a real API server: first Kubernetes' own controller reconciles them, then ours.

use localkube::metrics::{MetricsApi, MetricsSettings};
use testbed::peer::{Peer, PeerOptions};
use testbed::proxy::{Proxy, ProxyOptions};
use testbed::{Access, ControlPlane, Error, Options, harness, ports};
use tokio::runtime::Runtime;

use crate::load::Load;
use crate::measure::{ControllerMeasurement, MeasuredController};
use crate::shared::table::{ComparisonTable, mebibytes};
use crate::start_controller;
use crate::workloads::Workloads;
use crate::{MEASUREMENT_WINDOW, SYNC_PERIOD};

const WORKLOADS: Workloads = Workloads { autoscalers: 1_000, namespaces: 20 };

/// The flag that disables the workload controllers, which would create pods beside those of the benchmark.
const DISABLED_CONTROLLERS_FLAG: &str = "--controllers=-deployment-controller,-replicaset-controller,-statefulset-controller,\
    -job-controller,-pod-garbage-collector-controller,-taint-eviction-controller,-disruption-controller";

/// The expected number of status writes per sync while values change: one, because every sync then sees other values.
const EXPECTED_WRITES_PER_SYNC: std::ops::RangeInclusive<f64> = 0.9..=1.1;

pub(crate) fn run(runtime: &Runtime) -> bool {
    match start_control_plane() {
        Ok(plane) => runtime.block_on(compare(plane.access())),
        Err(error) => {
            eprintln!("{error}");
            false
        }
    }
}

fn start_control_plane() -> Result<ControlPlane, Error> {
    let controller_manager_args = vec![DISABLED_CONTROLLERS_FLAG.to_owned()];
    ControlPlane::start(&Options { controller_manager_args, ..Options::default() })
}

/// Keeps the cluster, with changing values, until standard input ends, so that a profiler can be attached to a controller.
pub(crate) fn hold(runtime: &Runtime, file: &str) {
    let plane = start_control_plane().unwrap();
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
    eprintln!("creating {} autoscalers and their pods", WORKLOADS.autoscalers);
    WORKLOADS.create(&client).await;
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
        SYNC_PERIOD.as_secs(),
        MEASUREMENT_WINDOW.as_secs()
    );
    let steady = compare_variant("values stay as they are", &theirs[0], &ours[0]);
    let changing = compare_variant("values change at every sync", &theirs[1], &ours[1]);
    let mut good = steady && changing;
    for (who, measured) in [("theirs", &theirs[1]), ("ours", &ours[1])] {
        if !EXPECTED_WRITES_PER_SYNC.contains(&measured.writes_per_sync()) {
            println!(
                "the measurement is invalid: {who} wrote {:.3} statuses per sync",
                measured.writes_per_sync()
            );
            good = false;
        }
    }
    good
}

async fn theirs(access: &Access, load: &Load) -> [ControllerMeasurement; 2] {
    let port = ports::free().unwrap();
    let args = vec![
        "--bind-address=127.0.0.1".to_owned(),
        format!("--secure-port={port}"),
        "--authorization-always-allow-paths=/healthz,/metrics".to_owned(),
    ];
    let options = PeerOptions { counted: true, args, ..PeerOptions::default() };
    let peer = Peer::start(access, &options).await.unwrap();
    let controller = MeasuredController::new(peer.pid().expect("its process is there"), port, peer.rules());
    both(&controller, load).await
}

async fn ours(kubeconfig: &str, load: &Load) -> [ControllerMeasurement; 2] {
    let settings = ProxyOptions { store_lists: false, ..ProxyOptions::default() };
    let proxy = Proxy::start_with(kubeconfig, settings).await.unwrap();
    let mut ours = start_controller(&proxy.kubeconfig());
    let controller = MeasuredController::new(ours.pid(), ours.port, Some(proxy.rules()));
    let measured = both(&controller, load).await;
    ours.check();
    measured
}

/// Measures both variants: constant values, then changing values.
async fn both(controller: &MeasuredController, load: &Load) -> [ControllerMeasurement; 2] {
    load.changes(false);
    controller.until_reconciled_twice(WORKLOADS.autoscalers).await;
    let steady = controller.measure(MEASUREMENT_WINDOW).await;
    load.changes(true);
    tokio::time::sleep(SYNC_PERIOD * 2).await;
    let changing = controller.measure(MEASUREMENT_WINDOW).await;
    load.changes(false);
    [steady, changing]
}

/// Prints the measurements of both controllers in one variant, and returns whether all limits are kept.
fn compare_variant(variant: &str, theirs: &ControllerMeasurement, ours: &ControllerMeasurement) -> bool {
    let mut table = ComparisonTable::new(variant);
    table.row("CPU per sync, µs", theirs.cpu_per_sync(), ours.cpu_per_sync(), 0, Some(0.2));
    let memory = |measured: &ControllerMeasurement| mebibytes(measured.usage.resident);
    table.row("resident memory, MiB", memory(theirs), memory(ours), 1, Some(0.25));
    let peak = |measured: &ControllerMeasurement| mebibytes(measured.usage.peak);
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
