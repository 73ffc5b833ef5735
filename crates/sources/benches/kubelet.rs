//! Benchmark of resource metrics: time and memory of parsing kubelet responses, storing samples and listing usage.

#![allow(clippy::disallowed_methods, reason = "tests and benches measure with the clock of the machine")]
#![allow(clippy::print_stdout, clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

#[path = "../../engine/benches/table/mod.rs"]
#[allow(dead_code)]
mod table;

use std::fmt::Write as _;
use std::hint::black_box;
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::time::{Duration, Instant};

use api::provider::{Compat, Labels, ListFilter, ResourceMetricsProvider};
use api::selector::{FieldSelector, Selector};
use jiff::Timestamp;
use sources::inventory::{Inventory, Node, Pod};
use sources::kubelet::text::parse;
use sources::store::{KubeletProvider, Store, StoreSettings};

use table::Table;

/// The allocator of the measured binary.
#[cfg(feature = "jemalloc")]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// Limits in seconds: parsing a full node, listing all pods of 1,000 and 5,000 nodes, listing one Deployment of 100 pods;
/// in MiB: inventory and store of 5,000 × 30 pods.
const MAX_READ_SECONDS: f64 = 200e-6;
const MAX_TAKE_SECONDS: f64 = 200e-6;
const MAX_LIST_30_000_SECONDS: f64 = 30e-3;
const MAX_LIST_150_000_SECONDS: f64 = 200e-3;
const MAX_LIST_DEPLOYMENT_SECONDS: f64 = 1e-3;
const MAX_STORE_MIB: f64 = 80.0;

const PODS_PER_NODE: usize = 30;

fn main() -> ExitCode {
    if std::env::args().nth(1).as_deref() == Some("memory") {
        print!("{}", memory_here());
        return ExitCode::SUCCESS;
    }
    let mut table = Table::new("kubelets: 110 pods with 3 containers each");
    let full = answer(0, 110, &["app", "proxy", "sidecar"], 1000);
    let now = Timestamp::UNIX_EPOCH;
    table::note("answer", full.len() as f64 / 1024.0, |kib| format!("{kib:.1} KiB"));
    for (compat, what) in [(Compat::Better, "read"), (Compat::Strict, "read, strictly")] {
        let seconds = table::time(|| _ = black_box(parse(full.as_bytes(), now, compat)));
        table.row(what, seconds, MAX_READ_SECONDS, table::micros);
    }
    let (store, _) = cluster(1, 110);
    let scrape = parse(full.as_bytes(), now, Compat::Better).unwrap();
    let take = table::time(|| store.take("node-0000", scrape.clone(), now));
    table.row("take, known pods (and a copy of what was read)", take, MAX_TAKE_SECONDS, table::micros);

    for (nodes, limit) in [(1000, MAX_LIST_30_000_SECONDS), (5000, MAX_LIST_150_000_SECONDS)] {
        lists(&mut table, nodes, limit);
    }
    memory(&mut table);
    table.verdict()
}

fn lists(table: &mut Table, nodes: usize, limit: f64) {
    println!("\n{nodes} nodes with {PODS_PER_NODE} pods each");
    let started = Instant::now();
    let (_, provider) = cluster(nodes, PODS_PER_NODE);
    table::note("two scrapes of all, made, read and taken", started.elapsed().as_secs_f64(), millis);
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let count = |which: &ListFilter| runtime.block_on(provider.pods(which)).unwrap().len();
    let all = listing(None, "");
    assert_eq!(count(&all), nodes * PODS_PER_NODE);
    table.row("list of all pods", best(|| count(&all)), limit, millis);
    let some = listing(Some("namespace-07"), "app=web-7");
    let found = count(&some);
    let seconds = best(|| count(&some));
    table.row(
        &format!("list of {found} pods of one Deployment"),
        seconds,
        MAX_LIST_DEPLOYMENT_SECONDS,
        millis,
    );
    table::note("why pods are missing", best(|| provider.missing(20).pods.len()), millis);
}

fn memory(table: &mut Table) {
    // In a separate process, because memory freed before would be reused and not be counted.
    let program = std::env::current_exe().expect("this program");
    let output = Command::new(program).arg("memory").output().expect("this program runs");
    match String::from_utf8_lossy(&output.stdout).parse::<f64>() {
        Ok(bytes) => {
            let mib = bytes / f64::from(1 << 20);
            table.row("memory of inventory and store, 5,000 × 30", mib, MAX_STORE_MIB, |mib| {
                format!("{mib:.1} MiB")
            });
            table::note("  per pod", bytes / 150_000.0, |bytes| format!("{bytes:.0} B"));
        }
        Err(error) => table.not_measured("memory", &error.to_string()),
    }
}

