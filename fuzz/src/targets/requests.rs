//! Requests to the metrics APIs: path, query with label and field selectors, and `Accept`. A bad request never gets a server error.

use std::cell::RefCell;
use std::sync::Arc;

use api::provider::{
    Compat, ContainerUsage, CustomMetric, CustomMetricQuery, CustomMetricSample, CustomMetricsProvider,
    ExternalMetricQuery, ExternalMetricSample, ExternalMetricsProvider, Labels, ListFilter, Lookup,
    MetricsError, NodeUsage, PodUsage, ProviderFuture, ResourceMetricsProvider,
};
use http::Request;
use http_body_util::BodyExt as _;
use jiff::Timestamp;
use serve::metrics::{MetricsApiSettings, custom, external, resource};
use serve::{App, InProcessServer, response};
use tokio::runtime::{Builder, Runtime};

thread_local! {
    static RUNTIME: RefCell<Option<Runtime>> = const { RefCell::new(None) };
    static SERVERS: [(Compat, InProcessServer); 2] =
        [Compat::Better, Compat::Strict].map(|compat| (compat, server(compat)));
}

/// A provider with one node, one pod and one external metric.
struct Metrics;

fn labels() -> Arc<Labels> {
    Arc::new([("app", "web"), ("tier", "7")].into_iter().collect())
}

fn pod() -> PodUsage {
    PodUsage {
        namespace: "default".into(),
        name: "web-0".into(),
        labels: labels(),
        timestamp: Some(Timestamp::UNIX_EPOCH),
        window: 1_000_000_000,
        containers: vec![ContainerUsage { name: "web".into(), usage: Vec::new() }],
    }
}

fn node() -> NodeUsage {
    NodeUsage {
        name: "node-a".into(),
        labels: labels(),
        timestamp: Some(Timestamp::UNIX_EPOCH),
        window: 1_000_000_000,
        usage: Vec::new(),
    }
}

impl ResourceMetricsProvider for Metrics {
    fn pods<'a>(&'a self, _: &'a ListFilter) -> ProviderFuture<'a, Vec<PodUsage>> {
        Box::pin(async { Ok(vec![pod()]) })
    }

    fn pod<'a>(&'a self, _: &'a str, name: &'a str) -> ProviderFuture<'a, Lookup<PodUsage>> {
        Box::pin(async move { Ok(if name == "web-0" { Lookup::Found(pod()) } else { Lookup::NotFound }) })
    }

    fn nodes<'a>(&'a self, _: &'a ListFilter) -> ProviderFuture<'a, Vec<NodeUsage>> {
        Box::pin(async { Ok(vec![node()]) })
    }

    fn node<'a>(&'a self, name: &'a str) -> ProviderFuture<'a, Lookup<NodeUsage>> {
        Box::pin(async move { Ok(if name == "node-a" { Lookup::Found(node()) } else { Lookup::NotFound }) })
    }
}

impl CustomMetricsProvider for Metrics {
    fn values<'a>(&'a self, query: &'a CustomMetricQuery) -> ProviderFuture<'a, Vec<CustomMetricSample>> {
        Box::pin(async { Err(MetricsError::no_metric(&query.metric, &query.resource)) })
    }

    fn known(&self) -> Arc<Vec<CustomMetric>> {
        Arc::default()
    }
}

impl ExternalMetricsProvider for Metrics {
    fn values<'a>(&'a self, query: &'a ExternalMetricQuery) -> ProviderFuture<'a, Vec<ExternalMetricSample>> {
        let sample = ExternalMetricSample {
            metric: query.metric.clone(),
            labels: None,
            timestamp: Some(Timestamp::UNIX_EPOCH),
            window: None,
            value: quantity::Quantity::new(7, quantity::Format::DecimalSi),
        };
        Box::pin(async { Ok(vec![sample]) })
    }

    fn known(&self) -> Arc<Vec<String>> {
        Arc::new(vec!["s0-queue".to_owned()])
    }
}

/// The first line of the input is method and URL, the second is `Accept`, and the rest is the body.
pub fn run(data: &[u8]) {
    let mut parts = data.splitn(3, |byte| *byte == b'\n');
    let (line, accept) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let body = parts.next().unwrap_or_default();
    let line = String::from_utf8_lossy(line);
    let (method, url) = line.split_once(' ').unwrap_or(("GET", &line));
    let Ok(uri) = url.parse::<http::Uri>() else { return };
    let Ok(method) = method.parse::<http::Method>() else { return };
    SERVERS.with(|servers| {
        for (compat, server) in servers {
            let mut request = Request::builder().method(method.clone()).uri(uri.clone());
            if let Ok(accept) = http::HeaderValue::from_bytes(accept) {
                request = request.header("accept", accept);
            }
            let (status, response_body) = respond(server, request, body);
            let response_body = String::from_utf8_lossy(&response_body);
            // The original servers return status 500 for some bad requests, and strict mode does the same.
            assert!(status != 500 || compat.is_strict(), "{url}: {response_body}");
            assert!(!response_body.contains("the response could not be made"), "{compat:?} {url}: a panic");
        }
    });
}

fn server(compat: Compat) -> InProcessServer {
    let settings = MetricsApiSettings::from(compat);
    let mut groups = resource(Arc::new(Metrics), &settings);
    groups.extend(custom(Arc::new(Metrics), &settings));
    groups.extend(external(Arc::new(Metrics), &settings));
    InProcessServer::new(App { groups, ..App::default() })
}

/// The status and the first frame of the body of a response. The rest is not read, because a watch never ends.
pub(super) fn respond(
    server: &InProcessServer,
    request: http::request::Builder,
    body: &[u8],
) -> (u16, Vec<u8>) {
    let Ok(request) = request.body(response::full(body.to_vec())) else { return (400, Vec::new()) };
    RUNTIME.with_borrow_mut(|runtime| {
        let runtime = runtime.get_or_insert_with(|| {
            Builder::new_current_thread().enable_all().build().expect("a runtime can be built")
        });
        runtime.block_on(async {
            let (parts, mut body) = server.respond(request).await.into_parts();
            let first = futures::FutureExt::now_or_never(body.frame()).flatten();
            let bytes = first.and_then(Result::ok).and_then(|frame| frame.into_data().ok());
            (parts.status.as_u16(), bytes.map(|bytes| bytes.to_vec()).unwrap_or_default())
        })
    })
}
