//! Everything that runs: the cluster, its nodes, its metrics, the controller and the operator.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use api::yaml::{self, SourceFile};
use cluster::connect::{self, ConnectTarget, Connection, Credentials, Material};
use engine::explain::plural;
use localkube::nodes::{Nodes, Plan, Workload};
use localkube::{Cluster, Running, Server};
use serve::{ServiceBackend, ServiceRef};
use tokio::runtime::Handle;
use tokio::time::Instant;

use super::event_driven::EventDrivenObject;
use super::faults::FaultTargets;
use super::load_and_faults::{LoadAndFaults, LoadAndFaultsBackend};
use super::pod_metrics::PodMetrics;
use super::queue::Queue;
use super::speed::ClusterTime;
use super::workloads::ChosenWorkloads;
use super::{UpArgs, objects};
use crate::commands::console::{self, ConsoleOptions, RunningConsole};
use crate::commands::controller::{self, ControllerOptions, ControllerProcess, SERVICE};
use crate::commands::{metrics, operator};
use crate::failure::{BoxError, Failure};
use crate::lease_thread::LeaseRuntime;
use crate::live::{ClusterArgs, ClusterClient};
use crate::own_file::OwnFile;
use crate::probe_thread::{ProbeRuntime, ProbeThread};

/// A CustomResourceDefinition and its file.
macro_rules! definition {
    ($name:literal) => {
        ($name, include_str!(concat!("../../../../../deploy/crds/keda/", $name, ".yaml")))
    };
}

/// Our own kind.
const AUTOSCALER_CRD: &str = include_str!("../../../../../deploy/crds/autoscalers.plimsoll.dev.yaml");
/// KEDA's kinds.
const KEDA_CRDS: [(&str, &str); 6] = [
    definition!("scaledobjects.keda.sh"),
    definition!("scaledjobs.keda.sh"),
    definition!("triggerauthentications.keda.sh"),
    definition!("clustertriggerauthentications.keda.sh"),
    definition!("cloudeventsources.eventing.keda.sh"),
    definition!("clustercloudeventsources.eventing.keda.sh"),
];
/// What to do about a kubeconfig that exists.
const KUBECONFIG_REMEDY: &str = "stop the other `plimsoll up` of this folder, name another file with --kubeconfig, or \
                                 remove the file if no `plimsoll up` uses it";
/// Autoscalers that the introduction names.
const MAX_NAMES_SHOWN: usize = 5;
/// The scrape interval.
const SCRAPE_INTERVAL: Duration = Duration::from_secs(5);

/// Everything that runs; dropping it ends it.
pub(super) struct RunningCluster {
    pub(super) process: ControllerProcess,
    pub(super) workloads: ChosenWorkloads,
    pub(super) load_and_faults: Arc<LoadAndFaults>,
    ready: Duration,
    kubeconfig: OwnFile,
    metrics: metrics::MetricsProcess,
    pub(super) operator: operator::OperatorProcess,
    _queue: Option<Queue>,
    _pod_metrics: Option<PodMetrics>,
    /// The web console, and its thread, on which the work of the cluster does not delay it.
    console: RunningConsole,
    _console_thread: ProbeThread,
    _nodes: Arc<Nodes>,
    server: Server,
    _running: Running,
}

