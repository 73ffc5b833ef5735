//! All roles in one process, compared with one process for each role: 1,000 autoscalers × 10 pods on localkube. localkube and the
//! kubelets run in a separate process.

use std::time::Duration;

use api::yaml::{SourceFile, parse};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::Method;
use kube::Client;
use localkube::{Cluster, Options};
use serde_json::{Value, json};
use testbed::aggregate::Aggregated;
use testbed::harness::{self, write};
use testbed::kubelets::{Kubelets, Measures, PodLoad, objects};

use crate::MEASUREMENT_WINDOW;
use crate::measure::MeasuredController;
use crate::shared::definitions::define_keda_resources;
use crate::shared::plimsoll::PlimsollProcess;
use crate::shared::server::{ServerProcess, ready};
use crate::shared::table::{ComparisonTable, mebibytes};
use crate::shared::usage::{self, ProcessMeasurement};
use crate::workloads::{PODS_PER_DEPLOYMENT, Workloads, pod_name};

/// The argument with which this program becomes the server of this benchmark.
pub(crate) const SERVER_WITH_KUBELETS: &str = "serve-with-kubelets";

const WORKLOADS: Workloads = Workloads { autoscalers: 1_000, namespaces: 10 };
const NODES: usize = 100;
/// The second number of the kubelets' addresses, which are 127.N.x.y.
const KUBELET_NETWORK: u8 = 92;
const IMAGES_PER_NODE: usize = 30;
/// The CPU usage of each pod, which is exactly the target of its autoscaler.
const POD_CPU_MILLICORES: u64 = 100;
const POD_MEMORY_BYTES: u64 = 64 << 20;
/// The maximum of the memory of one process, divided by that of three processes.
const MAX_MEMORY_RATIO: f64 = 0.6;
/// How long a process may take to end.
const END_TIMEOUT: Duration = Duration::from_secs(30);

const CONTROLLER_FLAGS: [&str; 2] =
    ["--leader-elect=false", "--authorization-always-allow-paths=/healthz,/livez,/readyz,/metrics"];
const METRICS_FLAGS: [&str; 4] = [
    "--metric-resolution=15s",
    "--kubelet-preferred-address-types=InternalIP",
    "--kubelet-use-node-status-port",
    "--kubelet-insecure-tls",
];
const OPERATOR_FLAGS: [&str; 3] =
    ["--metrics-service-bind-address=0", "--health-probe-bind-address=0", "--enable-webhook-patching=false"];

/// Runs in the server process: serves until its standard input is closed.
pub(crate) async fn serve(file: &str) {
    let running = Cluster::start(Options { workloads: false, ..Options::default() }).await.unwrap();
    let client = running.client();
    WORKLOADS.create(&client).await;
    define_keda_resources(&client).await;
    let server = running.serve().await.unwrap();
    let kubelets = Kubelets::new(&authority(&server.kubeconfig), KUBELET_NETWORK).unwrap();
    for number in 0..NODES {
        let name = node_name(number);
        let address = kubelets.add_node(&name, Measures::Always).unwrap();
        let node = objects::node(&name, address, kubelets.port(), IMAGES_PER_NODE);
        write(&client, Method::POST, "/api/v1/nodes", &objects::to_create(&node)).await;
        let status = json!({"status": node["status"]});
        write(&client, Method::PATCH, &format!("/api/v1/nodes/{name}/status"), &status).await;
    }
    for autoscaler in 0..WORKLOADS.autoscalers {
        let (node, namespace) = (node_name(autoscaler % NODES), WORKLOADS.namespace(autoscaler));
        for pod in 0..PODS_PER_DEPLOYMENT {
            let containers = [("app", POD_CPU_MILLICORES, POD_MEMORY_BYTES)];
            kubelets.set_pod(&node, PodLoad::new(&namespace, &pod_name(autoscaler, pod), &containers));
        }
    }
    ready(file, &server.kubeconfig, |_| {}).await;
}

fn node_name(number: usize) -> String {
    format!("node-{number:03}")
}

/// The certificate of a kubeconfig's CA, which also signed the certificate of its user.
fn authority(kubeconfig: &str) -> String {
    let line = kubeconfig.lines().find_map(|line| line.trim().strip_prefix("certificate-authority-data: "));
    String::from_utf8(STANDARD.decode(line.unwrap().trim()).unwrap()).unwrap()
}

