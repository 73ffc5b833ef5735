//! A metrics server as a process.

use std::path::{Path, PathBuf};
use std::time::Duration;

use testbed::Peers;
use testbed::direct::Direct;
use testbed::ports;
use testbed::program::{Program, Room};

use crate::env::MetricsBenchEnv;
use crate::shared::plimsoll::{binary, until_ready};
use crate::shared::usage::{self, ProcessMeasurement};

pub(crate) struct Subject {
    pub(crate) program: Program,
    pub(crate) client: Direct,
}

/// Who is measured.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Measured {
    Upstream,
    Plimsoll,
}

impl Measured {
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
            Self::Plimsoll => plimsoll(&mut arguments),
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
            Self::Plimsoll => plimsoll(&mut arguments),
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
        until_ready(&mut program, port).await;
        Subject { program, client: Direct::new(port, &env.admin()).unwrap() }
    }
}

impl Subject {
    /// Measures what it uses from now on for so long.
    pub(crate) async fn measure(&self, window: Duration) -> ProcessMeasurement {
        let [measured] = usage::measure([self.program.pid().expect("its process is there")], window).await;
        measured
    }

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

/// The measured binary with its subcommand.
fn plimsoll(arguments: &mut Vec<String>) -> PathBuf {
    arguments.insert(0, "metrics".into());
    binary()
}
