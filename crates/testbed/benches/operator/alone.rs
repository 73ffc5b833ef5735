//! 10,000 ScaledObjects on localkube, which runs in another process.

use std::time::Duration;

use crate::env::{OperatorBenchEnv, register};
use crate::questions::Questions;
use crate::shared::table;
use crate::shared::usage::{ProcessMeasurement, measure};
use crate::source::Source;
use crate::subject;
use crate::workloads::{OperatorWorkloads, Queries};
use crate::{INTERVAL, WINDOW};

const OBJECTS: usize = 10_000;
/// Thousandths of a core, and MiB.
const CPU: f64 = 100.0;
const MEMORY: f64 = 120.0;

pub(crate) async fn run() -> bool {
    let objects = std::env::var("BENCH_OBJECTS").ok().and_then(|text| text.parse().ok()).unwrap_or(OBJECTS);
    let source = Source::start(5).await;
    let env = OperatorBenchEnv::start().await;
    let workloads = OperatorWorkloads::new("alone", objects, &source.url, Queries::Distinct);
    workloads.make(&env.client).await;
    let mut operator = subject::start(&env.kubeconfig, workloads.namespace).await;
    // All are reconciled, and polled once more.
    source.until_asked(2 * objects as u64, objects).await;
    tokio::time::sleep(INTERVAL).await;
    let before = source.asked();
    let [polled] = measure([operator.pid()], WINDOW).await;
    let polls = source.asked() - before;
    operator.check();

    println!(
        "\n{objects} ScaledObjects on localkube, a prometheus trigger each, every 30 s, all active; our operator alone"
    );
    let mut good = show(&polled, polls, objects);
    good &= table::at_most("resident memory, MiB", table::mebibytes(polled.resident), 1, MEMORY);
    table::row("… at most since the start, MiB", table::mebibytes(polled.peak), 1);
    good &= table::at_most("thousandths of a core", polled.millicores(), 1, CPU);

    register(&env.client, workloads.namespace, operator.port).await;
    let questions = Questions::start(&env.client, &workloads);
    tokio::time::sleep(Duration::from_secs(20)).await;
    let _ = questions.counts();
    let before = source.asked();
    let [asked] = measure([operator.pid()], WINDOW / 2).await;
    let polls = source.asked() - before;
    let (answered, failed) = questions.counts();
    operator.check();
    println!("\nthe same while every metric is asked for every 15 s through the API server, as HPAs do");
    show(&asked, polls, objects);
    table::row("questions answered per second", answered as f64 / asked.took.as_secs_f64(), 1);
    table::row("questions failed", failed as f64, 0);
    table::row("resident memory, MiB", table::mebibytes(asked.resident), 1);
    table::row("thousandths of a core", asked.millicores(), 1);
    good
}

fn show(measured: &ProcessMeasurement, polls: u64, objects: usize) -> bool {
    let per_interval = polls as f64 * INTERVAL.as_secs_f64() / measured.took.as_secs_f64();
    table::row("CPU per query, µs", measured.cpu.as_secs_f64() * 1e6 / polls as f64, 0);
    table::at_most(
        "polls left out per interval, percent",
        100.0 - per_interval * 100.0 / objects as f64,
        1,
        1.0,
    )
}
