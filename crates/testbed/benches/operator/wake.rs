//! 1,250 ScaledObjects at zero, and all of a sudden each has something to do.

use std::collections::HashSet;
use std::pin::pin;
use std::time::{Duration, Instant};

use futures::StreamExt as _;

use crate::env::{OperatorBenchEnv, counts};
use crate::shared::table;
use crate::shared::usage::percentile;
use crate::source::Source;
use crate::subject;
use crate::workloads::{OperatorWorkloads, Queries};

const OBJECTS: usize = 1_250;
/// Seconds.
const LIMIT: f64 = 30.0;
const PATIENCE: Duration = Duration::from_mins(3);

pub(crate) async fn run() -> bool {
    println!(
        "\n{OBJECTS} ScaledObjects at zero on localkube whose sources have something to do at once: seconds until the last has a replica"
    );
    let mut good = true;
    let variants = [
        ("queries differ, every 15 s", Queries::Distinct, 15),
        ("queries differ, every 30 s", Queries::Distinct, 30),
        ("all ask the same, every 30 s", Queries::Same, 30),
    ];
    for (what, queries, interval) in variants {
        let (median, last) = wake(queries, interval).await;
        table::row(&format!("{what}: half of them"), median.as_secs_f64(), 2);
        good &= table::at_most(&format!("{what}: all"), last.as_secs_f64(), 2, LIMIT);
    }
    good
}

/// When half of them have a replica, and when all have.
async fn wake(queries: Queries, interval: u64) -> (Duration, Duration) {
    let source = Source::start(0).await;
    let env = OperatorBenchEnv::start().await;
    let workloads = OperatorWorkloads {
        replicas: 0,
        interval,
        ..OperatorWorkloads::new("wake", OBJECTS, &source.url, queries)
    };
    workloads.make(&env.client).await;
    let mut operator = subject::start(&env.kubeconfig, workloads.namespace).await;
    let distinct = if queries == Queries::Distinct { OBJECTS } else { 1 };
    source.until_asked(2 * distinct as u64, distinct).await;
    tokio::time::sleep(Duration::from_secs(2 * interval)).await;
    let mut counts = pin!(counts(&env.client, workloads.namespace));
    let mut awake: HashSet<String> = HashSet::new();
    let mut times = Vec::new();
    for _ in 0..OBJECTS {
        let (name, count) = counts.next().await.unwrap();
        assert_eq!(count, 0, "{name} woke too early");
    }
    let begun = Instant::now();
    source.say(5);
    while awake.len() < OBJECTS {
        let next = tokio::time::timeout(PATIENCE, counts.next()).await;
        let Ok(Some((name, count))) = next else {
            panic!("after {PATIENCE:?} without news {} of {OBJECTS} are awake", awake.len())
        };
        if count > 0 && awake.insert(name) {
            times.push(begun.elapsed());
        }
    }
    operator.check();
    (percentile(&mut times, 50), percentile(&mut times, 100))
}
