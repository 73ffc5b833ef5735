//! Hostile sources against whole processes: `plimsoll operator` and `plimsoll metrics`, on localkube.
//!
//! Servers send huge, deep, slow, endless, compressed and malformed bytes, many at once, and clients without credentials send
//! AdmissionReviews that are slow, large or full of values. Meanwhile probes answer on both listeners, the lease is held, memory stays
//! under the bound of docs/security.md, and another object, reviews of the API server and other requests are served.
//!
//! `PLIMSOLL_SOAK=1` runs more servers for longer, and expects every probe within 100 ms. Without it the bound of probes is generous, because
//! other programs use the same machine. A slow probe fails the test, and its message has the steal time of the virtual machine meanwhile.

#![allow(clippy::disallowed_methods, reason = "tests and benches measure with the clock of the machine")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, missing_docs)]

mod answers;
mod process;
mod reviews;
mod servers;
mod test_cluster;
mod triggers;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use process::{Prober, Process};
use reviews::ApiServer;
use serde_json::Value;
use servers::{Server, http};
use test_cluster::TestCluster;

/// Maximum number of scrapes of each hostile kubelet.
const MAX_SCRAPES: usize = 6;
/// The timeout of a wait, which is much longer than any wait here takes.
const WAIT_TIMEOUT: Duration = Duration::from_mins(8);

/// The bound of docs/security.md: what a process needs by itself, twice the budgets of bodies and trees, and a part for each source.
const PROCESS_KIB: u64 = 128 << 10;
const BUDGETS_KIB: u64 = (2 * (64 + 2 * 32)) << 10;
const SOURCE_KIB: u64 = 1 << 10;
/// What AdmissionReviews add to it.
const REVIEWS_KIB: u64 = 200 << 10;

/// The path of the operator's lease.
const LEASE: &str = "/apis/coordination.k8s.io/v1/namespaces/default/leases/operator.keda.sh";

/// The flags of an operator that serves and polls on loopback.
const OPERATOR_FLAGS: [&str; 7] = [
    "--leader-elect",
    "--allow-source-cidr=127.0.0.0/8",
    "--metrics-service-bind-address=0",
    "--enable-webhook-patching=false",
    "--enable-apiservice-patching=false",
    "--source-deadline=5s",
    "--log-format=json",
];

fn memory_bound_kib(sources: usize) -> u64 {
    PROCESS_KIB + BUDGETS_KIB + SOURCE_KIB * sources as u64
}

fn soak() -> bool {
    std::env::var("PLIMSOLL_SOAK").is_ok_and(|value| value == "1")
}

/// The number of servers of each kind, and the number of queries that each must receive.
fn amounts() -> (usize, usize) {
    if soak() { (8, 30) } else { (2, 2) }
}

fn probe_bound() -> Duration {
    if soak() { Duration::from_millis(100) } else { Duration::from_secs(5) }
}

/// The maximum duration of a review of the API server.
fn review_bound() -> Duration {
    if soak() { Duration::from_secs(3) } else { Duration::from_secs(10) }
}

/// The number of connections of an attacker that sends without a pause, and the number of answers that it must get.
fn attacks() -> (usize, usize) {
    if soak() { (8, 30) } else { (4, 2) }
}

/// Waits until every server was queried that often.
async fn all_queried(servers: &[Server], times: usize) {
    let waiting = async {
        for server in servers {
            server.until_queried(times).await;
        }
    };
    if tokio::time::timeout(WAIT_TIMEOUT, waiting).await.is_err() {
        let missing: Vec<_> =
            servers.iter().filter(|server| server.count() < times).map(Server::name).collect();
        panic!("not queried {times} times: {missing:?}");
    }
}