impl RunningCluster {
    pub(super) async fn build(
        args: &UpArgs,
        chosen: ChosenWorkloads,
        time: &ClusterTime,
    ) -> Result<Self, Failure> {
        let kubernetes = args.kubernetes.version();
        let start = std::time::Instant::now();
        let outside = |doing: &'static str| {
            move |error: BoxError| Failure::Outside(format!("failed to {doing}: {error}"))
        };
        let clock = Some(time.localkube);
        let running =
            Cluster::start(localkube::Options { kubernetes, clock, ..localkube::Options::default() }).await?;
        let server = running.serve().await?;
        // Removed when this is dropped, also when anything below fails.
        let kubeconfig = OwnFile::create(&args.kubeconfig, &server.kubeconfig, KUBECONFIG_REMEDY)?;
        let ready = start.elapsed();
        let client = running.client();
        let mut workloads = Vec::new();
        for plan in chosen.plans() {
            let workload = Workload::of_scenario(plan).map_err(|e| outside("read a selector")(e.into()))?;
            workloads.push((plan.name.clone(), workload));
        }
        let plan = Plan {
            count: usize::from(args.nodes),
            workloads: workloads.iter().map(|(_, workload)| workload.clone()).collect(),
            seed: chosen.settings.seed,
            clock: running.clock(),
            ..Plan::default()
        };
        let nodes = Nodes::start(client.clone(), plan).await;
        let nodes = Arc::new(nodes.map_err(|e| outside("start the simulated nodes")(e.into()))?);
        let nodes_began = Instant::now();
        let mut definitions = Vec::new();
        for (name, text) in KEDA_CRDS.into_iter().chain([("autoscalers.plimsoll.dev", AUTOSCALER_CRD)]) {
            let source = SourceFile::from_bytes(format!("{name}.yaml"), text.as_bytes())?;
            definitions.extend(yaml::parse(&source)?);
        }
        objects::create(&client, &definitions, |_| ()).await?;
        // All roles talk to the cluster as to any other: over TLS, by kubeconfig.
        let target = ConnectTarget { kubeconfig: Some(args.kubeconfig.clone()), context: None };
        let connection = connect::connect(&target).await.map_err(|e| Failure::Outside(e.to_string()))?;
        // The kubelets have their own CA.
        let authority = Some(Material::Given(nodes.ca_pem().as_bytes().to_vec()));
        let credentials = Credentials { authority, ..connection.credentials.clone() };
        let measured = Connection { credentials, ..connection.clone() };
        let mut options = metrics::MetricsOptions::for_embedded_cluster(SCRAPE_INTERVAL)?;
        options.serving.clock = time.roles.clone();
        let metrics = metrics::start(&measured, &options, &ProbeRuntime::same_thread()).await?;
        let registrations = registrations_of(metrics.server.as_ref(), metrics::SERVICE);
        for object in &registrations {
            objects::create_one(&client, object).await.map_err(outside("register the metrics APIs"))?;
        }
        let pod_metrics =
            PodMetrics::start(&client, &nodes, chosen.plans(), SCRAPE_INTERVAL, running.clock()).await;
        let pod_metrics = pod_metrics.map_err(|error| outside("serve custom metrics")(error.into()))?;
        let options = ControllerOptions::for_embedded_cluster(&chosen.settings);
        let lease_runtime = LeaseRuntime::same_thread(&connection);
        let process = controller::start(&connection, &options, time.roles.clone(), &lease_runtime).await?;
        for object in registrations_of(process.server.as_ref(), SERVICE) {
            objects::create_one(&client, &object).await.map_err(outside("register the decisions API"))?;
        }
        let mut options = operator::OperatorOptions::for_embedded_cluster()?;
        options.web.clock = time.roles.clone();
        options.settings.profile = args.keda_profile;
        let operator = operator::start(&connection, &options, time.roles.clone(), &lease_runtime).await?;
        for object in registrations_of(operator.server.as_ref(), operator::SERVICE) {
            objects::create_one(&client, &object).await.map_err(outside("register the operator's APIs"))?;
        }
        let queue = match chosen.event_driven.iter().find_map(EventDrivenObject::queue_workers) {
            Some(workers) => {
                let opened = Queue::open(client.clone(), workers).await;
                Some(opened.map_err(|error| outside("open the simulated queue")(error.into()))?)
            }
            None => None,
        };
        let place = |object: &mut serde_json::Value| {
            if let Some(queue) = &queue {
                queue.place(object);
            }
        };
        // Created last, so that the controller sees the autoscalers being added; their first reconcile is one period later.
        objects::create(&client, &chosen.documents, place).await?;
        let resource_metrics = |object: &serde_json::Value| {
            object.pointer("/spec/group").and_then(serde_json::Value::as_str) == Some("metrics.k8s.io")
        };
        let services = registrations.into_iter().filter(resource_metrics).collect();
        let targets = FaultTargets {
            client,
            nodes: Arc::clone(&nodes),
            services,
            custom_metrics: pod_metrics.as_ref().map(PodMetrics::script),
            pause: server.pause.clone(),
            lost: Mutex::default(),
        };
        let load = queue.as_ref().map(Queue::load);
        let load_and_faults =
            Arc::new(LoadAndFaults::new(Arc::clone(&nodes), workloads, load, targets, nodes_began));
        let (console_thread, console) = start_console(args, time, &load_and_faults).await?;
        Ok(Self {
            process,
            workloads: chosen,
            load_and_faults,
            ready,
            kubeconfig,
            metrics,
            operator,
            _queue: queue,
            _pod_metrics: pod_metrics,
            console,
            _console_thread: console_thread,
            _nodes: nodes,
            server,
            _running: running,
        })
    }

    /// Prints what runs and where.
    pub(super) fn introduce(&self, args: &UpArgs) {
        println!(
            "localkube ready in {} ms · {} · {} · roles: controller, metrics, operator\n",
            self.ready.as_millis(),
            plural(usize::from(args.nodes), "node"),
            plural(self.workloads.count(), "workload"),
        );
        let program = std::env::args().next().unwrap_or_else(|| "plimsoll".into());
        let file = self.kubeconfig.path().display();
        println!("  console     {}", self.console.url());
        println!("  kubectl     export KUBECONFIG={}", absolute(self.kubeconfig.path()));
        for (index, name) in self.workloads.autoscalers().iter().take(MAX_NAMES_SHOWN).enumerate() {
            let label = if index == 0 { "ask why" } else { "" };
            println!("  {label:<10}  {program} why {name} --kubeconfig {file}");
        }
        println!("  all of it   {program} get -A --kubeconfig {file}");
        if args.speed > 1 {
            println!("  time        {} times as fast; all times are the cluster's", args.speed);
        }
        println!("  stop        Ctrl-C (leaves nothing behind)\n");
    }

    /// Ends everything. The kubeconfig is removed with `self`.
    pub(super) async fn end(self) {
        // Roles that end still write to the API server.
        self.server.pause.set(false);
        self.console.stop().await;
        self.process.stop().await;
        self.operator.stop().await;
        self.metrics.stop().await;
    }
}