/// Registers the server on a local port as the server of `metrics.k8s.io`.
async fn register(client: &Client, port: u16) {
    let api = Aggregated {
        group: "metrics.k8s.io".into(),
        version: "v1beta1".into(),
        namespace: "default".into(),
        service: format!("metrics-{port}"),
        port,
        authority: None,
    };
    let source = SourceFile::new("manifest", api.manifest());
    let objects: Vec<Value> =
        parse(&source).unwrap().iter().map(|one| one.decode_lenient::<Value>().unwrap()).collect();
    write(client, Method::POST, "/api/v1/namespaces/default/services", &objects[0]).await;
    let all = "/apis/apiregistration.k8s.io/v1/apiservices";
    // The process that was measured before may still be registered.
    harness::send(client, Method::DELETE, &format!("{all}/{}", api.name()), None).await;
    write(client, Method::POST, all, &objects[1]).await;
}

fn start(subcommand: &str, kubeconfig: &str, flags: &[&str]) -> PlimsollProcess {
    let flags: Vec<String> = flags.iter().map(|flag| (*flag).to_owned()).collect();
    PlimsollProcess::start(subcommand, kubeconfig, &flags)
}

/// Measures one process per role, and returns the sum of their usage.
async fn three_processes(client: &Client, kubeconfig: &str) -> ProcessMeasurement {
    let mut metrics = start("metrics", kubeconfig, &METRICS_FLAGS);
    metrics.until_ready().await;
    register(client, metrics.port).await;
    let mut operator = start("operator", kubeconfig, &OPERATOR_FLAGS);
    operator.until_ready().await;
    let mut controller = start("controller", kubeconfig, &CONTROLLER_FLAGS);
    MeasuredController::new(controller.pid(), controller.port, None)
        .until_reconciled_twice(WORKLOADS.autoscalers)
        .await;
    let measured =
        usage::measure([controller.pid(), metrics.pid(), operator.pid()], MEASUREMENT_WINDOW).await;
    let names = ["controller", "metrics", "operator"];
    for (name, of_role) in names.iter().zip(&measured) {
        println!("{name:<44} {:>11.1} MiB", mebibytes(of_role.resident));
    }
    for process in [&mut controller, &mut metrics, &mut operator] {
        process.check();
        process.end(END_TIMEOUT).await;
    }
    let [controller, metrics, operator] = measured;
    controller.and(metrics).and(operator)
}

/// Measures one process with all roles.
async fn one_process(client: &Client, kubeconfig: &str) -> ProcessMeasurement {
    let flags = [&CONTROLLER_FLAGS[..], &METRICS_FLAGS, &OPERATOR_FLAGS].concat();
    let mut all = start("run", kubeconfig, &flags);
    all.until_ready().await;
    register(client, all.port).await;
    let controller = MeasuredController::new(all.pid(), all.port, None);
    controller.until_reconciled_twice(WORKLOADS.autoscalers).await;
    let measured = controller.measure(MEASUREMENT_WINDOW).await;
    all.check();
    all.end(END_TIMEOUT).await;
    measured.usage
}

pub(crate) async fn run() -> bool {
    eprintln!("creating {} autoscalers, their pods and {NODES} nodes on localkube", WORKLOADS.autoscalers);
    let server = ServerProcess::start_as(SERVER_WITH_KUBELETS).await;
    let client = harness::connect(&server.kubeconfig).await.unwrap();
    let three = three_processes(&client, &server.kubeconfig).await;
    let one = one_process(&client, &server.kubeconfig).await;
    let title = format!(
        "{} autoscalers × {PODS_PER_DEPLOYMENT} pods on localkube: one process per role (theirs), all roles in one process (ours)",
        WORKLOADS.autoscalers
    );
    let mut table = ComparisonTable::new(&title);
    let (sum, own) = (mebibytes(three.resident), mebibytes(one.resident));
    table.row("resident memory, MiB", sum, own, 1, Some(MAX_MEMORY_RATIO));
    table.row("… at most since the start, MiB", mebibytes(three.peak), mebibytes(one.peak), 1, None);
    table.row("CPU, m", three.millicores(), one.millicores(), 1, None);
    table.good()
}