/// Bytes that 5,000 nodes with 30 pods each take.
fn memory_here() -> u64 {
    let before = resident();
    let kept = cluster(5000, PODS_PER_NODE);
    let after = resident();
    black_box(&kept);
    after - before
}

/// Resident memory in bytes.
fn resident() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages: u64 = statm.split_whitespace().nth(1).and_then(|pages| pages.parse().ok()).unwrap_or(0);
    pages * 4096
}

/// A complete cluster: its pods belong to Deployments of 100 in 20 namespaces.
fn cluster(nodes: usize, pods: usize) -> (Store, KubeletProvider) {
    let inventory = Inventory::new();
    let settings = StoreSettings {
        resolution: Duration::from_secs(15),
        keep: Duration::from_mins(1),
        compat: Compat::Better,
    };
    let store = Store::new(settings, inventory.clone());
    for node in 0..nodes {
        inventory.set_node(Node { name: node_name(node).into(), ..Node::default() });
        for pod in node * pods..(node + 1) * pods {
            let app = format!("web-{}", pod / 100 % 1000);
            let hash = format!("{:010x}", pod / 100);
            let labels = [("app", app.as_str()), ("pod-template-hash", &hash), ("team", "payments")];
            let labels = Arc::new(labels.into_iter().collect::<Labels>());
            inventory.set_pod(Pod { namespace: namespace(pod).into(), name: pod_name(pod).into(), labels });
        }
    }
    for second in [1000, 1015] {
        for node in 0..nodes {
            let text = answer(node, pods, &["app"], second);
            let now = Timestamp::from_second(second).unwrap();
            store.take(&node_name(node), parse(text.as_bytes(), now, Compat::Better).unwrap(), now);
        }
    }
    (store.clone(), KubeletProvider::new(store, inventory, Selector::everything()))
}

/// A kubelet response: by family, then by container, namespace and pod.
fn answer(node: usize, pods: usize, containers: &[&str], second: i64) -> String {
    let mut text = String::new();
    let mut all: Vec<(String, String)> =
        (node * pods..(node + 1) * pods).map(|pod| (namespace(pod), pod_name(pod))).collect();
    all.sort();
    let time = second * 1000 + 125;
    let families = [
        ("container_cpu_usage_seconds_total", format!("{}.710169 {time}", second * 3)),
        ("container_memory_working_set_bytes", format!("1.253376e+07 {time}")),
        ("container_start_time_seconds", "1.633252712e+01".to_owned()),
        ("container_swap_usage_bytes", format!("0 {time}")),
    ];
    for (family, value) in &families {
        write!(text, "# HELP {family} [STABLE] Words about it\n# TYPE {family} gauge\n").unwrap();
        for container in containers {
            for (namespace, pod) in &all {
                let labels = format!(r#"container="{container}",namespace="{namespace}",pod="{pod}""#);
                writeln!(text, "{family}{{{labels}}} {value}").unwrap();
            }
        }
    }
    write!(
        text,
        "node_cpu_usage_seconds_total {second}.35491 {time}\nnode_memory_working_set_bytes 1.6e+09 {time}\n"
    )
    .unwrap();
    for family in ["pod_cpu_usage_seconds_total", "pod_memory_working_set_bytes"] {
        for (namespace, pod) in &all {
            writeln!(text, r#"{family}{{namespace="{namespace}",pod="{pod}"}} 4.67812 {time}"#).unwrap();
        }
    }
    text.push_str("resource_scrape_error 0\n");
    text
}

fn node_name(node: usize) -> String {
    format!("node-{node:04}")
}

fn namespace(pod: usize) -> String {
    format!("namespace-{:02}", pod / 100 % 20)
}

fn pod_name(pod: usize) -> String {
    let deployment = pod / 100;
    format!("web-{}-{deployment:010x}-{:05x}", deployment % 1000, pod * 7919 % 1_048_576)
}

fn listing(namespace: Option<&str>, labels: &str) -> ListFilter {
    ListFilter {
        namespace: namespace.map(str::to_owned),
        labels: Selector::parse(labels).unwrap(),
        fields: FieldSelector::parse("").unwrap(),
    }
}

/// The best of several runs, because other load on a shared machine only makes them slower.
fn best(mut work: impl FnMut() -> usize) -> f64 {
    let once = |_| {
        let started = Instant::now();
        black_box(work());
        started.elapsed().as_secs_f64()
    };
    (0..15).map(once).fold(f64::INFINITY, f64::min)
}

fn millis(seconds: f64) -> String {
    format!("{:.2} ms", seconds * 1e3)
}
