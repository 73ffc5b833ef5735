//! How long lists of all pods take over TLS, and how much memory: `lists [PODS] [TIMES]`.

#![allow(clippy::disallowed_methods, reason = "tests and benches measure with the clock of the machine")]
#![allow(clippy::unwrap_used, clippy::print_stdout, missing_docs)]

use std::sync::Arc;
use std::time::{Duration, Instant};

use api::provider::{
    ContainerUsage, Labels, ListFilter, Lookup, NodeUsage, ObjectChunk, ObjectChunks, PodUsage,
    ProviderFuture, ResourceMetricsProvider,
};
use bytes::Bytes;
use http::{Request, Version};
use http_body_util::{BodyExt as _, Empty};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use jiff::Timestamp;
use quantity::{Format, Quantity};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use serve::metrics::MetricsApiSettings;
use serve::{Access, App, Server, ServerOptions};

const PODS: &str = "/apis/metrics.k8s.io/v1beta1/pods";

/// Ten pods share their labels, as those of a Deployment.
#[derive(Clone)]
struct Made(Arc<PodSet>);

struct PodSet {
    names: Vec<(Arc<str>, Arc<str>)>,
    labels: Vec<Arc<Labels>>,
    cpu: Arc<str>,
    memory: Arc<str>,
    container: Arc<str>,
}

impl Made {
    fn new(count: usize) -> Self {
        let namespaces: Vec<Arc<str>> =
            (0..=count / 300).map(|n| format!("namespace-{n:04}").into()).collect();
        let name = |n: usize| format!("deployment-{:05}-7d4b9c6f5d-{:05}", n / 10, n).into();
        let names = (0..count).filter_map(|n| Some((Arc::clone(namespaces.get(n / 300)?), name(n))));
        let labels = (0..=count / 10).map(|n| {
            let app = format!("deployment-{n:05}");
            let pairs = [("app", app.as_str()), ("pod-template-hash", "7d4b9c6f5d")];
            Arc::new(pairs.into_iter().collect())
        });
        Self(Arc::new(PodSet {
            names: names.collect(),
            labels: labels.collect(),
            cpu: "cpu".into(),
            memory: "memory".into(),
            container: "app".into(),
        }))
    }

    fn pod(&self, index: usize) -> Option<PodUsage> {
        let (namespace, name) = self.0.names.get(index)?;
        let number = index as i64;
        let cpu = Quantity::from_scaled(12_345_678 + number * 977, -9, Format::DecimalSi);
        let memory = Quantity::new((50_000 + number * 13) * 1024, Format::BinarySi);
        let usage = vec![(Arc::clone(&self.0.cpu), cpu), (Arc::clone(&self.0.memory), memory)];
        Some(PodUsage {
            namespace: Arc::clone(namespace),
            name: Arc::clone(name),
            labels: Arc::clone(self.0.labels.get(index / 10)?),
            timestamp: Timestamp::from_second(1_800_000_000 + number % 15).ok(),
            window: 15_000_000_000 + number * 1_000_003,
            containers: vec![ContainerUsage { name: Arc::clone(&self.0.container), usage }],
        })
    }
}

impl ResourceMetricsProvider for Made {
    fn pods<'a>(&'a self, _: &'a ListFilter) -> ProviderFuture<'a, Vec<PodUsage>> {
        Box::pin(async { Ok((0..self.0.names.len()).filter_map(|index| self.pod(index)).collect()) })
    }

    fn pods_in_parts<'a>(&'a self, _: &'a ListFilter) -> ProviderFuture<'a, ObjectChunks<PodUsage>> {
        let (made, count) = (self.clone(), self.0.names.len());
        let part = move |begin: usize| {
            let made = made.clone();
            let end = count.min(begin + 512);
            Box::new(move || (begin..end).filter_map(|index| made.pod(index)).collect())
                as ObjectChunk<PodUsage>
        };
        Box::pin(async move { Ok(Box::new((0..count).step_by(512).map(part)) as ObjectChunks<PodUsage>) })
    }

