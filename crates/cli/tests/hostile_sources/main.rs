//! Hostile sources against whole processes: `plimsoll operator` and `plimsoll metrics`, on localkube.
//!
//! Servers send huge, deep, slow, endless, compressed and malformed bytes, many at once. Meanwhile probes answer on both listeners, the
//! lease is held, memory stays under the bound of docs/security.md, and another object is served.
//!
//! `PLIMSOLL_SOAK=1` runs more servers for longer, and expects every probe within 100 ms. Without it the bound of probes is generous, because
//! other programs use the same machine.

#![allow(clippy::disallowed_methods, reason = "tests and benches measure with the clock of the machine")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, missing_docs)]

mod answers;
mod process;
mod servers;
mod test_cluster;
mod triggers;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use process::{Prober, Process};
use serde_json::Value;
use servers::{Server, http};
use test_cluster::TestCluster;

/// How often each hostile kubelet is asked at most.
const MAX_SCRAPES: usize = 6;
/// Everything here is done in much less, unless something hangs.
const PATIENCE: Duration = Duration::from_mins(8);

/// The bound of docs/security.md: what a process needs by itself, twice the budgets of bodies and trees, and a part for each source.
const PROCESS_KIB: u64 = 128 << 10;
const BUDGETS_KIB: u64 = (2 * (64 + 2 * 32)) << 10;
const SOURCE_KIB: u64 = 1 << 10;

fn memory_bound_kib(sources: usize) -> u64 {
    PROCESS_KIB + BUDGETS_KIB + SOURCE_KIB * sources as u64
}

fn soak() -> bool {
    std::env::var("PLIMSOLL_SOAK").is_ok_and(|value| value == "1")
}

/// How many servers there are of each kind, and how often each must have been asked.
fn amounts() -> (usize, usize) {
    if soak() { (8, 30) } else { (2, 2) }
}

fn probe_bound() -> Duration {
    if soak() { Duration::from_millis(100) } else { Duration::from_secs(5) }
}

/// Waits until every server was asked that often.
async fn all_asked(servers: &[Server], times: usize) {
    let waiting = async {
        for server in servers {
            server.asked(times).await;
        }
    };
    if tokio::time::timeout(PATIENCE, waiting).await.is_err() {
        let missing: Vec<_> =
            servers.iter().filter(|server| server.count() < times).map(Server::name).collect();
        panic!("not asked {times} times: {missing:?}");
    }
}

