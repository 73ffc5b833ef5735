//! 1,000 nodes of 30 pods each: first metrics-server, then ours.

use std::time::Duration;

use testbed::kubelets::fleet::Fleet;

use crate::env::MetricsBenchEnv;
use crate::lists::{JSON, ListMeasurement, PROTOBUF, list, until_complete};
use crate::server_process::MeasuredServer;
use crate::shared::table::{ComparisonTable, mebibytes, millis};
use crate::shared::usage::ProcessMeasurement;
use crate::shared::versions::Version;

pub(crate) const FLEET: Fleet = Fleet { nodes: 1_000, pods: 30, namespaces: 40 };
/// The duration of a measurement: six scrape intervals.
pub(crate) const WINDOW: Duration = Duration::from_secs(90);
/// How long to wait after all pods are listed: two scrape intervals, so that work of the start is not measured.
pub(crate) const SETTLE_TIME: Duration = Duration::from_secs(30);

struct ScrapeMeasurement {
    quiet: ProcessMeasurement,
    json: ListMeasurement,
    protobuf: ListMeasurement,
    requests: u64,
    peak: u64,
}

pub(crate) async fn run() -> bool {
    let env = MetricsBenchEnv::new(FLEET).await;
    eprintln!("metrics-server");
    let theirs = measure(MeasuredServer::Upstream, &env).await;
    eprintln!("ours");
    let ours = measure(MeasuredServer::Plimsoll(Version::New), &env).await;
    let title =
        format!("{} nodes × {} pods at 15 s, measured for {} s", FLEET.nodes, FLEET.pods, WINDOW.as_secs());
    let mut table = ComparisonTable::new(&title);
    table.row(
        "CPU while only kubelets are scraped, m",
        theirs.quiet.millicores(),
        ours.quiet.millicores(),
        1,
        Some(0.2),
    );
    table.row(
        "resident memory, MiB",
        mebibytes(theirs.quiet.resident),
        mebibytes(ours.quiet.resident),
        1,
        Some(0.2),
    );
    table.row("… at most, lists included, MiB", mebibytes(theirs.peak), mebibytes(ours.peak), 1, None);
    for (name, theirs, ours) in
        [("JSON", theirs.json, ours.json), ("protobuf", theirs.protobuf, ours.protobuf)]
    {
        table.row(
            &format!("list of all pods, {name}, ms"),
            millis(theirs.median),
            millis(ours.median),
            1,
            Some(0.1),
        );
        table.row("… at worst, ms", millis(theirs.worst), millis(ours.worst), 1, None);
        table.row("… CPU of the server, ms", millis(theirs.cpu), millis(ours.cpu), 1, None);
        table.row("… bytes", theirs.bytes as f64, ours.bytes as f64, 0, None);
    }
    table.row("requests to kubelets per second", per_second(&theirs), per_second(&ours), 1, None);
    table.good()
}

/// Keeps the environment and our server until standard input ends. Each line lists all pods, for a profiler.
pub(crate) async fn hold() {
    let env = MetricsBenchEnv::new(FLEET).await;
    let mut server = MeasuredServer::Plimsoll(Version::New).of_kubelets(&env).await;
    until_complete(&mut server, FLEET.size()).await;
    println!("process {}: a line makes it list all pods", server.program.pid().unwrap());
    let (sender, mut lines) = tokio::sync::mpsc::channel(1);
    tokio::task::spawn_blocking(move || {
        for line in std::io::stdin().lines().map_while(Result::ok) {
            if sender.blocking_send(line).is_err() {
                break;
            }
        }
    });
    while lines.recv().await.is_some() {
        println!("{:?}", list(&server, JSON).await);
    }
}

fn per_second(measurement: &ScrapeMeasurement) -> f64 {
    measurement.requests as f64 / measurement.quiet.took.as_secs_f64()
}

async fn measure(who: MeasuredServer, env: &MetricsBenchEnv) -> ScrapeMeasurement {
    let mut server = who.of_kubelets(env).await;
    until_complete(&mut server, FLEET.size()).await;
    tokio::time::sleep(SETTLE_TIME).await;
    let before = env.kubelets.all_requests();
    let quiet = server.measure(WINDOW).await;
    let requests = env.kubelets.all_requests() - before;
    let json = list(&server, JSON).await;
    let protobuf = list(&server, PROTOBUF).await;
    server.check();
    let peak = server.program.usage().unwrap().peak;
    ScrapeMeasurement { quiet, json, protobuf, requests, peak }
}
