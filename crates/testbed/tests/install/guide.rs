//! The guide for metrics-server (docs/switching.md): the commands of `plimsoll migrate plan` there and back, as they are printed. Our own
//! pods serve the API in between; those of metrics-server never run.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::cluster::{Cluster, repository};
use crate::removal;

const API: &str = "apiservice v1beta1.metrics.k8s.io";
const ROLE: &str = "clusterrole system:aggregated-metrics-reader";
/// The objects of metrics-server that a switch has to do with, as its manifests have them.
const METRICS_SERVER: &str = "apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: 'system:aggregated-metrics-reader', labels: {k8s-app: metrics-server}}
rules:
- {apiGroups: [metrics.k8s.io], resources: [pods, nodes], verbs: [get, list, watch]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: metrics-server, namespace: kube-system}
spec:
  replicas: 0
  selector: {matchLabels: {k8s-app: metrics-server}}
  template:
    metadata: {labels: {k8s-app: metrics-server}}
    spec:
      containers:
      - name: metrics-server
        image: registry.k8s.io/metrics-server/metrics-server:v0.8.0
        args: [--metric-resolution=15s]
---
apiVersion: v1
kind: Service
metadata: {name: metrics-server, namespace: kube-system}
spec:
  selector: {k8s-app: metrics-server}
  ports: [{port: 443, targetPort: 10250}]
---
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1beta1.metrics.k8s.io}
spec:
  group: metrics.k8s.io
  version: v1beta1
  groupPriorityMinimum: 100
  versionPriority: 100
  insecureSkipTLSVerify: true
  service: {name: metrics-server, namespace: kube-system, port: 443}
";
/// Steps that are not run: the first scrapes have no rates yet, and without its Deployment there is no way back.
const LEFT_OUT: [&str; 2] = ["See that it answers", "When you do not want to go back"];
/// The step whose way back waits for pods of metrics-server.
const STOP: &str = "Stop what is not asked any more";

pub(crate) fn from_metrics_server(cluster: &Cluster) {
    // The guide begins without Plimsoll, whose APIService has the name of the one of metrics-server.
    removal::uninstall(cluster);
    cluster.apply(METRICS_SERVER);
    let steps = plan(cluster);
    for step in &steps {
        cluster.shell(&script(step, "commands"));
    }
    cluster.until("kubectl top nodes", || cluster.try_kubectl("top nodes").ok());
    let api = cluster.get(API);
    assert_eq!(api["spec"]["service"]["name"], "plimsoll-metrics", "{api}");
    let role = cluster.get(ROLE);
    assert_eq!(role["metadata"]["annotations"]["meta.helm.sh/release-name"], "plimsoll", "{role}");
    let back = steps.iter().rev().filter(|step| step["title"] != STOP);
    for step in back {
        cluster.shell(&script(step, "back"));
    }
    cluster.until_gone("plimsoll-metrics");
    let api = cluster.get(API);
    assert_eq!(api["spec"]["service"]["name"], "metrics-server", "{api}");
    assert_eq!(api["spec"]["insecureSkipTLSVerify"], true, "{api}");
    // Users of metrics-server still need it.
    cluster.get(ROLE);
}

/// The steps of the plan that are run here.
fn plan(cluster: &Cluster) -> Vec<Value> {
    let own = std::env::current_exe().unwrap();
    // This program is …/debug/deps/name-0123; ours is in …/debug.
    let program: PathBuf = own.parent().and_then(Path::parent).unwrap().join("plimsoll");
    let mut command = Command::new(program);
    command.args(["migrate", "plan", "--from", "metrics-server", "--output", "json"]);
    command.arg("--chart").arg(repository().join("charts/plimsoll"));
    let output = command.arg("--kubeconfig").arg(cluster.kubeconfig()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let plans: Value = serde_json::from_slice(&output.stdout).unwrap();
    let steps = plans[0]["steps"].as_array().unwrap().iter();
    let is_run = |step: &&Value| {
        let title = step["title"].as_str().unwrap();
        !LEFT_OUT.iter().any(|left_out| title.starts_with(*left_out))
    };
    steps.filter(is_run).cloned().collect()
}

/// The commands of a step, or those of its way back, as one script: a command may use a variable of the one before.
fn script(step: &Value, part: &str) -> String {
    let commands = step[part].as_array().unwrap().iter();
    commands.map(|command| command.as_str().unwrap()).collect::<Vec<&str>>().join("\n")
}