    fn pod<'a>(&'a self, _: &'a str, _: &'a str) -> ProviderFuture<'a, Lookup<PodUsage>> {
        Box::pin(async { Ok(Lookup::NotFound) })
    }

    fn nodes<'a>(&'a self, _: &'a ListFilter) -> ProviderFuture<'a, Vec<NodeUsage>> {
        Box::pin(async { Ok(Vec::new()) })
    }

    fn node<'a>(&'a self, _: &'a str) -> ProviderFuture<'a, Lookup<NodeUsage>> {
        Box::pin(async { Ok(Lookup::NotFound) })
    }
}

fn memory(line: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let found = status.lines().find_map(|it| it.strip_prefix(line));
    found.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok()).unwrap_or_default() / 1024
}

/// Sends requests in a loop and drops the responses. The process measures its second half.
fn send_requests(address: &str, authority: &str, times: usize) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    for (version, name) in [(Version::HTTP_11, "HTTP/1.1"), (Version::HTTP_2, "HTTP/2  ")] {
        let mut roots = rustls::RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(authority.as_bytes()).unwrap()).unwrap();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let tls = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let secure = hyper_rustls::HttpsConnectorBuilder::new().with_tls_config(tls).https_only();
        let mut builder = Client::builder(TokioExecutor::new());
        // As Go's.
        builder.http2_initial_stream_window_size(4 << 20).http2_initial_connection_window_size(1 << 30);
        let client = if version == Version::HTTP_2 {
            builder.http2_only(true).build(secure.enable_http2().build())
        } else {
            builder.build(secure.enable_http1().build())
        };
        for accept in ["application/json", "application/vnd.kubernetes.protobuf"] {
            let one = || async {
                let uri = format!("https://{address}{PODS}");
                let request = Request::get(uri).header("accept", accept).body(Empty::<Bytes>::new()).unwrap();
                let begin = Instant::now();
                let mut body = client.request(request).await.unwrap().into_body();
                let (mut size, mut first) = (0, None);
                while let Some(frame) = body.frame().await {
                    first.get_or_insert_with(|| begin.elapsed());
                    size += frame.unwrap().into_data().map_or(0, |data| data.len());
                }
                (begin.elapsed(), first.unwrap_or_default(), size)
            };
            let mut taken: Vec<(Duration, Duration, usize)> =
                (0..times).map(|_| runtime.block_on(one())).collect();
            taken.sort();
            let (least, first, size) = taken.first().copied().unwrap_or_default();
            let median = taken.get(times / 2).copied().unwrap_or_default().0;
            println!(
                "{name} {accept:<36} {size:>9} bytes: least {least:>9.2?} (first byte {first:>9.2?}), median {median:>9.2?}"
            );
        }
    }
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let first = arguments.next().unwrap_or_else(|| "30000".to_owned());
    let mut number = || arguments.next().and_then(|it| it.parse().ok()).unwrap_or(30);
    if first == "ask" {
        let times = number();
        let place = std::env::var("PLACE").unwrap_or_default();
        return send_requests(&place, &std::env::var("AUTHORITY").unwrap_or_default(), times);
    }
    let (count, times) = (first.parse().unwrap_or(30_000), number());
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let server = runtime.block_on(async {
        let groups = serve::metrics::resource(Arc::new(Made::new(count)), &MetricsApiSettings::default());
        let address = "127.0.0.1:0".parse().unwrap();
        let options = ServerOptions { address, access: Access::Anyone, ..ServerOptions::default() };
        let nobody = tower::service_fn(|_| async { Err::<http::Response<kube::client::Body>, _>("nobody") });
        let client = kube::Client::new(nobody, "default");
        Server::start(options, client, App { groups, ..App::default() }).await.unwrap()
    });
    let before = memory("VmRSS:");
    let client_status = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["ask", &times.to_string()])
        .env("PLACE", server.address().to_string())
        .env("AUTHORITY", server.ca_pem().unwrap())
        .status();
    assert!(client_status.unwrap().success());
    println!("{count} pods: {before} MiB before, {} MiB at most", memory("VmHWM:"));
}
