//! An older revision of the operator and this one at the same time, each with 3,000 ScaledObjects of its own on one localkube and
//! one Prometheus. Then metrics are requested, first from the old one.

use std::time::Duration;

use crate::env::{OperatorBenchEnv, register};
use crate::metric_requests::MetricRequests;
use crate::scripted_prometheus::ScriptedPrometheus;
use crate::shared::plimsoll::PlimsollProcess;
use crate::shared::table::{ComparisonTable, mebibytes};
use crate::shared::usage::{ProcessMeasurement, measure};
use crate::shared::versions::{COLUMNS, NO_HISTORY, RATIO_LIMIT, Version};
use crate::workloads::{OperatorWorkloads, Queries};
use crate::{MEASUREMENT_WINDOW, POLLING_INTERVAL, operator_process};

const OBJECTS: usize = 3_000;
/// How long requests are sent before the measurement begins.
const SETTLE_TIME: Duration = Duration::from_secs(20);

pub(crate) async fn run() -> bool {
    let sources = [ScriptedPrometheus::start(5).await, ScriptedPrometheus::start(5).await];
    let env = OperatorBenchEnv::start().await;
    let workloads = [("old", &sources[0]), ("new", &sources[1])].map(|(namespace, source)| {
        OperatorWorkloads::new(namespace, OBJECTS, &source.url, Queries::Distinct)
    });
    for workloads in &workloads {
        workloads.create(&env.client).await;
    }
    let flags = [NO_HISTORY.to_owned()];
    let mut old =
        operator_process::start_version(Version::Old, &env.kubeconfig, workloads[0].namespace, &flags).await;
    let mut new =
        operator_process::start_version(Version::New, &env.kubeconfig, workloads[1].namespace, &flags).await;
    for source in &sources {
        // All are reconciled, and polled once more.
        source.until_queried(2 * OBJECTS as u64, OBJECTS).await;
    }
    tokio::time::sleep(POLLING_INTERVAL).await;
    let before = sources.each_ref().map(ScriptedPrometheus::query_count);
    let polled = measure([old.pid(), new.pid()], MEASUREMENT_WINDOW).await;
    let queries = [0, 1].map(|place| sources[place].query_count() - before[place]);
    let requested = [
        measure_requests(&env, &workloads[0], &mut old).await,
        measure_requests(&env, &workloads[1], &mut new).await,
    ];

    let title = format!("operator, {OBJECTS} ScaledObjects on localkube, polled every 30 s: two revisions");
    let mut table = ComparisonTable::with_columns(&title, COLUMNS);
    let mut row = |what: &str, values: [f64; 2], limit| table.row(what, values[0], values[1], 1, limit);
    let millicores =
        |measured: &[ProcessMeasurement; 2]| measured.each_ref().map(ProcessMeasurement::millicores);
    let memory = |measured: &[ProcessMeasurement; 2]| measured.each_ref().map(|one| mebibytes(one.resident));
    row("queries", queries.map(|count| count as f64), Some(RATIO_LIMIT));
    row("polls: CPU, m", millicores(&polled), Some(RATIO_LIMIT));
    row("polls: memory, MiB", memory(&polled), Some(RATIO_LIMIT));
    row("metric requests: CPU, m", millicores(&requested), Some(RATIO_LIMIT));
    row("metric requests: memory, MiB", memory(&requested), Some(RATIO_LIMIT));
    table.good()
}

/// Measures an operator while every metric of its objects is requested every 15 s.
async fn measure_requests(
    env: &OperatorBenchEnv,
    workloads: &OperatorWorkloads,
    operator: &mut PlimsollProcess,
) -> ProcessMeasurement {
    register(&env.client, workloads.namespace, operator.port).await;
    let requests = MetricRequests::start(&env.client, workloads);
    tokio::time::sleep(SETTLE_TIME).await;
    let [measured] = measure([operator.pid()], MEASUREMENT_WINDOW / 2).await;
    let (_, failed) = requests.counts();
    assert_eq!(failed, 0, "metric requests failed");
    operator.check();
    measured
}
