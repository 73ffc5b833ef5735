//! 1,000 ScaledObjects that all have the same query, which is sent to Prometheus once per interval.

use std::time::Duration;

use crate::env::{OperatorBenchEnv, register};
use crate::metric_requests::MetricRequests;
use crate::operator_process;
use crate::scripted_prometheus::ScriptedPrometheus;
use crate::shared::table;
use crate::shared::usage::measure;
use crate::workloads::{OperatorWorkloads, Queries};
use crate::{MEASUREMENT_WINDOW, POLLING_INTERVAL};

const OBJECTS: usize = 1_000;
/// The maximum number of queries per polling interval without metric requests: that of the poll.
const MAX_QUERIES_PER_INTERVAL: f64 = 1.0;
/// The maximum number of queries per polling interval while HPAs request metrics more often than objects are polled.
const MAX_QUERIES_PER_INTERVAL_WITH_HPAS: f64 = 3.0;

pub(crate) async fn run() -> bool {
    let source = ScriptedPrometheus::start(5).await;
    let env = OperatorBenchEnv::start().await;
    let workloads = OperatorWorkloads::new("same", OBJECTS, &source.url, Queries::Same);
    workloads.create(&env.client).await;
    let mut operator = operator_process::start(&env.kubeconfig, workloads.namespace).await;
    tokio::time::sleep(POLLING_INTERVAL * 2 + Duration::from_secs(5)).await;
    let before = source.query_count();
    let [polled] = measure([operator.pid()], MEASUREMENT_WINDOW).await;
    let per_interval =
        |queries: u64, took: Duration| queries as f64 * POLLING_INTERVAL.as_secs_f64() / took.as_secs_f64();
    println!("\n{OBJECTS} ScaledObjects with the same query, every 30 s");
    let mut good = table::at_most(
        "queries per interval",
        per_interval(source.query_count() - before, MEASUREMENT_WINDOW),
        2,
        MAX_QUERIES_PER_INTERVAL,
    );
    table::row("thousandths of a core", polled.millicores(), 1);
    register(&env.client, workloads.namespace, operator.port).await;
    let metric_requests = MetricRequests::start(&env.client, &workloads);
    tokio::time::sleep(Duration::from_secs(20)).await;
    let _ = metric_requests.counts();
    let before = source.query_count();
    tokio::time::sleep(MEASUREMENT_WINDOW / 2).await;
    let (answered, failed) = metric_requests.counts();
    good &= table::at_most(
        "… with metric requests every 15 s",
        per_interval(source.query_count() - before, MEASUREMENT_WINDOW / 2),
        2,
        MAX_QUERIES_PER_INTERVAL_WITH_HPAS,
    );
    table::row("metric requests per second", answered as f64 * 2.0 / MEASUREMENT_WINDOW.as_secs_f64(), 1);
    good &= table::at_most("failed metric requests", failed as f64, 0, 0.0);
    operator.check();
    good
}
