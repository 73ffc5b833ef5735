//! 5,000 nodes of 30 pods each: ours alone.

use std::time::Duration;

use testbed::kubelets::fleet::Fleet;

use crate::env::MetricsBenchEnv;
use crate::lists::{JSON, PROTOBUF, list, until_complete};
use crate::shared::table::{at_most, mebibytes, millis, row};
use crate::subject::Measured;

const FLEET: Fleet = Fleet { nodes: 5_000, pods: 30, namespaces: 100 };
const WINDOW: Duration = Duration::from_mins(1);
const MEMORY: f64 = 300.0;

pub(crate) async fn run() -> bool {
    let env = MetricsBenchEnv::new(FLEET).await;
    let mut subject = Measured::Plimsoll.of_kubelets(&env).await;
    until_complete(&mut subject, FLEET.size()).await;
    let quiet = subject.measure(WINDOW).await;
    let (json, protobuf) = (list(&subject, JSON).await, list(&subject, PROTOBUF).await);
    subject.check();
    let usage = subject.program.usage().unwrap();
    println!("\n{} nodes × {} pods at 15 s, ours alone", FLEET.nodes, FLEET.pods);
    row("CPU while only kubelets are read, m", quiet.millicores(), 1);
    row("list of all pods, JSON, ms", millis(json.median), 1);
    row("list of all pods, protobuf, ms", millis(protobuf.median), 1);
    row("… bytes of JSON", json.bytes as f64, 0);
    let kept = [
        at_most("resident memory, MiB", mebibytes(quiet.resident), 1, MEMORY),
        at_most("… after lists, MiB", mebibytes(usage.resident), 1, MEMORY),
        at_most("… at most since the start, MiB", mebibytes(usage.peak), 1, MEMORY),
    ];
    kept.into_iter().all(|kept| kept)
}
