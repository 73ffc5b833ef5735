//! The workload under which an instrumented operator records its profile: polls and metric requests (`make pgo-profile`).

use std::time::Duration;

use crate::INTERVAL;
use crate::env::{OperatorBenchEnv, register};
use crate::questions::Questions;
use crate::shared::table;
use crate::source::Source;
use crate::subject;
use crate::workloads::{OperatorWorkloads, Queries};

const OBJECTS: usize = 300;
/// How long the operator may take to write its profile.
const PROFILE_WRITE_TIMEOUT: Duration = Duration::from_mins(1);

pub(crate) async fn run() -> bool {
    let source = Source::start(5).await;
    let env = OperatorBenchEnv::start().await;
    let workloads = OperatorWorkloads::new("pgo-workload", OBJECTS, &source.url, Queries::Distinct);
    workloads.make(&env.client).await;
    let mut operator = subject::start(&env.kubeconfig, workloads.namespace).await;
    source.until_asked(3 * OBJECTS as u64, OBJECTS).await;
    register(&env.client, workloads.namespace, operator.port).await;
    let questions = Questions::start(&env.client, &workloads);
    tokio::time::sleep(INTERVAL * 2).await;
    let (answered, failed) = questions.counts();
    operator.check();
    println!("\nworkload of the profile, with {OBJECTS} ScaledObjects");
    table::row("queries", source.asked() as f64, 0);
    table::row("questions answered", answered as f64, 0);
    // The profile is written when the process ends, unless it is killed.
    operator.end(PROFILE_WRITE_TIMEOUT).await;
    failed == 0
}
