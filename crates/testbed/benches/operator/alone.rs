//! The operator alone with 10,000 ScaledObjects on localkube, which runs in a separate process.

use std::time::Duration;

use crate::env::{OperatorBenchEnv, register};
use crate::metric_requests::MetricRequests;
use crate::operator_process;
use crate::scripted_prometheus::ScriptedPrometheus;
use crate::shared::table;
use crate::shared::usage::{ProcessMeasurement, measure};
use crate::workloads::{OperatorWorkloads, Queries};
use crate::{MEASUREMENT_WINDOW, POLLING_INTERVAL};

const OBJECTS: usize = 10_000;
const MAX_MILLICORES: f64 = 100.0;
const MAX_MEMORY_MIB: f64 = 120.0;

pub(crate) async fn run() -> bool {
    let objects = std::env::var("BENCH_OBJECTS").ok().and_then(|text| text.parse().ok()).unwrap_or(OBJECTS);
    let source = ScriptedPrometheus::start(5).await;
    let env = OperatorBenchEnv::start().await;
    let workloads = OperatorWorkloads::new("alone", objects, &source.url, Queries::Distinct);
    workloads.create(&env.client).await;
    let mut operator = operator_process::start(&env.kubeconfig, workloads.namespace).await;
    // Every object is reconciled, and polled once more.
    source.until_queried(2 * objects as u64, objects).await;
    tokio::time::sleep(POLLING_INTERVAL).await;
    let before = source.query_count();
    let [polled] = measure([operator.pid()], MEASUREMENT_WINDOW).await;
    let polls = source.query_count() - before;
    operator.check();

    println!(
        "\n{objects} ScaledObjects on localkube, a prometheus trigger each, every 30 s, all active; our operator alone"
    );
    let mut good = show_polls(&polled, polls, objects);
    good &= table::at_most("resident memory, MiB", table::mebibytes(polled.resident), 1, MAX_MEMORY_MIB);
    table::row("… at most since the start, MiB", table::mebibytes(polled.peak), 1);
    good &= table::at_most("thousandths of a core", polled.millicores(), 1, MAX_MILLICORES);

    register(&env.client, workloads.namespace, operator.port).await;
    let metric_requests = MetricRequests::start(&env.client, &workloads);
    tokio::time::sleep(Duration::from_secs(20)).await;
    let _ = metric_requests.counts();
    let before = source.query_count();
    let [with_requests] = measure([operator.pid()], MEASUREMENT_WINDOW / 2).await;
    let polls = source.query_count() - before;
    let (answered, failed) = metric_requests.counts();
    operator.check();
    println!("\nthe same while every metric is requested every 15 s through the API server, as for HPAs");
    show_polls(&with_requests, polls, objects);
    table::row("metric requests per second", answered as f64 / with_requests.took.as_secs_f64(), 1);
    table::row("failed metric requests", failed as f64, 0);
    table::row("resident memory, MiB", table::mebibytes(with_requests.resident), 1);
    table::row("thousandths of a core", with_requests.millicores(), 1);
    good
}

fn show_polls(measured: &ProcessMeasurement, polls: u64, objects: usize) -> bool {
    let per_interval = polls as f64 * POLLING_INTERVAL.as_secs_f64() / measured.took.as_secs_f64();
    table::row("CPU per query, µs", measured.cpu.as_secs_f64() * 1e6 / polls as f64, 0);
    table::at_most(
        "missed polls per interval, percent",
        100.0 - per_interval * 100.0 / objects as f64,
        1,
        1.0,
    )
}
