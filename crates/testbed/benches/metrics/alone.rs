//! Our metrics server alone with 5,000 nodes of 30 pods each.

use std::time::Duration;

use testbed::kubelets::fleet::Fleet;

use crate::env::MetricsBenchEnv;
use crate::lists::{JSON, PROTOBUF, list, until_complete};
use crate::server_process::MeasuredServer;
use crate::shared::table::{at_most, mebibytes, millis, row};
use crate::shared::versions::Version;

const FLEET: Fleet = Fleet { nodes: 5_000, pods: 30, namespaces: 100 };
const WINDOW: Duration = Duration::from_mins(1);
const MAX_MEMORY_MIB: f64 = 300.0;

pub(crate) async fn run() -> bool {
    let env = MetricsBenchEnv::new(FLEET).await;
    let mut server = MeasuredServer::Plimsoll(Version::New).of_kubelets(&env).await;
    until_complete(&mut server, FLEET.size()).await;
    let quiet = server.measure(WINDOW).await;
    let (json, protobuf) = (list(&server, JSON).await, list(&server, PROTOBUF).await);
    server.check();
    let usage = server.program.usage().unwrap();
    println!("\n{} nodes × {} pods at 15 s, ours alone", FLEET.nodes, FLEET.pods);
    row("CPU while only kubelets are scraped, m", quiet.millicores(), 1);
    row("list of all pods, JSON, ms", millis(json.median), 1);
    row("list of all pods, protobuf, ms", millis(protobuf.median), 1);
    row("… bytes of JSON", json.bytes as f64, 0);
    let kept = [
        at_most("resident memory, MiB", mebibytes(quiet.resident), 1, MAX_MEMORY_MIB),
        at_most("… after lists, MiB", mebibytes(usage.resident), 1, MAX_MEMORY_MIB),
        at_most("… at most since the start, MiB", mebibytes(usage.peak), 1, MAX_MEMORY_MIB),
    ];
    kept.into_iter().all(|kept| kept)
}
