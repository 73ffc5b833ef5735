//! A rolling update of the metrics server from an older version of the binary to this one, and back, while load moves.
//!
//! As in the chart, a replica of the other version is ready before one of the two ends, so that each version serves beside the other in
//! both directions. On the real cluster the replicas share the nodes, and serve samples that the other version has scraped. The addresses
//! of replicas cannot be stored in localkube (see `replicas`), so that there each replica scrapes all nodes, as without `--shares`.

use std::cell::Cell;
use std::net::Ipv4Addr;
use std::path::Path;
use std::sync::{Arc, Mutex};

use locks::MutexExt as _;
use serde_json::{Value, json};
use testbed::etcd::{self, Etcd};
use testbed::harness::Failure;
use testbed::kubelets::Kubelets;
use testbed::program::Program;
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use crate::env::{Scaler, TestNamespace, alone_on_both, direct, free_port, milli, peers, program, until};
use crate::faults::admin;
use crate::replicas::{NODES, announce, node, nodes, replica, token};
use crate::shared::outage_watch::{DEFAULT_SYNC_PERIOD, OutageWatch};
use crate::shared::program::old_program;
use crate::shared::replica_watch::ReplicaWatch;
use crate::switch::API_SERVICES;

/// The target of the HPAs in percent of the requests, which are one core for each pod.
const TARGET: u64 = 10;
/// What each pod of `web` uses in turn, in thousandths of a core, and the replicas that are right for it: utilization is rounded down, so
/// that 205 of 1000 are 20 %, which is twice the target for each of the [`NODES`] pods.
const LIGHT: (u64, i64) = (205, 12);
const HEAVY: (u64, i64) = (505, 30);
/// The same for `steady`, whose load does not change.
const STEADY: (u64, i64) = (155, 9);
/// Changes of the load that the HPA follows between two replacements. The second has certainly begun after the first of them.
const CHANGES: u64 = 2;
/// Scrapes of each node in which the replicas are seen to share them, and scrapes of a node that two replicas would exceed.
const SCRAPES: u64 = 2;
const MAX_SHARED_SCRAPES: u64 = 3;

/// The Service of the replicas: a new connection leads to the replica that was added last. A connection lives until either side closes
/// it, as behind kube-proxy.
struct ReplicaService {
    port: u16,
    replicas: Arc<Mutex<Vec<u16>>>,
    task: JoinHandle<()>,
}

impl ReplicaService {
    async fn start() -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let replicas = Arc::<Mutex<Vec<u16>>>::default();
        let known = Arc::clone(&replicas);
        let task = tokio::spawn(async move {
            while let Ok((mut client, _)) = listener.accept().await {
                let newest = known.locked().last().copied();
                let Some(port) = newest else { continue };
                tokio::spawn(async move {
                    if let Ok(mut server) = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await {
                        // An error is the end of a connection, too.
                        let _ = copy_bidirectional(&mut client, &mut server).await;
                    }
                });
            }
        });
        Self { port, replicas, task }
    }

    fn add(&self, port: u16) {
        self.replicas.locked().push(port);
    }

    fn remove(&self, port: u16) {
        self.replicas.locked().retain(|known| *known != port);
    }
}

impl Drop for ReplicaService {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// A running replica.
struct Replica {
    name: String,
    port: u16,
    process: Program,
}

/// What the replicas of a test have in common.
struct MetricsDeployment<'a> {
    ns: &'a TestNamespace,
    kubelets: Kubelets,
    /// With which the replicas authenticate to each other; none on localkube.
    token: Option<String>,
    service: ReplicaService,
    /// Replicas that were started.
    started: Cell<usize>,
    /// Changes of the load that were followed.
    followed: Cell<u64>,
}

impl<'a> MetricsDeployment<'a> {
    async fn new(ns: &'a TestNamespace) -> Self {
        let shares = ns.access().is_some();
        let network = if shares { 84 } else { 85 };
        Self {
            ns,
            kubelets: nodes(ns, network, &[("web", LIGHT.0), ("steady", STEADY.0)]).await,
            token: if shares { Some(token(ns).await) } else { None },
            service: ReplicaService::start().await,
            started: Cell::default(),
            followed: Cell::default(),
        }
    }

