//! A metrics server as a separate process.

use std::path::{Path, PathBuf};
use std::time::Duration;

use testbed::Peers;
use testbed::direct::DirectClient;
use testbed::ports;
use testbed::program::{Program, TempFolder};

use crate::env::MetricsBenchEnv;
use crate::shared::plimsoll::until_ready;
use crate::shared::usage::{self, ProcessMeasurement};
use crate::shared::versions::Version;

pub(crate) struct MetricsServerProcess {
    pub(crate) program: Program,
    pub(crate) client: DirectClient,
}

/// Which program is measured.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum MeasuredServer {
    Upstream,
    Plimsoll(Version),
}

impl MeasuredServer {
    /// Starts the server of `metrics.k8s.io`.
    pub(crate) async fn of_kubelets(self, env: &MetricsBenchEnv) -> MetricsServerProcess {
        let (temp_folder, port) = (TempFolder::new().unwrap(), ports::free().unwrap());
        let authority = temp_folder.write("kubelets.crt", env.kubelets.ca_pem()).unwrap();
        let mut arguments = serving(&temp_folder, env, port);
        arguments.extend([
            format!("--kubeconfig={}", temp_folder.path("kubeconfig").display()),
            "--metric-resolution=15s".into(),
            "--kubelet-preferred-address-types=InternalIP".into(),
            "--kubelet-use-node-status-port".into(),
            format!("--kubelet-certificate-authority={}", authority.display()),
        ]);
        let program = match self {
            Self::Upstream => Peers::ensure().unwrap().metrics_server,
            Self::Plimsoll(version) => plimsoll(version, &mut arguments),
        };
        self.start(&program, &arguments, temp_folder, env, port).await
    }

    /// Starts the server of `custom.metrics.k8s.io`.
    pub(crate) async fn of_prometheus(
        self,
        env: &MetricsBenchEnv,
        url: &str,
        rules: &str,
    ) -> MetricsServerProcess {
        let (temp_folder, port) = (TempFolder::new().unwrap(), ports::free().unwrap());
        let rules = temp_folder.write("rules.yaml", rules).unwrap();
        let mut arguments = serving(&temp_folder, env, port);
        arguments.extend([
            format!("--lister-kubeconfig={}", temp_folder.path("kubeconfig").display()),
            format!("--config={}", rules.display()),
            format!("--prometheus-url={url}"),
            "--metrics-relist-interval=1m".into(),
            // With the default of 5 requests a second, the adapter would wait for its own rate limiter most of the time.
            "--client-qps=2000".into(),
            "--client-burst=2000".into(),
        ]);
        let program = match self {
            Self::Upstream => Peers::ensure().unwrap().prometheus_adapter,
            Self::Plimsoll(version) => plimsoll(version, &mut arguments),
        };
        self.start(&program, &arguments, temp_folder, env, port).await
    }

    async fn start(
        self,
        program: &Path,
        arguments: &[String],
        temp_folder: TempFolder,
        env: &MetricsBenchEnv,
        port: u16,
    ) -> MetricsServerProcess {
        let name = if self == Self::Upstream { "peer" } else { "plimsoll" };
        let mut program = Program::start(name, program, arguments, temp_folder).unwrap();
        until_ready(&mut program, port).await;
        MetricsServerProcess { program, client: DirectClient::new(port, &env.admin()).unwrap() }
    }
}

impl MetricsServerProcess {
    /// Measures what the process uses during `window`.
    pub(crate) async fn measure(&self, window: Duration) -> ProcessMeasurement {
        let [measured] = usage::measure([self.program.pid().expect("the process runs")], window).await;
        measured
    }

    /// Fails if the process has ended.
    pub(crate) fn check(&mut self) {
        if let Some(code) = self.program.ended() {
            panic!("the server ended by itself ({code}):\n{}", self.program.log());
        }
    }
}

fn serving(temp_folder: &TempFolder, env: &MetricsBenchEnv, port: u16) -> Vec<String> {
    let file = temp_folder.write("kubeconfig", &env.kubeconfig()).unwrap();
    vec![
        "--bind-address=127.0.0.1".into(),
        format!("--secure-port={port}"),
        format!("--cert-dir={}", temp_folder.path("certificates").display()),
        format!("--authentication-kubeconfig={}", file.display()),
        format!("--authorization-kubeconfig={}", file.display()),
    ]
}

/// Returns the measured binary, and inserts its subcommand before the arguments.
fn plimsoll(version: Version, arguments: &mut Vec<String>) -> PathBuf {
    arguments.insert(0, "metrics".into());
    version.binary()
}
