//! The tested metrics server: Plimsoll, or the servers that it replaces.

use std::path::Path;
use std::time::Duration;

use testbed::kubelets::Kubelets;
use testbed::program::{Program, Room};
use testbed::{Error, Peers};

use super::direct::{Caller, direct};
use super::{RESOLUTION, free_port, program};

/// How long it may take to become ready: two scrapes on a busy machine.
const READY_TIMEOUT: Duration = Duration::from_mins(3);

/// The adapter rules of the tests: requests of the sample application's pods and services, and queue lengths.
const RULES: &str = r#"rules:
- seriesQuery: 'http_requests_total{namespace!="",pod!=""}'
  resources:
    overrides:
      namespace: {resource: namespace}
      pod: {resource: pod}
  name: {matches: "^(.*)_total$"}
  metricsQuery: 'sum(rate(<<.Series>>{<<.LabelMatchers>>}[5s])) by (<<.GroupBy>>)'
- seriesQuery: 'service_requests_total{namespace!="",service!=""}'
  resources:
    overrides:
      namespace: {resource: namespace}
      service: {resource: service}
  name: {matches: "^(.*)_total$"}
  metricsQuery: 'sum(rate(<<.Series>>{<<.LabelMatchers>>}[5s])) by (<<.GroupBy>>)'
- seriesQuery: 'node_temperature_celsius{node!=""}'
  resources:
    overrides:
      node: {resource: node}
  metricsQuery: 'max(<<.Series>>{<<.LabelMatchers>>}) by (<<.GroupBy>>)'
externalRules:
- seriesQuery: 'queue_depth{queue!=""}'
  resources: {namespaced: false}
  metricsQuery: 'max(<<.Series>>{<<.LabelMatchers>>}) by (queue)'
"#;

/// The running server: the port of each API, and its processes.
pub(crate) struct Subject {
    /// Where `metrics.k8s.io` is served.
    pub(crate) resource_port: u16,
    /// The port of the other two APIs.
    pub(crate) custom_port: u16,
    pub(crate) programs: Vec<Program>,
}

/// Whether the replaced servers are tested instead of Plimsoll.
pub(crate) fn peers() -> bool {
    std::env::var("PLIMSOLL_METRICS").is_ok_and(|who| who == "peers")
}

/// The rules, for tests that change them.
pub(crate) fn rules() -> &'static str {
    RULES
}

impl Subject {
    pub(crate) async fn start(kubeconfig: &str, kubelets: &Kubelets, prometheus: &str) -> Self {
        if peers() {
            theirs(kubeconfig, kubelets, prometheus).await
        } else {
            ours(kubeconfig, kubelets, prometheus).await
        }
    }

    /// The last lines of its log.
    pub(crate) fn log_end(&self) -> String {
        let log: String = self.programs.iter().map(Program::log).collect();
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(15)..].join("\n")
    }

    /// Its resident memory.
    pub(crate) fn resident(&self) -> u64 {
        self.programs.iter().filter_map(Program::usage).map(|usage| usage.resident).sum()
    }
}

/// Flags of metrics-server that lead to simulated kubelets.
pub(crate) fn kubelet_flags(room: &Room, kubelets: &Kubelets) -> Vec<String> {
    let authority = room.write("kubelets.crt", kubelets.ca_pem()).unwrap();
    vec![
        format!("--metric-resolution={}s", RESOLUTION.as_secs()),
        "--kubelet-request-timeout=5s".into(),
        "--kubelet-preferred-address-types=InternalIP".into(),
        "--kubelet-use-node-status-port".into(),
        format!("--kubelet-certificate-authority={}", authority.display()),
    ]
}

/// Flags of prometheus-adapter.
pub(crate) fn prometheus_flags(room: &Room, prometheus: &str) -> Vec<String> {
    let rules = room.write("rules.yaml", RULES).unwrap();
    vec![
        format!("--config={}", rules.display()),
        format!("--prometheus-url={prometheus}"),
        "--metrics-relist-interval=2s".into(),
        "--metrics-max-age=1m".into(),
    ]
}

/// Flags of a server's listener and delegated authentication.
pub(crate) fn serving_flags(room: &Room, kubeconfig: &str, port: u16) -> Vec<String> {
    let file = room.write("kubeconfig", kubeconfig).unwrap();
    vec![
        "--bind-address=127.0.0.1".into(),
        format!("--secure-port={port}"),
        format!("--cert-dir={}", room.path("certificates").display()),
        format!("--authentication-kubeconfig={}", file.display()),
        format!("--authorization-kubeconfig={}", file.display()),
    ]
}

/// Starts a server, and returns when it is ready.
pub(crate) async fn started(
    name: &'static str,
    program: &Path,
    arguments: &[String],
    room: Room,
    port: u16,
) -> Result<Program, Error> {
    let mut program = Program::start(name, program, arguments, room)?;
    let ready =
        async || direct(port, &Caller::nobody(), "/readyz").await.is_some_and(|answer| answer.code == 200);
    program.until(READY_TIMEOUT, ready).await?;
    Ok(program)
}

/// Arguments of Plimsoll's metrics server with all its sources.
pub(crate) fn metrics_arguments(
    room: &Room,
    kubeconfig: &str,
    port: u16,
    kubelets: &Kubelets,
    prometheus: &str,
) -> Vec<String> {
    let mut arguments = vec!["metrics".to_owned()];
    arguments.extend(serving_flags(room, kubeconfig, port));
    arguments.push(format!("--kubeconfig={}", room.path("kubeconfig").display()));
    arguments.extend(kubelet_flags(room, kubelets));
    arguments.extend(prometheus_flags(room, prometheus));
    arguments
}

async fn ours(kubeconfig: &str, kubelets: &Kubelets, prometheus: &str) -> Subject {
    let (room, port) = (Room::new().unwrap(), free_port());
    let mut arguments = metrics_arguments(&room, kubeconfig, port, kubelets, prometheus);
    // Tests that break Prometheus wait until cached values expire.
    arguments.push("--prometheus-cache=1s".into());
    let program = started("plimsoll", program(), &arguments, room, port).await.unwrap();
    Subject { resource_port: port, custom_port: port, programs: vec![program] }
}

async fn theirs(kubeconfig: &str, kubelets: &Kubelets, prometheus: &str) -> Subject {
    let peers = Peers::ensure().unwrap();
    let (room, resource_port) = (Room::new().unwrap(), free_port());
    let mut arguments = serving_flags(&room, kubeconfig, resource_port);
    arguments.push(format!("--kubeconfig={}", room.path("kubeconfig").display()));
    arguments.extend(kubelet_flags(&room, kubelets));
    let resource = started("metrics-server", &peers.metrics_server, &arguments, room, resource_port);
    let (room, custom_port) = (Room::new().unwrap(), free_port());
    let mut arguments = serving_flags(&room, kubeconfig, custom_port);
    arguments.push(format!("--lister-kubeconfig={}", room.path("kubeconfig").display()));
    arguments.extend(prometheus_flags(&room, prometheus));
    let custom = started("prometheus-adapter", &peers.prometheus_adapter, &arguments, room, custom_port);
    let (resource, custom) = tokio::join!(resource, custom);
    Subject { resource_port, custom_port, programs: vec![resource.unwrap(), custom.unwrap()] }
}
