//! The tested metrics server: Plimsoll, or the servers that it replaces.

use std::path::Path;
use std::time::Duration;

use testbed::kubelets::Kubelets;
use testbed::program::{Program, TempFolder};
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

/// The tested server: the port of each API, and its processes.
pub(crate) struct TestedServer {
    /// The port of `metrics.k8s.io`.
    pub(crate) resource_port: u16,
    /// The port of the other two APIs.
    pub(crate) custom_port: u16,
    pub(crate) programs: Vec<Program>,
}

/// Whether the replaced servers are tested instead of Plimsoll.
pub(crate) fn peers() -> bool {
    std::env::var("PLIMSOLL_METRICS").is_ok_and(|who| who == "peers")
}

/// The adapter rules, for tests that change them.
pub(crate) fn rules() -> &'static str {
    RULES
}

impl TestedServer {
    pub(crate) async fn start(kubeconfig: &str, kubelets: &Kubelets, prometheus: &str) -> Self {
        if peers() {
            theirs(&Peers::ensure().unwrap(), kubeconfig, kubelets, prometheus).await
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

    /// The resident memory of the server in bytes.
    pub(crate) fn resident(&self) -> u64 {
        self.programs.iter().filter_map(Program::usage).map(|usage| usage.resident).sum()
    }
}

/// Flags of metrics-server for simulated kubelets.
pub(crate) fn kubelet_flags(temp_folder: &TempFolder, kubelets: &Kubelets) -> Vec<String> {
    let authority = temp_folder.write("kubelets.crt", kubelets.ca_pem()).unwrap();
    vec![
        format!("--metric-resolution={}s", RESOLUTION.as_secs()),
        "--kubelet-request-timeout=5s".into(),
        "--kubelet-preferred-address-types=InternalIP".into(),
        "--kubelet-use-node-status-port".into(),
        format!("--kubelet-certificate-authority={}", authority.display()),
    ]
}

/// Flags of prometheus-adapter.
pub(crate) fn prometheus_flags(temp_folder: &TempFolder, prometheus: &str) -> Vec<String> {
    let rules = temp_folder.write("rules.yaml", RULES).unwrap();
    vec![
        format!("--config={}", rules.display()),
        format!("--prometheus-url={prometheus}"),
        "--metrics-relist-interval=2s".into(),
        "--metrics-max-age=1m".into(),
    ]
}

/// Flags of a server's listener and delegated authentication.
pub(crate) fn serving_flags(temp_folder: &TempFolder, kubeconfig: &str, port: u16) -> Vec<String> {
    let file = temp_folder.write("kubeconfig", kubeconfig).unwrap();
    vec![
        "--bind-address=127.0.0.1".into(),
        format!("--secure-port={port}"),
        format!("--cert-dir={}", temp_folder.path("certificates").display()),
        format!("--authentication-kubeconfig={}", file.display()),
        format!("--authorization-kubeconfig={}", file.display()),
    ]
}

/// Starts a server, and returns when it is ready.
pub(crate) async fn started(
    name: &'static str,
    program: &Path,
    arguments: &[String],
    temp_folder: TempFolder,
    port: u16,
) -> Result<Program, Error> {
    let mut program = Program::start(name, program, arguments, temp_folder)?;
    let ready = async || {
        direct(port, &Caller::anonymous(), "/readyz").await.is_some_and(|response| response.code == 200)
    };
    program.until(READY_TIMEOUT, ready).await?;
    Ok(program)
}

/// Arguments of Plimsoll's metrics server with all its sources.
pub(crate) fn metrics_arguments(
    temp_folder: &TempFolder,
    kubeconfig: &str,
    port: u16,
    kubelets: &Kubelets,
    prometheus: &str,
) -> Vec<String> {
    let mut arguments = vec!["metrics".to_owned()];
    arguments.extend(serving_flags(temp_folder, kubeconfig, port));
    arguments.push(format!("--kubeconfig={}", temp_folder.path("kubeconfig").display()));
    arguments.extend(kubelet_flags(temp_folder, kubelets));
    arguments.extend(prometheus_flags(temp_folder, prometheus));
    arguments
}

async fn ours(kubeconfig: &str, kubelets: &Kubelets, prometheus: &str) -> TestedServer {
    let (temp_folder, port) = (TempFolder::new().unwrap(), free_port());
    let mut arguments = metrics_arguments(&temp_folder, kubeconfig, port, kubelets, prometheus);
    // Tests that break Prometheus wait until cached values expire.
    arguments.push("--prometheus-cache=1s".into());
    let program = started("plimsoll", program(), &arguments, temp_folder, port).await.unwrap();
    TestedServer { resource_port: port, custom_port: port, programs: vec![program] }
}

/// Starts metrics-server and prometheus-adapter.
pub(crate) async fn theirs(
    peers: &Peers,
    kubeconfig: &str,
    kubelets: &Kubelets,
    prometheus: &str,
) -> TestedServer {
    let (temp_folder, resource_port) = (TempFolder::new().unwrap(), free_port());
    let mut arguments = serving_flags(&temp_folder, kubeconfig, resource_port);
    arguments.push(format!("--kubeconfig={}", temp_folder.path("kubeconfig").display()));
    arguments.extend(kubelet_flags(&temp_folder, kubelets));
    let resource = started("metrics-server", &peers.metrics_server, &arguments, temp_folder, resource_port);
    let (temp_folder, custom_port) = (TempFolder::new().unwrap(), free_port());
    let mut arguments = serving_flags(&temp_folder, kubeconfig, custom_port);
    arguments.push(format!("--lister-kubeconfig={}", temp_folder.path("kubeconfig").display()));
    arguments.extend(prometheus_flags(&temp_folder, prometheus));
    let custom =
        started("prometheus-adapter", &peers.prometheus_adapter, &arguments, temp_folder, custom_port);
    let (resource, custom) = tokio::join!(resource, custom);
    TestedServer { resource_port, custom_port, programs: vec![resource.unwrap(), custom.unwrap()] }
}
