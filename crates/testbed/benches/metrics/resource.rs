//! 1,000 nodes of 30 pods each: metrics-server, then ours.

use std::time::Duration;

use testbed::kubelets::fleet::Fleet;

use crate::env::MetricsBenchEnv;
use crate::lists::{JSON, List, PROTOBUF, list, until_complete};
use crate::shared::table::{ComparisonTable, mebibytes, millis};
use crate::shared::usage::ProcessMeasurement;
use crate::subject::Measured;

const FLEET: Fleet = Fleet { nodes: 1_000, pods: 30, namespaces: 40 };
/// Six periods.
const WINDOW: Duration = Duration::from_secs(90);
/// Two periods, after which nothing is left of the start.
const SETTLE: Duration = Duration::from_secs(30);

struct ScrapeMeasurement {
    quiet: ProcessMeasurement,
    json: List,
    protobuf: List,
    requests: u64,
    peak: u64,
}

pub(crate) async fn run() -> bool {
    let env = MetricsBenchEnv::new(FLEET).await;
    eprintln!("metrics-server");
    let theirs = figures(Measured::Upstream, &env).await;
    eprintln!("ours");
    let ours = figures(Measured::Plimsoll, &env).await;
    let title =
        format!("{} nodes × {} pods at 15 s, measured for {} s", FLEET.nodes, FLEET.pods, WINDOW.as_secs());
    let mut table = ComparisonTable::new(&title);
    table.row(
        "CPU while only kubelets are read, m",
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

/// Keeps everything until standard input ends.
pub(crate) async fn hold() {
    let env = MetricsBenchEnv::new(FLEET).await;
    let mut subject = Measured::Plimsoll.of_kubelets(&env).await;
    until_complete(&mut subject, FLEET.size()).await;
    println!("process {}: a line makes it list all pods", subject.program.pid().unwrap());
    let (tell, mut reported) = tokio::sync::mpsc::channel(1);
    tokio::task::spawn_blocking(move || {
        for line in std::io::stdin().lines().map_while(Result::ok) {
            if tell.blocking_send(line).is_err() {
                break;
            }
        }
    });
    while reported.recv().await.is_some() {
        println!("{:?}", list(&subject, JSON).await);
    }
}

fn per_second(figures: &ScrapeMeasurement) -> f64 {
    figures.requests as f64 / figures.quiet.took.as_secs_f64()
}

async fn figures(who: Measured, env: &MetricsBenchEnv) -> ScrapeMeasurement {
    let mut subject = who.of_kubelets(env).await;
    until_complete(&mut subject, FLEET.size()).await;
    tokio::time::sleep(SETTLE).await;
    let before = env.kubelets.all_requests();
    let quiet = subject.measure(WINDOW).await;
    let requests = env.kubelets.all_requests() - before;
    let json = list(&subject, JSON).await;
    let protobuf = list(&subject, PROTOBUF).await;
    subject.check();
    let peak = subject.program.usage().unwrap().peak;
    ScrapeMeasurement { quiet, json, protobuf, requests, peak }
}
