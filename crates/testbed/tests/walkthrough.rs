//! The walk-through of the Kubernetes documentation with kubectl, scaled by our controller on both clusters: `autoscale`, load, `get hpa -w`
//! shows the replicas, `describe` shows conditions and events.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, dead_code, reason = "a test")]

#[path = "controller/env/controller.rs"]
mod controller;
#[path = "shared/kubectl.rs"]
mod kubectl;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use api::selector::Selector;
use controllers::hpa::HpaSettings;
use kubectl::{Kubectl, KubectlWatch};
use localkube::metrics::MetricsApi;
use localkube::nodes::{Nodes, Plan, Workload};
use sim::load::{CurveShape, LoadCurve};
use sim::workload::{ContainerUsageModel, PodDelays, ServiceCapacity, UsageModel};
use testbed::harness::{self, Failure, TestNamespace};

const MANIFEST: &str = include_str!("shared/php-apache.yaml");

#[test]
fn kubectl_shows_php_apache_scale_up_and_down() -> Result<(), Failure> {
    harness::on_both(|ns| async {
        let Ok(access) = testbed::shared() else { return };
        let kubectl = access.parts.kubectl.clone();
        walk(ns, kubectl).await;
    })
}

async fn walk(ns: TestNamespace, program: PathBuf) {
    let TestNamespace { client, namespace, kubeconfig, .. } = ns;
    let plan = Plan {
        count: 1,
        prefix: namespace.clone(),
        namespace: Some(namespace.clone()),
        workloads: vec![load(&namespace, 1.0)],
        ..Plan::default()
    };
    let nodes = Nodes::start(client.clone(), plan).await.unwrap();
    let resolution =
        localkube::metrics::MetricsSettings { resolution: Duration::from_secs(1), ..Default::default() };
    let metrics = MetricsApi::of_nodes(&nodes, resolution).await.unwrap();
    metrics.register(&client, "kube-system").await.unwrap();
    let config = engine::ControllerConfig {
        downscale_stabilization: jiff::SignedDuration::from_secs(3),
        cpu_initialization_period: jiff::SignedDuration::ZERO,
        initial_readiness_delay: jiff::SignedDuration::ZERO,
        ..engine::ControllerConfig::default()
    };
    let settings = HpaSettings {
        config: Arc::new(config),
        period: Duration::from_secs(1),
        namespaces: vec![namespace.clone()],
        ..HpaSettings::default()
    };
    let ours = controller::RunningController::start(client.clone(), settings);
    let kubectl = Kubectl::of(program, &kubeconfig, &namespace);
    kubectl.write("php-apache.yaml", MANIFEST);
    let nodes = tokio::task::spawn_blocking(move || {
        follow(&kubectl, &nodes);
        nodes
    })
    .await
    .unwrap();
    ours.stop().await;
    metrics.unregister(&client, "kube-system").await;
    nodes.stop().await;
}

/// Sets the load in requests per second, each of which uses 25m of CPU.
fn load(namespace: &str, requests: f64) -> Workload {
    // The value is in thousandths of a core.
    let usage = |idle, per_unit| UsageModel { idle, starting: idle, per_unit, limit: f64::INFINITY };
    Workload {
        namespace: namespace.to_owned(),
        selector: Selector::parse("run=php-apache").unwrap(),
        load: LoadCurve::new(vec![CurveShape::Constant(requests)], Vec::new()),
        service: ServiceCapacity { per_pod: None, queue: 0.0 },
        containers: vec![ContainerUsageModel {
            name: "php-apache".into(),
            cpu: usage(0.0, 25.0),
            memory: usage(20e9, 0.0),
        }],
        delays: Some(PodDelays::default()),
    }
}

fn follow(kubectl: &Kubectl, nodes: &Nodes) {
    kubectl.run_ok("apply -f php-apache.yaml");
    kubectl.run_ok("rollout status deployment/php-apache");
    kubectl.run_ok("autoscale deployment php-apache --cpu=50% --min=1 --max=10");
    let table = kubectl.watch("get hpa php-apache --watch");
    until(&table, |row| row.targets.starts_with("cpu: 1") && row.replicas == 1);
    nodes.set_load(load(&kubectl.namespace, 20.0));
    until(&table, |row| row.replicas == 5);
    nodes.set_load(load(&kubectl.namespace, 1.0));
    until(&table, |row| row.replicas == 1);
    let text = kubectl.run_ok("describe hpa php-apache");
    for wanted in [
        "AbleToScale     True ",
        "ScalingActive   True    ValidMetricFound",
        "SuccessfulRescale",
        "horizontal-pod-autoscaler",
        "reason: cpu resource utilization (percentage of request) above target",
        "New size: 1; reason: All metrics below target",
    ] {
        assert!(text.contains(wanted), "{wanted:?} is not in\n{text}");
    }
    kubectl.run_ok("delete hpa php-apache");
    kubectl.run_ok("delete -f php-apache.yaml");
}

/// The compared cells in a line of `kubectl get hpa`.
struct HpaRow {
    targets: String,
    replicas: u32,
}

/// Reads lines until `wanted` is true for one.
fn until(table: &KubectlWatch, wanted: impl Fn(&HpaRow) -> bool) {
    let mut seen = Vec::new();
    loop {
        let line = table.next().unwrap_or_else(|| panic!("no such line among\n{}", seen.join("\n")));
        if row(&line).is_some_and(|row| wanted(&row)) {
            return;
        }
        seen.push(line);
    }
}

/// Parses NAME, REFERENCE, TARGETS (two words), MINPODS, MAXPODS, REPLICAS and AGE; none for the header.
fn row(line: &str) -> Option<HpaRow> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [_, _, metric, value, _, _, replicas, _] = words.as_slice() else { return None };
    Some(HpaRow { targets: format!("{metric} {value}"), replicas: replicas.parse().ok()? })
}
