//! 1,250 ScaledObjects at zero replicas whose sources become active at the same moment.

use std::collections::HashSet;
use std::pin::pin;
use std::time::{Duration, Instant};

use futures::StreamExt as _;

use crate::env::{OperatorBenchEnv, counts};
use crate::operator_process;
use crate::scripted_prometheus::ScriptedPrometheus;
use crate::shared::table;
use crate::shared::usage::percentile;
use crate::workloads::{OperatorWorkloads, Queries};

const OBJECTS: usize = 1_250;
const MAX_SECONDS_UNTIL_ALL_ACTIVE: f64 = 30.0;
const CHANGE_TIMEOUT: Duration = Duration::from_mins(3);

pub(crate) async fn run() -> bool {
    println!(
        "\n{OBJECTS} ScaledObjects at zero on localkube whose sources become active at the same moment: seconds until the last one has a replica"
    );
    let mut good = true;
    let variants = [
        ("queries differ, every 15 s", Queries::Distinct, 15),
        ("queries differ, every 30 s", Queries::Distinct, 30),
        ("queries are equal, every 30 s", Queries::Same, 30),
    ];
    for (what, queries, interval) in variants {
        let (median, last) = wake(queries, interval).await;
        table::row(&format!("{what}: half of them"), median.as_secs_f64(), 2);
        good &= table::at_most(&format!("{what}: all"), last.as_secs_f64(), 2, MAX_SECONDS_UNTIL_ALL_ACTIVE);
    }
    good
}

/// The times after which half of the objects and all of them have a replica.
async fn wake(queries: Queries, interval: u64) -> (Duration, Duration) {
    let source = ScriptedPrometheus::start(0).await;
    let env = OperatorBenchEnv::start().await;
    let workloads = OperatorWorkloads {
        replicas: 0,
        interval,
        ..OperatorWorkloads::new("wake", OBJECTS, &source.url, queries)
    };
    workloads.create(&env.client).await;
    let mut operator = operator_process::start(&env.kubeconfig, workloads.namespace).await;
    let distinct = if queries == Queries::Distinct { OBJECTS } else { 1 };
    source.until_queried(2 * distinct as u64, distinct).await;
    tokio::time::sleep(Duration::from_secs(2 * interval)).await;
    let mut counts = pin!(counts(&env.client, workloads.namespace));
    let mut active: HashSet<String> = HashSet::new();
    let mut times = Vec::new();
    for _ in 0..OBJECTS {
        let (name, count) = counts.next().await.unwrap();
        assert_eq!(count, 0, "{name} was activated too early");
    }
    let begun = Instant::now();
    source.set_value(5);
    while active.len() < OBJECTS {
        let next = tokio::time::timeout(CHANGE_TIMEOUT, counts.next()).await;
        let Ok(Some((name, count))) = next else {
            panic!("after {CHANGE_TIMEOUT:?} without a change {} of {OBJECTS} are active", active.len())
        };
        if count > 0 && active.insert(name) {
            times.push(begun.elapsed());
        }
    }
    operator.check();
    (percentile(&mut times, 50), percentile(&mut times, 100))
}