/// Starts the console on a thread of its own. It reads the cluster as any other client.
async fn start_console(
    args: &UpArgs,
    time: &ClusterTime,
    load_and_faults: &Arc<LoadAndFaults>,
) -> Result<(ProbeThread, RunningConsole), Failure> {
    let lab =
        LoadAndFaultsBackend { load_and_faults: Arc::clone(load_and_faults), runtime: Handle::current() };
    let place =
        ClusterArgs { kubeconfig: Some(args.kubeconfig.clone()), utc: true, ..ClusterArgs::default() };
    let options = ConsoleOptions {
        address: SocketAddr::from((Ipv4Addr::LOCALHOST, console::DEFAULT_PORT)),
        or_any_port: true,
        namespace: None,
        lab: Some(Box::new(lab)),
    };
    let (owner, thread) = ProbeThread::start("console")?;
    let clock = time.roles.clone();
    let started = async move {
        let client = ClusterClient::open(&place).await?.with_clock(clock);
        console::start(client, options).await
    };
    Ok((owner, thread.run(started).await?))
}

/// The objects that register the APIs of a server of this machine.
fn registrations_of(server: Option<&serve::Server>, service: &str) -> Vec<serde_json::Value> {
    let registered = |server: &serve::Server| {
        let behind = ServiceBackend::ThisMachine(server.port());
        let place = ServiceRef { namespace: "kube-system".into(), service: service.into(), behind };
        server.api_services(&place)
    };
    server.map(registered).unwrap_or_default()
}

fn absolute(path: &std::path::Path) -> String {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned()).display().to_string()
}
