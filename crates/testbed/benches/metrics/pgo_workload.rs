//! The workload under which an instrumented metrics server records its profile: kubelets and lists (`make pgo-profile`).

use std::time::Duration;

use testbed::kubelets::fleet::Fleet;

use crate::env::MetricsBenchEnv;
use crate::lists::{JSON, PROTOBUF, list, until_complete};
use crate::server_process::MeasuredServer;
use crate::shared::plimsoll::end;
use crate::shared::table::row;
use crate::shared::versions::Version;

const FLEET: Fleet = Fleet { nodes: 100, pods: 30, namespaces: 10 };
/// How long the server may take to write its profile.
const PROFILE_WRITE_TIMEOUT: Duration = Duration::from_mins(1);

pub(crate) async fn run() -> bool {
    let env = MetricsBenchEnv::new(FLEET).await;
    let mut server = MeasuredServer::Plimsoll(Version::New).of_kubelets(&env).await;
    until_complete(&mut server, FLEET.size()).await;
    let (json, protobuf) = (list(&server, JSON).await, list(&server, PROTOBUF).await);
    server.check();
    println!("\nworkload of the profile, with {} nodes × {} pods", FLEET.nodes, FLEET.pods);
    row("bytes of a list, JSON", json.bytes as f64, 0);
    row("bytes of a list, protobuf", protobuf.bytes as f64, 0);
    // The profile is written when the process ends, unless it is killed.
    end(&mut server.program, PROFILE_WRITE_TIMEOUT).await;
    true
}
