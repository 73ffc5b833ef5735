//! An older revision of the metrics server and this one at the same time, with the same kubelets and the same API server.

use crate::env::MetricsBenchEnv;
use crate::lists::{JSON, PROTOBUF, list, until_complete};
use crate::resource::{FLEET, SETTLE_TIME, WINDOW};
use crate::server_process::{MeasuredServer, MetricsServerProcess};
use crate::shared::table::{ComparisonTable, mebibytes, millis};
use crate::shared::usage::{ProcessMeasurement, measure};
use crate::shared::versions::{COLUMNS, RATIO_LIMIT, Version};

pub(crate) async fn run() -> bool {
    let env = MetricsBenchEnv::new(FLEET).await;
    let mut servers = [
        MeasuredServer::Plimsoll(Version::Old).of_kubelets(&env).await,
        MeasuredServer::Plimsoll(Version::New).of_kubelets(&env).await,
    ];
    for server in &mut servers {
        until_complete(server, FLEET.size()).await;
    }
    tokio::time::sleep(SETTLE_TIME).await;
    let pids = servers.each_ref().map(|server| server.program.pid().expect("the process runs"));
    let scraped = measure(pids, WINDOW).await;
    let title = format!("metrics server, {} nodes × {} pods at 15 s: two revisions", FLEET.nodes, FLEET.pods);
    let mut table = ComparisonTable::with_columns(&title, COLUMNS);
    let [old, new] = scraped.each_ref().map(ProcessMeasurement::millicores);
    table.row("CPU while kubelets are scraped, m", old, new, 1, Some(RATIO_LIMIT));
    let [old, new] = scraped.each_ref().map(|one| mebibytes(one.resident));
    table.row("resident memory, MiB", old, new, 1, Some(RATIO_LIMIT));
    for (name, accept) in [("JSON", JSON), ("protobuf", PROTOBUF)] {
        let [old, new] = [list(&servers[0], accept).await, list(&servers[1], accept).await];
        table.row(
            &format!("list of all pods, {name}: CPU, ms"),
            millis(old.cpu),
            millis(new.cpu),
            1,
            Some(RATIO_LIMIT),
        );
        table.row(&format!("list of all pods, {name}, ms"), millis(old.median), millis(new.median), 1, None);
    }
    servers.iter_mut().for_each(MetricsServerProcess::check);
    table.good()
}