    /// Starts a replica, and returns when requests are led to it.
    async fn start(&self, program: &Path) -> Replica {
        let (name, port) = (format!("metrics-{}", self.started.get()), free_port());
        self.started.set(self.started.get() + 1);
        if self.token.is_some() {
            announce(self.ns, &name, port).await;
        }
        let own = (name.as_str(), port);
        let process = replica(self.ns, &self.kubelets, program, own, self.token.as_deref()).await;
        self.service.add(port);
        Replica { name, port, process }
    }

    /// Ends a replica in order, as Kubernetes does: requests are no longer led to it, and then it is told to end.
    async fn end(&self, mut replica: Replica) {
        self.service.remove(replica.port);
        if let Some(access) = self.ns.access() {
            let key = etcd::key("endpointslices", &self.ns.namespace, &replica.name);
            assert!(Etcd::of(access).delete(&key).await.unwrap(), "{key} was not stored");
        }
        replica.process.terminate();
        let mut code = None;
        self.ns
            .until("the end of a replica", async || {
                code = replica.process.ended();
                code.map(drop).ok_or(())
            })
            .await;
        let log = replica.process.log();
        assert_eq!(code, Some(0), "{log}");
        assert!(!log.contains("panicked"), "{log}");
    }

    /// Replaces all replicas by another version, one at a time.
    async fn replace(&self, program: &Path, replicas: &mut Vec<Replica>) {
        for _ in 0..replicas.len() {
            let successor = self.start(program).await;
            let replaced = replicas.remove(0);
            replicas.push(successor);
            self.end(replaced).await;
            let followed = self.followed.get();
            for replica in &*replicas {
                self.until_complete(replica).await;
            }
            if self.token.is_some() {
                self.until_shared().await;
            }
            self.ns
                .until("changes of the load that are followed", async || {
                    let now = self.followed.get();
                    if now >= followed + CHANGES { Ok(()) } else { Err(now - followed) }
                })
                .await;
        }
    }

    /// Waits until a replica serves all pods. A value must be right as soon as it is served.
    async fn until_complete(&self, replica: &Replica) {
        let path = format!("/apis/metrics.k8s.io/v1beta1/namespaces/{}/pods", self.ns.namespace);
        self.ns
            .until(&format!("all pods from {}", replica.name), async || {
                let response = direct(replica.port, &admin(self.ns), &path).await;
                let list = response.map(|response| response.json()).unwrap_or_default();
                let pods = list["items"].as_array().cloned().unwrap_or_default();
                for pod in &pods {
                    assert!(is_right(pod), "{} on {}: {pod}", replica.name, self.ns.cluster);
                }
                if pods.len() == 2 * NODES { Ok(()) } else { Err((pods.len(), replica.process.log())) }
            })
            .await;
    }

    /// Waits until each node is scraped by one replica only. A replica that gets no response of another for a while scrapes its nodes too,
    /// which may happen on a busy machine and must end.
    async fn until_shared(&self) {
        let scrapes = || -> Vec<u64> {
            (0..NODES).map(|number| self.kubelets.requests(&node(self.ns, number))).collect()
        };
        self.ns
            .until("nodes that are shared", async || {
                let before = scrapes();
                let since = || -> Vec<u64> {
                    scrapes().iter().zip(&before).map(|(now, before)| now - before).collect()
                };
                until("scrapes of each node", async || {
                    let counts = since();
                    if counts.iter().all(|count| *count >= SCRAPES) { Ok(()) } else { Err(counts) }
                })
                .await;
                let counts = since();
                if counts.iter().all(|count| *count <= MAX_SHARED_SCRAPES) { Ok(()) } else { Err(counts) }
            })
            .await;
    }

    /// Changes the load of `web` again and again until `done`, each time when the HPA has followed.
    async fn change_load(&self, web: &ReplicaWatch, done: &Cell<bool>) {
        while !done.get() {
            for (used, replicas) in [HEAVY, LIGHT] {
                for number in 0..NODES {
                    self.kubelets.set_cpu(&self.ns.namespace, &format!("web-{number}"), "app", used);
                }
                self.ns
                    .until(&format!("{replicas} replicas for {used}m"), async || {
                        if web.last().replicas == replicas { Ok(()) } else { Err(web.counts()) }
                    })
                    .await;
                self.followed.set(self.followed.get() + 1);
            }
        }
    }
}

