//! 10,000 autoscalers on localkube, which runs in a process of its own so that its memory is counted apart.

use std::time::Instant;

use localkube::metrics::{MetricsApi, MetricsSettings};
use localkube::{Cluster, Options};

use crate::load::Load;
use crate::measure::{Measured, MeasuredController};
use crate::shared::server::{ServerProcess, ready};
use crate::shared::table;
use crate::start_controller;
use crate::workloads::Workloads;
use crate::{PERIOD, WINDOW};

pub(crate) const WORKLOADS: Workloads = Workloads { autoscalers: 10_000, namespaces: 100 };
pub(crate) const MEMORY_LIMIT: f64 = 350.0;
/// The bucket of the histogram that is nearest to a second.
const IN_TIME: &str = "plimsoll_pass_delay_seconds_bucket{le=\"1.024\"}";
const PASSES: &str = "plimsoll_pass_delay_seconds_count";

/// In the other process: serves until its standard input is closed.
pub(crate) async fn serve(file: &str, workloads: Workloads) {
    let running = Cluster::start(Options { workloads: false, ..Options::default() }).await.unwrap();
    let client = running.client();
    let begun = Instant::now();
    workloads.make(&client).await;
    eprintln!("made in {:.0} s", begun.elapsed().as_secs_f64());
    let metrics = MetricsApi::start(MetricsSettings::default()).await.unwrap();
    metrics.register(&client, "kube-system").await.unwrap();
    let load = Load::start(workloads, metrics.script());
    let server = running.serve().await.unwrap();
    ready(file, &server.kubeconfig, move |command| load.changes(command == "change")).await;
}

pub(crate) async fn run() -> bool {
    eprintln!("making {} autoscalers and their pods on localkube", WORKLOADS.autoscalers);
    let mut server = ServerProcess::start().await;
    let mut ours = start_controller(&server.kubeconfig);
    let subject = MeasuredController::new(ours.pid(), ours.port, None);
    subject.warm(WORKLOADS.autoscalers).await;
    let steady = subject.measure(WINDOW).await;
    ours.check();
    server.command("change");
    tokio::time::sleep(PERIOD * 2).await;
    let changing = subject.measure(WINDOW).await;
    ours.check();
    println!("\n{} autoscalers × 10 pods on localkube, our controller alone", WORKLOADS.autoscalers);
    [("values stay as they are", steady), ("values change at every look", changing)]
        .iter()
        .fold(true, |good, (variant, measured)| show(variant, measured) && good)
}

fn show(variant: &str, measured: &Measured) -> bool {
    println!("\n{variant}");
    let periods = measured.usage.took.as_secs_f64() / PERIOD.as_secs_f64();
    let per_period = measured.syncs as f64 / periods;
    let between =
        |name: &str| measured.after.get(name).unwrap_or(0.0) - measured.before.get(name).unwrap_or(0.0);
    let writes = measured.after.sum("plimsoll_writes_total") - measured.before.sum("plimsoll_writes_total");
    table::row("syncs per period", per_period, 0);
    table::row("status writes per sync", writes / measured.syncs.max(1) as f64, 3);
    table::row("CPU per sync, µs", measured.cpu_per_sync(), 0);
    let kept = [
        table::at_most(
            "autoscalers left out per period, percent",
            100.0 - per_period * 100.0 / WORKLOADS.autoscalers as f64,
            1,
            1.0,
        ),
        table::at_most("passes late by more than a second", between(PASSES) - between(IN_TIME), 0, 0.0),
        table::at_most(
            "one core, percent",
            measured.usage.cpu.as_secs_f64() * 100.0 / measured.usage.took.as_secs_f64(),
            1,
            100.0,
        ),
        table::at_most("resident memory, MiB", table::mebibytes(measured.usage.resident), 1, MEMORY_LIMIT),
        table::at_most(
            "… at most since the start, MiB",
            table::mebibytes(measured.usage.peak),
            1,
            MEMORY_LIMIT,
        ),
    ];
    kept.into_iter().all(|kept| kept)
}
