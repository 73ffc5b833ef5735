//! The workload under which an instrumented controller records its profile: passes that are all recorded (`make pgo-profile`).

use testbed::program::Room;

use crate::recording;
use crate::shared::server::ServerProcess;
use crate::shared::table;
use crate::workloads::Workloads;

/// The argument with which this program becomes the server of this workload.
pub(crate) const SERVER_FOR_PROFILE: &str = "serve-for-profile";
/// As many as the ScaledObjects of the operator's workload: the compiler calls hot what has 99 % of all counts, and with
/// thousands of autoscalers nothing of the operator would be among it.
pub(crate) const WORKLOADS: Workloads = Workloads { autoscalers: 300, namespaces: 3 };

pub(crate) async fn run() -> bool {
    let mut server = ServerProcess::start_as(SERVER_FOR_PROFILE).await;
    server.command("change");
    let folder = Room::new().unwrap();
    let measured = recording::measure(&server, WORKLOADS, &recording::flags(&folder)).await;
    println!("\nworkload of the profile, with {} autoscalers", WORKLOADS.autoscalers);
    table::row("passes", measured.syncs as f64, 0);
    measured.syncs > 0
}