/// Asserts what holds for both processes, and prints what was measured.
fn assert_well(process: &Process, prober: Prober, sources: usize) {
    let peak = process.peak_memory_kib();
    let probes = prober.stop();
    let bound = memory_bound_kib(sources);
    println!(
        "{}: {sources} hostile sources; {} probes, slowest {:?}; peak memory {} MiB of {} MiB",
        process.name(),
        probes.count,
        probes.slowest,
        peak >> 10,
        bound >> 10
    );
    assert_eq!(probes.failures, [] as [String; 0], "{}", process.log_end());
    assert!(probes.count > 0, "no probe was sent");
    assert!(probes.slowest <= probe_bound(), "a probe took {:?}", probes.slowest);
    assert!(peak <= bound, "{} MiB are more than {} MiB", peak >> 10, bound >> 10);
    process.assert_no_panic();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn operator_serves_others_while_sources_are_hostile() {
    let (copies, times) = amounts();
    let cluster = TestCluster::start().await;
    cluster.define_scaled_objects().await;
    // A source whose value the test sets.
    let value = Arc::new(AtomicU64::new(0));
    let current = Arc::clone(&value);
    let healthy = Server::start("healthy", move || {
        http("application/json", format!("{{\"a\":{}}}", current.load(Ordering::SeqCst)).into_bytes())
    })
    .await;
    cluster.scaled_object("healthy", &triggers::json_value(&healthy.address()), "").await;
    let process = Process::start(
        &cluster,
        "operator",
        &[
            "--leader-elect",
            "--allow-source-cidr=127.0.0.0/8",
            "--metrics-service-bind-address=0",
            "--enable-webhook-patching=false",
            "--enable-apiservice-patching=false",
            "--source-deadline=5s",
            "--log-format=json",
        ],
    );
    let prober = process.probe();
    let lease = "/apis/coordination.k8s.io/v1/namespaces/default/leases/operator.keda.sh";
    let held = cluster
        .until("the lease is held", lease, |lease| text(lease, "/spec/holderIdentity").is_some())
        .await;

    let mut servers = Vec::new();
    for copy in 0..copies {
        for case in triggers::all() {
            let name = format!("{}-{copy}", case.name);
            let server = Server::hostile(&name, case.answer).await;
            let connection = (case.connection)(server.address());
            cluster.scaled_object(&name, &(case.trigger)(server.address()), &connection).await;
            servers.push(server);
        }
    }
    // The healthy object is scaled up and down again while all others are polled.
    let deployment = "/apis/apps/v1/namespaces/default/deployments/healthy";
    let replicas = |object: &Value| object.pointer("/spec/replicas").and_then(Value::as_i64);
    let scaled = async {
        let mut changes = 0;
        loop {
            value.store(10, Ordering::SeqCst);
            cluster.until("healthy is scaled up", deployment, |object| replicas(object) > Some(0)).await;
            value.store(0, Ordering::SeqCst);
            cluster
                .until("healthy is scaled to zero", deployment, |object| replicas(object) == Some(0))
                .await;
            changes += 1;
            if changes == 2 {
                break;
            }
        }
    };
    tokio::join!(scaled, all_asked(&servers, times));
    let renewed = cluster
        .until("the lease is renewed", lease, |lease| {
            text(lease, "/spec/renewTime") > text(&held, "/spec/renewTime")
        })
        .await;
    for field in ["/spec/holderIdentity", "/spec/leaseTransitions", "/spec/acquireTime"] {
        assert_eq!(renewed.pointer(field), held.pointer(field), "the lease was lost: {}", process.log_end());
    }
    assert_well(&process, prober, servers.len());
    process.stop();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn metrics_server_serves_others_while_sources_are_hostile() {
    let (copies, times) = amounts();
    let cluster = TestCluster::start().await;
    let healthy =
        Server::start("healthy", || http("text/plain; version=0.0.4", answers::kubelet_page())).await;
    cluster.node("healthy", healthy.port()).await;
    let mut servers = Vec::new();
    for copy in 0..copies {
        for (name, answer) in answers::kubelets() {
            let server = Server::hostile(&format!("{name}-{copy}"), answer).await;
            cluster.node(&format!("{name}-{copy}"), server.port()).await;
            servers.push(server);
        }
    }
    // Each rule lists its series at a hostile Prometheus.
    let prometheus = Server::hostile("prometheus", answers::endless_series()).await;
    let rules = cluster.write("rules.yaml", answers::RULES);
    let process = Process::start(
        &cluster,
        "metrics",
        &[
            "--deprecated-kubelet-completely-insecure",
            "--kubelet-use-node-status-port",
            "--kubelet-preferred-address-types=InternalIP",
            "--metric-resolution=10s",
            "--kubelet-request-timeout=5s",
            &format!("--config={}", rules.display()),
            &format!("--prometheus-url=http://{}", prometheus.address()),
            "--logging-format=json",
        ],
    );
    let prober = process.probe();
    cluster.register_metrics(process.secure_port()).await;
    let served = cluster
        .until("the healthy node is served", "/apis/metrics.k8s.io/v1beta1/nodes/healthy", |metrics| {
            text(metrics, "/usage/cpu").is_some()
        })
        .await;
    // Prometheus is asked once: its answer does not end before its timeout of two minutes. Kubelets are asked every ten seconds.
    all_asked(std::slice::from_ref(&prometheus), 1).await;
    all_asked(&servers, times.min(MAX_SCRAPES)).await;
    cluster
        .until("later samples are served", "/apis/metrics.k8s.io/v1beta1/nodes/healthy", |metrics| {
            text(metrics, "/timestamp") > text(&served, "/timestamp")
        })
        .await;
    assert_well(&process, prober, servers.len() + 1);
    process.stop();
}

fn text<'a>(object: &'a Value, pointer: &str) -> Option<&'a str> {
    object.pointer(pointer).and_then(Value::as_str).filter(|text| !text.is_empty())
}
