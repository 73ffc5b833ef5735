//! The controller alone with 10,000 autoscalers on localkube. localkube runs in a separate process, so that its memory is not counted.

use std::time::Instant;

use localkube::metrics::{MetricsApi, MetricsSettings};
use localkube::{Cluster, Options};

use crate::load::Load;
use crate::measure::{ControllerMeasurement, MeasuredController};
use crate::shared::server::{ServerProcess, ready};
use crate::shared::table;
use crate::start_controller;
use crate::workloads::Workloads;
use crate::{MEASUREMENT_WINDOW, SYNC_PERIOD};

pub(crate) const WORKLOADS: Workloads = Workloads { autoscalers: 10_000, namespaces: 100 };
pub(crate) const MAX_MEMORY_MIB: f64 = 350.0;
/// The bucket of the delay histogram whose bound is nearest to a second.
const PASSES_DELAYED_BELOW_ONE_SECOND: &str = "plimsoll_pass_delay_seconds_bucket{le=\"1.024\"}";
const ALL_PASSES: &str = "plimsoll_pass_delay_seconds_count";

/// Runs in the server process: serves until its standard input is closed.
pub(crate) async fn serve(file: &str, workloads: Workloads) {
    let running = Cluster::start(Options { workloads: false, ..Options::default() }).await.unwrap();
    let client = running.client();
    let begun = Instant::now();
    workloads.create(&client).await;
    eprintln!("created in {:.0} s", begun.elapsed().as_secs_f64());
    let metrics = MetricsApi::start(MetricsSettings::default()).await.unwrap();
    metrics.register(&client, "kube-system").await.unwrap();
    let load = Load::start(workloads, metrics.script());
    let server = running.serve().await.unwrap();
    ready(file, &server.kubeconfig, move |command| load.changes(command == "change")).await;
}

pub(crate) async fn run() -> bool {
    eprintln!("creating {} autoscalers and their pods on localkube", WORKLOADS.autoscalers);
    let mut server = ServerProcess::start().await;
    let mut ours = start_controller(&server.kubeconfig);
    let controller = MeasuredController::new(ours.pid(), ours.port, None);
    controller.until_reconciled_twice(WORKLOADS.autoscalers).await;
    let steady = controller.measure(MEASUREMENT_WINDOW).await;
    ours.check();
    server.command("change");
    tokio::time::sleep(SYNC_PERIOD * 2).await;
    let changing = controller.measure(MEASUREMENT_WINDOW).await;
    ours.check();
    println!("\n{} autoscalers × 10 pods on localkube, our controller alone", WORKLOADS.autoscalers);
    [("values stay as they are", steady), ("values change at every sync", changing)]
        .iter()
        .fold(true, |good, (variant, measured)| show(variant, measured) && good)
}

fn show(variant: &str, measured: &ControllerMeasurement) -> bool {
    println!("\n{variant}");
    let periods = measured.usage.took.as_secs_f64() / SYNC_PERIOD.as_secs_f64();
    let per_period = measured.syncs as f64 / periods;
    let between =
        |name: &str| measured.after.get(name).unwrap_or(0.0) - measured.before.get(name).unwrap_or(0.0);
    let writes = measured.after.sum("plimsoll_writes_total") - measured.before.sum("plimsoll_writes_total");
    table::row("syncs per period", per_period, 0);
    table::row("status writes per sync", writes / measured.syncs.max(1) as f64, 3);
    table::row("CPU per sync, µs", measured.cpu_per_sync(), 0);
    let kept = [
        table::at_most(
            "autoscalers without a sync per period, percent",
            100.0 - per_period * 100.0 / WORKLOADS.autoscalers as f64,
            1,
            1.0,
        ),
        table::at_most(
            "passes late by more than a second",
            between(ALL_PASSES) - between(PASSES_DELAYED_BELOW_ONE_SECOND),
            0,
            0.0,
        ),
        table::at_most(
            "one core, percent",
            measured.usage.cpu.as_secs_f64() * 100.0 / measured.usage.took.as_secs_f64(),
            1,
            100.0,
        ),
        table::at_most("resident memory, MiB", table::mebibytes(measured.usage.resident), 1, MAX_MEMORY_MIB),
        table::at_most(
            "… at most since the start, MiB",
            table::mebibytes(measured.usage.peak),
            1,
            MAX_MEMORY_MIB,
        ),
    ];
    kept.into_iter().all(|kept| kept)
}
