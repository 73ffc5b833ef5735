//! Measures the cost of scraping: simulated kubelets in one process, the scraper in another.
//!
//! ```text
//! cargo run --example kubelets -- serve FOLDER NODES PODS     kubelets; writes its CA to FOLDER
//! cargo run --example kubelets -- scrape FOLDER NODES PODS    scrapes them for two minutes and prints the cost
//! ```
//!
//! Every node has its own loopback address and certificate, so that each has its own connection, as in a cluster.

#![allow(clippy::disallowed_methods, reason = "tests and benches measure with the clock of the machine")]

use std::convert::Infallible;
use std::fmt::Write as _;
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use api::provider::Compat;
use bytes::Bytes;
use http_body_util::Full;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::ServerConfig;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use sources::inventory::{Inventory, Node, Pod};
use sources::kubelet::{address, client, scraper, trust};
use sources::store::{self, Store};
use tokio::net::TcpListener;

#[cfg(feature = "jemalloc")]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

const PORT: u16 = 20250;
const PERIOD: Duration = Duration::from_secs(15);

type Anything<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

#[tokio::main(worker_threads = 2)]
async fn main() -> Anything<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [mode, folder, nodes, pods] = arguments.as_slice() else {
        return Err("serve|scrape FOLDER NODES PODS".into());
    };
    let (folder, nodes, pods) = (Path::new(folder), nodes.parse()?, pods.parse()?);
    match &**mode {
        "serve" => serve(folder, nodes, pods).await,
        "scrape" => scrape(folder, nodes, pods).await,
        _ => Err("serve or scrape".into()),
    }
}

fn address(node: usize) -> Ipv4Addr {
    Ipv4Addr::new(127, 1 + (node / 62_500) as u8, (node / 250 % 250) as u8, (1 + node % 250) as u8)
}

/// Response of a kubelet of Kubernetes 1.36. Containers are measured every ten seconds, each at its own time.
fn metrics(node: usize, pods: usize, now: Duration) -> String {
    let mut out = String::with_capacity(pods * 700);
    let families: [(&str, u64); 4] = [
        ("container_cpu_usage_seconds_total", 1),
        ("container_memory_working_set_bytes", 1 << 20),
        ("container_start_time_seconds", 0),
        ("container_swap_usage_bytes", 0),
    ];
    for (family, unit) in families {
        let _ = writeln!(out, "# HELP {family} [STABLE] Something about a container\n# TYPE {family} gauge");
        for pod in 0..pods {
            let measured = (now.as_millis() as u64 - pod as u64 * 331) / 10_000 * 10_000 + pod as u64 * 331;
            let value =
                if unit == 0 { 1_700_000_000.0 } else { unit as f64 * (measured % 100_000_000) as f64 / 1e5 };
            let _ = write!(
                out,
                "{family}{{container=\"app\",namespace=\"team-{}\",pod=\"web-{node}-{pod}\"}} ",
                pod % 10
            );
            let _ = if family.ends_with("_time_seconds") {
                writeln!(out, "{value:e}")
            } else {
                writeln!(out, "{value:e} {measured}")
            };
        }
    }
    for family in ["pod_cpu_usage_seconds_total", "pod_memory_working_set_bytes", "pod_swap_usage_bytes"] {
        let _ = writeln!(out, "# HELP {family} [STABLE] Something about a pod\n# TYPE {family} gauge");
        for pod in 0..pods {
            let at = now.as_millis();
            let _ = writeln!(
                out,
                "{family}{{namespace=\"team-{}\",pod=\"web-{node}-{pod}\"}} 1.25e+07 {at}",
                pod % 10
            );
        }
    }
    let at = now.as_millis() / 10_000 * 10_000;
    let _ = writeln!(out, "node_cpu_usage_seconds_total {} {at}", at % 100_000_000 / 1000);
    let _ = writeln!(out, "node_memory_working_set_bytes 1.5e+09 {at}");
    let _ = writeln!(out, "resource_scrape_error 0\nscrape_error 0");
    out
}

