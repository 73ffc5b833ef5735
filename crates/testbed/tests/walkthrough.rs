//! The walk-through of the Kubernetes documentation with kubectl, scaled by our controller: `autoscale`, load, `get hpa -w`
//! grows and shrinks, `describe` shows conditions and events. On both clusters.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, dead_code, reason = "a test")]

#[path = "controller/env/controller.rs"]
mod controller;

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::Duration;

use api::selector::Selector;
use controllers::hpa::HpaSettings;
use localkube::metrics::MetricsApi;
use localkube::nodes::{Nodes, Plan, Workload};
use sim::load::{CurveShape, LoadCurve};
use sim::workload::{ContainerUsageModel, PodDelays, ServiceCapacity, UsageModel};
use testbed::harness::{self, Failure, TestNamespace};

const MANIFEST: &str = "\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: php-apache
spec:
  selector:
    matchLabels:
      run: php-apache
  template:
    metadata:
      labels:
        run: php-apache
    spec:
      containers:
      - name: php-apache
        image: registry.k8s.io/hpa-example
        resources:
          limits:
            cpu: 500m
          requests:
            cpu: 200m
";

/// How long something may take on a busy machine.
const PATIENCE: Duration = Duration::from_mins(3);

struct Desk {
    kubectl: PathBuf,
    folder: PathBuf,
    namespace: String,
}

/// `kubectl get hpa -w`, line by line.
struct Table {
    child: Child,
    lines: Receiver<String>,
    seen: Vec<String>,
}

#[test]
fn php_apache_grows_and_shrinks_before_the_eyes_of_kubectl() -> Result<(), Failure> {
    harness::on_both(|ns| async {
        let Ok(access) = testbed::shared() else { return };
        let kubectl = access.parts.kubectl.clone();
        walk(ns, kubectl).await;
    })
}

async fn walk(ns: TestNamespace, kubectl: PathBuf) {
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
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(&namespace);
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("kubeconfig"), kubeconfig).unwrap();
    std::fs::write(folder.join("php-apache.yaml"), MANIFEST).unwrap();
    let desk = Desk { kubectl, folder: folder.clone(), namespace: namespace.clone() };
    let nodes = tokio::task::spawn_blocking(move || {
        desk.follow(&nodes);
        nodes
    })
    .await
    .unwrap();
    ours.stop().await;
    metrics.unregister(&client, "kube-system").await;
    nodes.stop().await;
    std::fs::remove_dir_all(folder).unwrap();
}

/// So many requests per second, each of which costs 25m of cpu.
fn load(namespace: &str, requests: f64) -> Workload {
    // In thousandths.
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

impl Desk {
    fn follow(&self, nodes: &Nodes) {
        self.run("apply -f php-apache.yaml");
        self.run("rollout status deployment/php-apache");
        self.run("autoscale deployment php-apache --cpu=50% --min=1 --max=10");
        let mut table = self.watch("get hpa php-apache --watch");
        table.until(|row| row.targets.starts_with("cpu: 1") && row.replicas == 1);
        nodes.set_load(load(&self.namespace, 20.0));
        table.until(|row| row.replicas == 5);
        nodes.set_load(load(&self.namespace, 1.0));
        table.until(|row| row.replicas == 1);
        let text = self.run("describe hpa php-apache");
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
        self.run("delete hpa php-apache");
        self.run("delete -f php-apache.yaml");
    }

    fn command(&self, line: &str) -> Command {
        let mut command = Command::new(&self.kubectl);
        command.env("KUBECONFIG", "kubeconfig").env("KUBERC", "off").env("KUBECACHEDIR", "cache");
        command.current_dir(&self.folder).stdin(Stdio::null());
        command.arg("--namespace").arg(&self.namespace).args(line.split(' '));
        command
    }

    fn run(&self, line: &str) -> String {
        let output = self.command(line).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "kubectl {line}: {text}{}", String::from_utf8_lossy(&output.stderr));
        text
    }

    fn watch(&self, line: &str) -> Table {
        let mut child = self.command(line).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let out = child.stdout.take().unwrap();
        let (tell, lines) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            for line in BufReader::new(out).lines().map_while(Result::ok) {
                if tell.send(line).is_err() {
                    break;
                }
            }
        });
        Table { child, lines, seen: Vec::new() }
    }
}

/// What matters in a line of `kubectl get hpa`.
struct Row {
    targets: String,
    replicas: u32,
}

impl Table {
    /// Reads on until a line is as wanted.
    fn until(&mut self, wanted: impl Fn(&Row) -> bool) {
        loop {
            let line = self.lines.recv_timeout(PATIENCE);
            let line = line.unwrap_or_else(|_| panic!("no such line among\n{}", self.seen.join("\n")));
            self.seen.push(line.clone());
            if row(&line).is_some_and(|row| wanted(&row)) {
                return;
            }
        }
    }
}

impl Drop for Table {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// NAME, REFERENCE, TARGETS (two words), MINPODS, MAXPODS, REPLICAS, AGE; none for the line of titles.
fn row(line: &str) -> Option<Row> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [_, _, metric, value, _, _, replicas, _] = words.as_slice() else { return None };
    Some(Row { targets: format!("{metric} {value}"), replicas: replicas.parse().ok()? })
}
