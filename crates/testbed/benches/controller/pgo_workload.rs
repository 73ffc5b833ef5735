//! The workload under which an instrumented controller records its profile: passes that are all recorded (`make pgo-profile`).

use testbed::program::TempFolder;

use crate::recording;
use crate::shared::server::ServerProcess;
use crate::shared::table;
use crate::workloads::Workloads;

/// The argument with which this program becomes the server of this workload.
pub(crate) const SERVER_FOR_PROFILE: &str = "serve-for-profile";
/// As many autoscalers as the operator's workload has ScaledObjects. The compiler treats the code with 99 % of all counts as hot, and with
/// thousands of autoscalers no code of the operator would be part of it.
pub(crate) const WORKLOADS: Workloads = Workloads { autoscalers: 300, namespaces: 3 };

pub(crate) async fn run() -> bool {
    let mut server = ServerProcess::start_as(SERVER_FOR_PROFILE).await;
    server.command("change");
    let folder = TempFolder::new().unwrap();
    let measured = recording::measure(&server, WORKLOADS, &recording::flags(&folder)).await;
    println!("\nworkload of the profile, with {} autoscalers", WORKLOADS.autoscalers);
    table::row("passes", measured.syncs as f64, 0);
    measured.syncs > 0
}
