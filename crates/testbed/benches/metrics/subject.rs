//! A metrics server as a process.

use std::path::{Path, PathBuf};
use std::time::Duration;

use testbed::Peers;
use testbed::direct::{Caller, Direct};
use testbed::ports;
use testbed::program::{Program, Room};

use crate::env::MetricsBenchEnv;

/// Names the binary that is measured.
const PROGRAM: &str = "PLIMSOLL_PROGRAM";
/// How long it may take until it is ready.
const PATIENCE: Duration = Duration::from_mins(5);

pub(crate) struct Subject {
    pub(crate) program: Program,
    pub(crate) client: Direct,
}

/// Who is measured.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Who {
    Upstream,
    Plimsoll,
}

impl Who {
    /// What serves `metrics.k8s.io`.
    pub(crate) async fn of_kubelets(self, env: &MetricsBenchEnv) -> Subject {
        let (room, port) = (Room::new().unwrap(), ports::free().unwrap());
        let authority = room.write("kubelets.crt", env.kubelets.ca_pem()).unwrap();
        let mut arguments = serving(&room, env, port);
        arguments.extend([
            format!("--kubeconfig={}", room.path("kubeconfig").display()),
            "--metric-resolution=15s".into(),
            "--kubelet-preferred-address-types=InternalIP".into(),
            "--kubelet-use-node-status-port".into(),
            format!("--kubelet-certificate-authority={}", authority.display()),
        ]);
        let program = match self {
            Self::Upstream => Peers::ensure().unwrap().metrics_server,
            Self::Plimsoll => ours(&mut arguments),
        };
        self.start(&program, &arguments, room, env, port).await
    }

    /// What serves `custom.metrics.k8s.io`.
    pub(crate) async fn of_prometheus(self, env: &MetricsBenchEnv, url: &str, rules: &str) -> Subject {
        let (room, port) = (Room::new().unwrap(), ports::free().unwrap());
        let rules = room.write("rules.yaml", rules).unwrap();
        let mut arguments = serving(&room, env, port);
        arguments.extend([
            format!("--lister-kubeconfig={}", room.path("kubeconfig").display()),
            format!("--config={}", rules.display()),
            format!("--prometheus-url={url}"),
            "--metrics-relist-interval=1m".into(),
            // With its default of 5 a second it would wait for itself only.
            "--client-qps=2000".into(),
            "--client-burst=2000".into(),
        ]);
        let program = match self {
            Self::Upstream => Peers::ensure().unwrap().prometheus_adapter,
            Self::Plimsoll => ours(&mut arguments),
        };
        self.start(&program, &arguments, room, env, port).await
    }

    async fn start(
        self,
        program: &Path,
        arguments: &[String],
        room: Room,
        env: &MetricsBenchEnv,
        port: u16,
    ) -> Subject {
        let name = if self == Self::Plimsoll { "plimsoll" } else { "peer" };
        let mut program = Program::start(name, program, arguments, room).unwrap();
        let nobody = Direct::new(port, &Caller::nobody()).unwrap();
        let ready = async || nobody.get("/readyz").await.is_ok_and(|answer| answer.code == 200);
        program.until(PATIENCE, ready).await.unwrap();
        Subject { program, client: Direct::new(port, &env.admin()).unwrap() }
    }
}

impl Subject {
    /// Its process must still be there.
    pub(crate) fn check(&mut self) {
        if let Some(code) = self.program.ended() {
            panic!("the server ended by itself ({code}):\n{}", self.program.log());
        }
    }
}

fn serving(room: &Room, env: &MetricsBenchEnv, port: u16) -> Vec<String> {
    let file = room.write("kubeconfig", &env.kubeconfig()).unwrap();
    vec![
        "--bind-address=127.0.0.1".into(),
        format!("--secure-port={port}"),
        format!("--cert-dir={}", room.path("certificates").display()),
        format!("--authentication-kubeconfig={}", file.display()),
        format!("--authorization-kubeconfig={}", file.display()),
    ]
}

/// Our binary, and the word with which it becomes the server.
fn ours(arguments: &mut Vec<String>) -> PathBuf {
    arguments.insert(0, "metrics".into());
    let program = std::env::var_os(PROGRAM).map_or_else(
        || {
            // The binary lies beside the folder of this program.
            let own = std::env::current_exe().unwrap();
            own.parent().and_then(Path::parent).unwrap().join("plimsoll")
        },
        PathBuf::from,
    );
    assert!(program.exists(), "{} is missing: run make bench-metrics", program.display());
    program.canonicalize().unwrap()
}