async fn serve(folder: &Path, nodes: usize, pods: usize) -> Anything<()> {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate()?;
    std::fs::create_dir_all(folder)?;
    std::fs::write(folder.join("authority.pem"), params.self_signed(&key)?.pem())?;
    let issuer = Issuer::new(params, key);
    let own = KeyPair::generate()?;
    let provider = Arc::new(aws_lc_rs::default_provider());
    let listener = TcpListener::bind(("0.0.0.0", PORT)).await?;
    println!("{nodes} kubelets with {pods} pods each");
    loop {
        let (tcp, _) = listener.accept().await?;
        let IpAddr::V4(to) = tcp.local_addr()?.ip() else { continue };
        let node = (0..nodes).find(|&node| address(node) == to).unwrap_or(0);
        let certificate = CertificateParams::new(vec![to.to_string()])?.signed_by(&own, &issuer)?;
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(own.serialize_der()));
        let config = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], key)?;
        tokio::spawn(async move {
            let Ok(stream) = tokio_rustls::TlsAcceptor::from(Arc::new(config)).accept(tcp).await else {
                return;
            };
            let service = service_fn(move |_| async move {
                let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
                Ok::<_, Infallible>(http::Response::new(Full::new(Bytes::from(metrics(node, pods, now)))))
            });
            let _ = hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(stream), service)
                .await;
        });
    }
}

async fn scrape(folder: &Path, nodes: usize, pods: usize) -> Anything<()> {
    let inventory = Inventory::new();
    for node in 0..nodes {
        for pod in 0..pods {
            inventory.set_pod(Pod {
                namespace: format!("team-{}", pod % 10).into(),
                name: format!("web-{node}-{pod}").into(),
                labels: Arc::new([("app", "web")].into_iter().collect()),
            });
        }
        let addresses = vec![("InternalIP".into(), address(node).to_string().into())];
        let name = format!("node-{node}").into();
        inventory.set_node(Node { name, addresses, port: PORT, ready: true, ..Node::default() });
    }
    inventory.nodes_complete();
    inventory.pods_complete();
    let compat = if std::env::var_os("STRICT").is_some() { Compat::Strict } else { Compat::Better };
    let store =
        Store::new(store::StoreSettings { resolution: PERIOD, keep: PERIOD * 4, compat }, inventory.clone());
    let settings = scraper::ScraperSettings {
        resolution: PERIOD,
        parallel: 64,
        compat,
        address: address::AddressRules { status_port: true, ..address::AddressRules::default() },
        client: client::KubeletClientSettings::default(),
        trust: trust::TrustSettings {
            authority: trust::TrustedAuthority::Ca(trust::Pem::File(folder.join("authority.pem"))),
            certificate: None,
            token: None,
            compat,
        },
        clock: sources::Clock::system(),
    };
    let scraper = scraper::Scraper::new(settings, inventory, Arc::new(store.clone()))?;
    let report = scraper.report();
    let (stop, stopped) = tokio::sync::watch::channel(false);
    println!("before: {:.1} MiB", resident());
    let run = tokio::spawn(scraper.run(stopped));
    let mut before = (0.0, 0);
    for round in 0..9 {
        tokio::time::sleep(PERIOD).await;
        let (counters, points) = (report.counters(), store.points());
        let now = (processor(), counters.good + counters.failed);
        let (used, requested) = (now.0 - before.0, now.1 - before.1);
        println!(
            "{:>4} s  {:6.1} MiB  cpu {:5.2} % of a core, {:4.0} µs per scrape  {requested} scrapes, {} failed  {points:?}",
            (round + 1) * PERIOD.as_secs(),
            resident(),
            100.0 * used / PERIOD.as_secs_f64(),
            1e6 * used / requested.max(1) as f64,
            counters.failed,
        );
        before = now;
    }
    let counters = report.counters();
    println!("lateness: {:?}", counters.lateness.cumulative().collect::<Vec<_>>());
    println!("durations: {:?}", counters.durations.cumulative().collect::<Vec<_>>());
    for line in report.problems().lines() {
        println!("{line}");
    }
    stop.send_replace(true);
    run.await?;
    Ok(())
}

/// Resident memory in MiB.
fn resident() -> f64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default();
    line.trim().trim_end_matches(" kB").parse::<f64>().unwrap_or(0.0) / 1024.0
}

/// CPU time in seconds.
fn processor() -> f64 {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let rest = text.rsplit(')').next().unwrap_or_default();
    let field =
        |at| rest.split_whitespace().nth(at).and_then(|ticks| ticks.parse::<f64>().ok()).unwrap_or(0.0);
    (field(11) + field(12)) / 100.0
}