/// Asserts the bounds of both processes, and prints the measured values.
fn assert_well(process: &Process, prober: Prober, attackers: &str, bound: u64) {
    let peak = process.peak_memory_kib();
    let probes = prober.stop();
    println!(
        "{}: {attackers}; {} probes, slowest {:?}; peak memory {} MiB of {} MiB",
        process.name(),
        probes.count,
        probes.slowest,
        peak >> 10,
        bound >> 10
    );
    assert_eq!(probes.failures, [] as [String; 0], "{}", process.log_end());
    assert!(probes.count > 0, "no probe was sent");
    assert_eq!(probes.slow, [] as [String; 0], "slower than {:?}", probe_bound());
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
    let process = Process::start(&cluster, "operator", &OPERATOR_FLAGS);
    let prober = process.probe();
    let held = held_lease(&cluster).await;

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
    tokio::join!(scaled, all_queried(&servers, times));
    assert_lease_kept(&cluster, &held, &process).await;
    let bound = memory_bound_kib(servers.len());
    assert_well(&process, prober, &format!("{} hostile sources", servers.len()), bound);
    process.stop();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn operator_serves_others_while_reviews_are_hostile() {
    let (connections, times) = attacks();
    let cluster = TestCluster::start().await;
    cluster.define_scaled_objects().await;
    let healthy = Server::start("healthy", || http("application/json", b"{\"a\":7}".to_vec())).await;
    cluster.scaled_object("healthy", &triggers::json_value(&healthy.address()), "").await;
    let process = Process::start(&cluster, "operator", &OPERATOR_FLAGS);
    let prober = process.probe();
    let held = held_lease(&cluster).await;
    // Requests for external metrics come through the API server, as those of HPAs do.
    cluster.register_api("external.metrics.k8s.io", process.secure_address().port()).await;
    let metric = "/apis/external.metrics.k8s.io/v1beta1/namespaces/default/s0-metric-api-a\
                  ?labelSelector=scaledobject.keda.sh%2Fname%3Dhealthy";
    let has_value = |list: &Value| text(list, "/items/0/value").is_some();
    cluster.until("the metric is served", metric, has_value).await;
    let api_server = ApiServer::start(&process);
    let before = process.peak_memory_kib();

    let attackers = reviews::attackers(&process, connections);
    for attacker in &attackers {
        let codes = attacker.answered(times).await;
        println!("{}: answers by status code {codes:?}", attacker.name);
        cluster.until("the metric is served", metric, has_value).await;
    }
    // The attacks continue until the lease is renewed once more.
    assert_lease_kept(&cluster, &held, &process).await;
    let reviews = api_server.stop().await;
    drop(attackers);
    println!("{} reviews of the API server, slowest {:?}", reviews.count, reviews.slowest);
    assert_eq!(reviews.failures, [] as [String; 0], "{}", process.log_end());
    assert!(reviews.count > 0, "no review was sent");
    assert!(reviews.slowest <= review_bound(), "a review took {:?}", reviews.slowest);
    let more = process.peak_memory_kib() - before;
    println!("reviews took {} MiB of {} MiB", more >> 10, REVIEWS_KIB >> 10);
    assert!(more <= REVIEWS_KIB, "{more} KiB are more than {REVIEWS_KIB} KiB");
    assert_well(&process, prober, "hostile reviews", memory_bound_kib(1) + REVIEWS_KIB);
    process.stop();
}

/// Waits until the operator holds the lease.
async fn held_lease(cluster: &TestCluster) -> Value {
    cluster.until("the lease is held", LEASE, |lease| text(lease, "/spec/holderIdentity").is_some()).await
}

/// Waits until the lease is renewed, and asserts that it was held all the time.
async fn assert_lease_kept(cluster: &TestCluster, held: &Value, process: &Process) {
    let renewed = cluster
        .until("the lease is renewed", LEASE, |lease| {
            text(lease, "/spec/renewTime") > text(held, "/spec/renewTime")
        })
        .await;
    for field in ["/spec/holderIdentity", "/spec/leaseTransitions", "/spec/acquireTime"] {
        assert_eq!(renewed.pointer(field), held.pointer(field), "the lease was lost: {}", process.log_end());
    }
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
    cluster.register_api("metrics.k8s.io", process.secure_address().port()).await;
    let served = cluster
        .until("the healthy node is served", "/apis/metrics.k8s.io/v1beta1/nodes/healthy", |metrics| {
            text(metrics, "/usage/cpu").is_some()
        })
        .await;
    // Prometheus is queried once: its response does not end before its timeout of two minutes. Kubelets are scraped every ten seconds.
    all_queried(std::slice::from_ref(&prometheus), 1).await;
    all_queried(&servers, times.min(MAX_SCRAPES)).await;
    cluster
        .until("later samples are served", "/apis/metrics.k8s.io/v1beta1/nodes/healthy", |metrics| {
            text(metrics, "/timestamp") > text(&served, "/timestamp")
        })
        .await;
    let count = servers.len() + 1;
    assert_well(&process, prober, &format!("{count} hostile sources"), memory_bound_kib(count));
    process.stop();
}

fn text<'a>(object: &'a Value, pointer: &str) -> Option<&'a str> {
    object.pointer(pointer).and_then(Value::as_str).filter(|text| !text.is_empty())
}
