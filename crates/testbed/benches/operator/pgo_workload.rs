//! The workload under which an instrumented operator records its profile: polls and metric requests (`make pgo-profile`).

use std::time::Duration;

use crate::POLLING_INTERVAL;
use crate::env::{OperatorBenchEnv, register};
use crate::metric_requests::MetricRequests;
use crate::operator_process;
use crate::scripted_prometheus::ScriptedPrometheus;
use crate::shared::table;
use crate::workloads::{OperatorWorkloads, Queries};

const OBJECTS: usize = 300;
/// How long the operator may take to write its profile.
const PROFILE_WRITE_TIMEOUT: Duration = Duration::from_mins(1);

pub(crate) async fn run() -> bool {
    let source = ScriptedPrometheus::start(5).await;
    let env = OperatorBenchEnv::start().await;
    let workloads = OperatorWorkloads::new("pgo-workload", OBJECTS, &source.url, Queries::Distinct);
    workloads.create(&env.client).await;
    let mut operator = operator_process::start(&env.kubeconfig, workloads.namespace).await;
    source.until_queried(3 * OBJECTS as u64, OBJECTS).await;
    register(&env.client, workloads.namespace, operator.port).await;
    let metric_requests = MetricRequests::start(&env.client, &workloads);
    tokio::time::sleep(POLLING_INTERVAL * 2).await;
    let (answered, failed) = metric_requests.counts();
    operator.check();
    println!("\nworkload of the profile, with {OBJECTS} ScaledObjects");
    table::row("queries", source.query_count() as f64, 0);
    table::row("metric requests", answered as f64, 0);
    // The profile is written when the process ends, unless it is killed.
    operator.end(PROFILE_WRITE_TIMEOUT).await;
    failed == 0
}