/// Whether a pod has a value that it could have had: that of `steady` does not change, and a rate over a change of the load of `web` lies
/// between both.
fn is_right(pod: &Value) -> bool {
    let used = milli(&pod["containers"][0]["usage"]["cpu"]);
    let (light, heavy) = (LIGHT.0 as i64, HEAVY.0 as i64);
    if pod["metadata"]["name"].as_str().is_some_and(|name| name.starts_with("steady")) {
        used == Some(STEADY.0 as i64)
    } else {
        used.is_some_and(|used| (light..=heavy).contains(&used))
    }
}

/// Leads `metrics.k8s.io` to a Service.
async fn lead(ns: &TestNamespace, service: &Value) {
    for version in ["v1beta1", "v1"] {
        let path = format!("{API_SERVICES}/{version}.metrics.k8s.io");
        ns.patch(&path, &json!({"spec": {"service": service}})).await;
    }
}

#[test]
#[ignore = "builds an older version: make test-upgrade"]
fn rolling_update_and_rollback_serve_all_metrics() -> Result<(), Failure> {
    if peers() {
        return Ok(());
    }
    alone_on_both(async |ns| {
        let (old, new) = (old_program(), program());
        let deployment = MetricsDeployment::new(&ns).await;
        let mut replicas = vec![deployment.start(&old).await, deployment.start(&old).await];
        let port = deployment.service.port;
        let service = json!({"metadata": {"name": "replicas"}, "spec": {
            "type": "ExternalName", "externalName": "localhost", "ports": [{"port": port}]
        }});
        ns.create("/api/v1/namespaces/{ns}/services", &service).await;
        let api_service = ns.read(&format!("{API_SERVICES}/v1beta1.metrics.k8s.io")).await;
        let before = api_service["spec"]["service"].clone();
        lead(&ns, &json!({"name": "replicas", "namespace": ns.namespace, "port": port})).await;
        let pods = "/apis/metrics.k8s.io/v1beta1/namespaces/{ns}/pods";
        let all = |body: &Value| body["items"].as_array().is_some_and(|pods| pods.len() == 2 * NODES);
        ns.until_answer(pods, |_, body| all(body)).await;

        let behavior = json!({
            "scaleUp": {"policies": [{"type": "Pods", "value": 100, "periodSeconds": 1}]},
            "scaleDown": {"stabilizationWindowSeconds": 0}
        });
        let target = json!({"type": "Utilization", "averageUtilization": TARGET});
        let cpu = json!({"type": "Resource", "resource": {"name": "cpu", "target": target}});
        for (name, (_, replicas)) in [("web", LIGHT), ("steady", STEADY)] {
            ns.deployment(name, replicas as usize).await;
            let spec = json!({"minReplicas": 1, "maxReplicas": 60, "metrics": [cpu], "behavior": behavior});
            ns.hpa_with(name, spec).await;
        }
        let watch = async |name: &str| ReplicaWatch::start(&ns.client, &ns.namespace, name).await;
        let (web, steady) = (watch("web").await, watch("steady").await);
        let _scaler = Scaler::start(&ns).await;
        for name in ["web", "steady"] {
            ns.until_condition(name, "ScalingActive", "True ValidMetricFound").await;
        }
        let outages =
            ["web", "steady"].map(|name| (name, OutageWatch::start(&ns.client, &ns.namespace, name)));

        let done = Cell::new(false);
        let update = async {
            deployment.replace(new, &mut replicas).await;
            deployment.replace(&old, &mut replicas).await;
            done.set(true);
        };
        tokio::join!(deployment.change_load(&web, &done), update);

        for (name, outage) in outages {
            let longest = outage.longest();
            println!("{}: {name}: metrics could not be read for at most {longest:.1?}", ns.cluster);
            assert!(longest < DEFAULT_SYNC_PERIOD, "on {}: {name}: {longest:?}", ns.cluster);
        }
        let counts = web.counts();
        let right = counts.iter().all(|count| (LIGHT.1..=HEAVY.1).contains(count));
        assert!(right, "on {}: {counts:?}", ns.cluster);
        assert_eq!(steady.counts(), [STEADY.1], "on {}", ns.cluster);
        lead(&ns, &before).await;
    })
}
