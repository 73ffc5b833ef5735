//! 1,000 ScaledObjects that all ask the same: Prometheus is asked once per interval.

use std::time::Duration;

use crate::env::{OperatorBenchEnv, register};
use crate::questions::Questions;
use crate::shared::table;
use crate::shared::usage::measure;
use crate::source::Source;
use crate::subject;
use crate::workloads::{OperatorWorkloads, Queries};
use crate::{INTERVAL, WINDOW};

const OBJECTS: usize = 1_000;
/// Queries per interval: one by polls, and while HPAs ask more often than is polled, those that they need.
const POLLED: f64 = 1.0;
const ASKED: f64 = 3.0;

pub(crate) async fn run() -> bool {
    let source = Source::start(5).await;
    let env = OperatorBenchEnv::start().await;
    let workloads = OperatorWorkloads::new("same", OBJECTS, &source.url, Queries::Same);
    workloads.make(&env.client).await;
    let mut operator = subject::start(&env.kubeconfig, workloads.namespace).await;
    tokio::time::sleep(INTERVAL * 2 + Duration::from_secs(5)).await;
    let before = source.asked();
    let [polled] = measure([operator.pid()], WINDOW).await;
    let per_interval =
        |queries: u64, took: Duration| queries as f64 * INTERVAL.as_secs_f64() / took.as_secs_f64();
    println!("\n{OBJECTS} ScaledObjects that ask the same, every 30 s");
    let mut good =
        table::at_most("queries per interval", per_interval(source.asked() - before, WINDOW), 2, POLLED);
    table::row("thousandths of a core", polled.millicores(), 1);
    register(&env.client, workloads.namespace, operator.port).await;
    let questions = Questions::start(&env.client, &workloads);
    tokio::time::sleep(Duration::from_secs(20)).await;
    let _ = questions.counts();
    let before = source.asked();
    tokio::time::sleep(WINDOW / 2).await;
    let (answered, failed) = questions.counts();
    good &= table::at_most(
        "… while HPAs ask every 15 s",
        per_interval(source.asked() - before, WINDOW / 2),
        2,
        ASKED,
    );
    table::row("questions answered per second", answered as f64 * 2.0 / WINDOW.as_secs_f64(), 1);
    good &= table::at_most("questions failed", failed as f64, 0, 0.0);
    operator.check();
    good
}
