#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use api::provider::{
    ContainerUsage, CustomMetric, CustomMetricQuery, CustomMetricSample, CustomMetricsProvider, Labels,
    ListFilter, Lookup, NodeUsage, ObjectReference, PodUsage, ProviderFuture, ResourceMetricsProvider,
};
use http_body_util::BodyExt as _;
use jiff::Timestamp;
use locks::MutexExt as _;
use quantity::{Format, Quantity};
use serde_json::{Value, json};

use super::*;
use crate::app::App;

use crate::in_process::InProcessServer;

const NODES: &str = "/apis/metrics.k8s.io/v1beta1/nodes";
const PODS: &str = "/apis/metrics.k8s.io/v1beta1/pods";

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn usage(cpu: i64, memory: i64) -> Vec<(Arc<str>, Quantity)> {
    let cpu = Quantity::from_scaled(cpu, -9, Format::DecimalSi);
    vec![("cpu".into(), cpu), ("memory".into(), Quantity::new(memory, Format::BinarySi))]
}

fn labels(pairs: &[(&str, &str)]) -> Arc<Labels> {
    Arc::new(pairs.iter().map(|(key, value)| (*key, *value)).collect())
}

fn node() -> NodeUsage {
    NodeUsage {
        name: "node-a".into(),
        labels: labels(&[("kubernetes.io/hostname", "node-a"), ("kubernetes.io/os", "linux")]),
        timestamp: Some(at("2026-11-15T00:18:17Z")),
        window: 12_010_000_000,
        usage: usage(1_999_841_224, 1 << 30),
    }
}

fn pod(namespace: &str, name: &str, containers: &[(&str, i64, i64)]) -> PodUsage {
    let each = |(name, cpu, memory): &(&str, i64, i64)| ContainerUsage {
        name: (*name).into(),
        usage: usage(*cpu, *memory),
    };
    PodUsage {
        namespace: namespace.into(),
        name: name.into(),
        labels: labels(&[("app", "web")]),
        timestamp: Some(at("2026-11-15T00:17:51.125Z")),
        window: 11_997_000_000,
        containers: containers.iter().map(each).collect(),
    }
}

/// One node and these pods; a node called `slow` never answers.
struct FixedUsage(Vec<PodUsage>);

impl ResourceMetricsProvider for FixedUsage {
    fn source(&self) -> Option<&'static str> {
        Some("kubelets")
    }

    fn pods<'a>(&'a self, _: &'a ListFilter) -> ProviderFuture<'a, Vec<PodUsage>> {
        Box::pin(async { Ok(self.0.clone()) })
    }

    fn pod<'a>(&'a self, _: &'a str, _: &'a str) -> ProviderFuture<'a, Lookup<PodUsage>> {
        Box::pin(async { Ok(Lookup::NotFound) })
    }

    fn nodes<'a>(&'a self, _: &'a ListFilter) -> ProviderFuture<'a, Vec<NodeUsage>> {
        Box::pin(async { Ok(vec![node()]) })
    }

    fn node<'a>(&'a self, name: &'a str) -> ProviderFuture<'a, Lookup<NodeUsage>> {
        Box::pin(async move {
            if name == "slow" {
                std::future::pending::<()>().await;
            }
            Ok(Lookup::Found(node()))
        })
    }
}

fn settings(compat: Compat) -> MetricsApiSettings {
    MetricsApiSettings {
        clock: Clock::new(|| at("2026-11-15T00:18:29Z")),
        ..MetricsApiSettings::from(compat)
    }
}

fn local(pods: Vec<PodUsage>, settings: &MetricsApiSettings) -> (InProcessServer, App) {
    let app = App { groups: resource(Arc::new(FixedUsage(pods)), settings), ..App::default() };
    (InProcessServer::new(app.clone()), app)
}

async fn get(
    local: &InProcessServer,
    path: &str,
    headers: &[(&str, &str)],
) -> (u16, http::HeaderMap, Vec<u8>) {
    let mut request = Request::get(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let (parts, body) = local.respond(request.body(response::full("")).unwrap()).await.into_parts();
    (parts.status.as_u16(), parts.headers, body.collect().await.unwrap().to_bytes().to_vec())
}

async fn text(local: &InProcessServer, path: &str) -> String {
    String::from_utf8(get(local, path, &[]).await.2).unwrap()
}

#[tokio::test]
async fn a_header_states_what_took_the_samples() {
    for (compat, expected) in [(Compat::Better, Some("kubelets")), (Compat::Strict, None)] {
        let (local, _) = local(vec![pod("default", "web-0", &[])], &settings(compat));
        let (code, headers, _) = get(&local, PODS, &[]).await;
        let stated = headers.get(api::metrics::SOURCE_HEADER).map(|value| value.to_str().unwrap());
        assert_eq!((code, stated), (200, expected), "{compat:?}");
    }
    let long = format!("Prometheus: sum(\n\u{e9}{}", "x".repeat(1000));
    let response = settings(Compat::Better).with_source(http::Response::new(response::full("")), Some(&long));
    let stated = response.headers()[api::metrics::SOURCE_HEADER].to_str().unwrap().to_owned();
    assert!(stated.starts_with("Prometheus: sum(  xxx"), "{stated}");
    assert_eq!(stated.len(), 300);
}

#[tokio::test]
async fn objects_equal_recorded_bytes() {
    let (local, _) = local(
        vec![pod("default", "web-0", &[("web", 250_017_448, 12_533_760), ("sidecar", 1_333_793, 1000)])],
        &settings(Compat::Better),
    );
    assert_eq!(
        text(&local, &format!("{NODES}/node-a")).await,
        "{\"kind\":\"NodeMetrics\",\"apiVersion\":\"metrics.k8s.io/v1beta1\",\"metadata\":{\"name\":\"node-a\",\
         \"creationTimestamp\":\"2026-11-15T00:18:29Z\",\"labels\":{\"kubernetes.io/hostname\":\"node-a\",\
         \"kubernetes.io/os\":\"linux\"}},\"timestamp\":\"2026-11-15T00:18:17Z\",\"window\":\"12.01s\",\
         \"usage\":{\"cpu\":\"1999841224n\",\"memory\":\"1Gi\"}}\n"
    );
    assert_eq!(
        text(&local, PODS).await,
        "{\"kind\":\"PodMetricsList\",\"apiVersion\":\"metrics.k8s.io/v1beta1\",\"metadata\":{},\"items\":[\
         {\"metadata\":{\"name\":\"web-0\",\"namespace\":\"default\",\"creationTimestamp\":\"2026-11-15T00:18:29Z\",\
         \"labels\":{\"app\":\"web\"}},\"timestamp\":\"2026-11-15T00:17:51Z\",\"window\":\"11.997s\",\"containers\":[\
         {\"name\":\"web\",\"usage\":{\"cpu\":\"250017448n\",\"memory\":\"12240Ki\"}},\
         {\"name\":\"sidecar\",\"usage\":{\"cpu\":\"1333793n\",\"memory\":\"1k\"}}]}]}\n"
    );
    // The worked example of the specification.
    let (code, headers, bytes) =
        get(&local, &format!("{NODES}/node-a"), &[("accept", "application/vnd.kubernetes.protobuf, */*")])
            .await;
    assert_eq!(
        (code, &headers["content-type"]),
        (200, &"application/vnd.kubernetes.protobuf".parse().unwrap())
    );
    let head = b"k8s\0\x0a\x25\x0a\x16metrics.k8s.io/v1beta1\x12\x0bNodeMetrics\x12\x96\x01\x0a\x5b";
    assert!(bytes.starts_with(head), "{bytes:?}");
    let tail = b"\x12\x08\x08\xc9\xf4\xe3\xd0\x06\x10\0\x1a\x06\x08\x80\x9d\xe8\xde\x2c\
        \x22\x14\x0a\x03cpu\x12\x0d\x0a\x0b1999841224n\x22\x0f\x0a\x06memory\x12\x05\x0a\x031Gi\x1a\0\x22\0";
    assert_eq!(bytes.len(), head.len() + 0x5b + tail.len());
    assert!(bytes.ends_with(&tail[10..]), "{bytes:?}");
}

#[tokio::test]
async fn a_pod_that_uses_nothing_has_a_whole_row() {
    let pods = || vec![pod("a", "empty", &[]), pod("a", "web", &[("web", 1000, 1024), ("x", 500, 1)])];
    let accept = [("accept", "application/json;as=Table;v=v1;g=meta.k8s.io")];
    for (compat, expected) in [
        (Compat::Better, json!(["empty", "0", "0", "11.997s"])),
        (Compat::Strict, json!(["empty", "11.997s"])),
    ] {
        let (local, _) = local(pods(), &settings(compat));
        let table: Value = serde_json::from_slice(&get(&local, PODS, &accept).await.2).unwrap();
        assert_eq!(table["rows"][0]["cells"], expected);
        assert_eq!(table["rows"][1]["cells"], json!(["web", "1500n", "1025", "11.997s"]));
    }
}

#[tokio::test]
async fn the_second_version_is_the_same() {
    let (local, app) = local(vec![pod("a", "web", &[("web", 1, 1)])], &settings(Compat::Better));
    assert_eq!(app.groups.len(), 2);
    let second = text(&local, "/apis/metrics.k8s.io/v1/pods").await;
    assert_eq!(second.replace("metrics.k8s.io/v1\"", "metrics.k8s.io/v1beta1\""), text(&local, PODS).await);
    let group: Value = serde_json::from_str(&text(&local, "/apis/metrics.k8s.io").await).unwrap();
    assert_eq!(group["preferredVersion"]["version"], "v1beta1");
    assert_eq!(resource(Arc::new(FixedUsage(Vec::new())), &settings(Compat::Strict)).len(), 1);
}

#[tokio::test]
async fn schemas_have_only_known_paths() {
    let mut groups = resource(Arc::new(FixedUsage(Vec::new())), &MetricsApiSettings::default());
    groups.extend(custom(Arc::new(Changing::default()), &MetricsApiSettings::default()));
    let local = InProcessServer::new(App { groups, ..App::default() });
    let document: Value = serde_json::from_str(&text(&local, "/openapi/v2").await).unwrap();
    let paths = document["paths"].as_object().unwrap();
    assert!(paths.contains_key("/apis/metrics.k8s.io/v1beta1/namespaces/{namespace}/pods/{name}"));
    assert!(paths.keys().all(|path| !path.contains("//") && !path.contains("custom")), "{:?}", paths.keys());
    assert!(document["definitions"].get("io.k8s.metrics.custom.v1beta2.MetricValueList").is_some());
}

#[tokio::test(start_paused = true)]
async fn wait_ends_at_the_timeout_of_the_caller() {
    let (local, app) = local(Vec::new(), &settings(Compat::Better));
    let begin = tokio::time::Instant::now();
    let (code, _, body) = get(&local, &format!("{NODES}/slow?timeout=250ms"), &[]).await;
    let body: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!((code, &body["reason"]), (504, &json!("Timeout")));
    assert_eq!(body["message"], "Timeout: request did not complete within the allotted timeout");
    assert_eq!(begin.elapsed(), Duration::from_millis(250));
    // More than a minute is not given to anybody.
    assert_eq!(get(&local, &format!("{NODES}/slow?timeout=2h"), &[]).await.0, 504);
    assert_eq!(begin.elapsed(), Duration::from_millis(60_250));
    let counts = app.traffic.counts();
    let [count] = counts.as_slice() else { panic!("{counts:?}") };
    assert_eq!((count.verb, count.resource.as_str(), count.code, count.count), ("GET", "nodes", 504, 2));
    assert_eq!((app.traffic.durations()[0].count, app.traffic.running()), (2, 0));
}

#[tokio::test]
async fn timeout_of_a_watch_is_not_read() {
    let (local, _) = local(Vec::new(), &settings(Compat::Better));
    for (query, expected) in
        [("timeout=abc", 400), ("watch=true&timeout=abc", 405), ("watch=false&timeout=abc", 400)]
    {
        assert_eq!(get(&local, &format!("{NODES}?{query}"), &[]).await.0, expected, "{query}");
    }
}

#[tokio::test]
async fn names_made_up_by_clients_are_not_counted_apart() {
    let (local, app) = local(Vec::new(), &settings(Compat::Better));
    for index in 0..50 {
        get(&local, &format!("/apis/metrics.k8s.io/v1beta1/thing-{index}"), &[]).await;
        get(&local, &format!("/apis/g{index}/v1/things"), &[]).await;
        get(&local, &format!("/x{index}"), &[]).await;
    }
    assert_eq!(app.traffic.counts().len(), 3, "{:?}", app.traffic.counts());
}

#[tokio::test(flavor = "multi_thread")]
async fn list_of_30_000_pods_is_complete() {
    let pods: Vec<PodUsage> = (0..30_000)
        .map(|index| {
            let namespace = format!("namespace-{}", index / 300);
            pod(
                &namespace,
                &format!("deployment-{index}-7d4b9c6f5d-x2v9q"),
                &[("container", 12_345_678 + index, 50_000_000 + index)],
            )
        })
        .collect();
    let settings = settings(Compat::Better);
    let (local, _) = local(pods, &settings);
    for accept in ["application/json", "application/vnd.kubernetes.protobuf"] {
        let (code, headers, body) = get(&local, PODS, &[("accept", accept)]).await;
        assert_eq!((code, &headers["content-type"]), (200, &accept.parse().unwrap()));
        assert!(body.len() > 4_000_000);
        let (_, headers, small) = get(&local, PODS, &[("accept", accept), ("accept-encoding", "gzip")]).await;
        assert_eq!(
            (&headers["content-encoding"], &headers["vary"]),
            (&"gzip".parse().unwrap(), &"Accept-Encoding".parse().unwrap())
        );
        assert!(small.len() < body.len() / 3 && crate::encode::gzip::expanded(&small) == body);
    }
    assert_eq!(settings.freshness.seen().count, 120_000);
}

/// Metrics that are known as long as they are listed; it counts how often they are requested.
#[derive(Default)]
struct Changing {
    names: Mutex<Arc<Vec<CustomMetric>>>,
    requested: AtomicUsize,
}

impl CustomMetricsProvider for Changing {
    fn values<'a>(&'a self, question: &'a CustomMetricQuery) -> ProviderFuture<'a, Vec<CustomMetricSample>> {
        Box::pin(async move {
            let object =
                ObjectReference { kind: "Pod".into(), name: "<a>".into(), ..ObjectReference::default() };
            let selector = question.series.to_label_selector();
            Ok(vec![CustomMetricSample {
                object,
                metric: question.metric.clone(),
                series: Some(selector.map_err(|error| MetricsError::Plain(error.to_string()))?),
                timestamp: None,
                window: Some(60),
                value: Quantity::from_milli(1500, Format::DecimalSi),
            }])
        })
    }

    fn known(&self) -> Arc<Vec<CustomMetric>> {
        self.requested.fetch_add(1, Ordering::Relaxed);
        Arc::clone(&self.names.locked())
    }
}

#[tokio::test]
async fn field_selectors_of_namespace_metrics_name_the_namespace() {
    let groups = custom(Arc::new(Changing::default()), &MetricsApiSettings::default());
    let local = InProcessServer::new(App { groups, ..App::default() });
    for (path, expected) in [
        ("namespaces/shop/metrics/total?fieldSelector=metadata.name%3Dshop", 200),
        ("namespaces/shop/metrics/total?fieldSelector=metadata.name%3Dtotal", 400),
        ("namespaces/*/metrics/total?fieldSelector=metadata.name%3D*", 200),
        ("namespaces/shop/pods/web/total?fieldSelector=metadata.name%3Dweb", 200),
        ("namespaces/shop/pods/web/total?fieldSelector=metadata.name%3Dshop", 400),
        ("namespaces/shop/pods//total?fieldSelector=metadata.name%3Dweb", 200),
    ] {
        let path = format!("/apis/custom.metrics.k8s.io/v1beta2/{path}");
        assert_eq!(get(&local, &path, &[]).await.0, expected, "{path}");
    }
}

#[tokio::test]
async fn the_list_of_metrics_is_written_when_it_changed() {
    let source = Arc::new(Changing::default());
    let groups = custom(source.clone(), &MetricsApiSettings::default());
    let listing = groups[0].listing.clone().unwrap();
    let local = InProcessServer::new(App { groups, ..App::default() });
    let names = async || {
        let list: Value =
            serde_json::from_str(&text(&local, "/apis/custom.metrics.k8s.io/v1beta2").await).unwrap();
        list["resources"]
            .as_array()
            .unwrap()
            .iter()
            .map(|it| it["name"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(names().await, ["/custommetrics"]);
    assert!(Arc::ptr_eq(&listing(&http::HeaderMap::new()), &listing(&http::HeaderMap::new())));
    let before = listing(&http::HeaderMap::new());
    let metric = |name: &str| CustomMetric { resource: "pods".into(), namespaced: true, metric: name.into() };
    *source.names.lock().unwrap() = Arc::new(vec![metric("b"), metric("a")]);
    assert_eq!(names().await, ["pods/b", "pods/a"]);
    assert!(!Arc::ptr_eq(&before, &listing(&http::HeaderMap::new())));
    // The same option, repeated.
    let before = listing(&http::HeaderMap::new());
    *source.names.lock().unwrap() = Arc::new(vec![metric("b"), metric("a")]);
    assert!(Arc::ptr_eq(&before, &listing(&http::HeaderMap::new())));
    assert!(source.requested.load(Ordering::Relaxed) >= 8);
}

#[tokio::test]
async fn selector_is_reported_in_both_versions() {
    let groups = custom(Arc::new(Changing::default()), &MetricsApiSettings::default());
    let local = InProcessServer::new(App { groups, ..App::default() });
    let path = |version: &str| {
        format!(
            "/apis/custom.metrics.k8s.io/{version}/namespaces/d/pods/*/qps?metricLabelSelector=a%3Db,c%20in%20(d,e)"
        )
    };
    let selector = "{\"matchLabels\":{\"a\":\"b\"},\"matchExpressions\":[{\"key\":\"c\",\"operator\":\"In\",\"values\":[\"d\",\"e\"]}]}";
    let object = "{\"kind\":\"Pod\",\"name\":\"\\u003ca\\u003e\"}";
    let list = |version: &str, item: &str| {
        format!(
            "{{\"kind\":\"MetricValueList\",\"apiVersion\":\"custom.metrics.k8s.io/{version}\",\"metadata\":{{}},\"items\":[{item}]}}\n"
        )
    };
    assert_eq!(
        text(&local, &path("v1beta1")).await,
        list(
            "v1beta1",
            &format!(
                "{{\"describedObject\":{object},\"metricName\":\"qps\",\"timestamp\":null,\"window\":60,\"value\":\"1500m\",\"selector\":{selector}}}"
            )
        )
    );
    assert_eq!(
        text(&local, &path("v1beta2")).await,
        list(
            "v1beta2",
            &format!(
                "{{\"describedObject\":{object},\"metric\":{{\"name\":\"qps\",\"selector\":{selector}}},\"timestamp\":null,\"windowSeconds\":60,\"value\":\"1500m\"}}"
            )
        )
    );
}

#[test]
fn failures_become_statuses_of_kubernetes() {
    let code_and_json = |failure| {
        let status = status(failure);
        (status.code, status.to_json())
    };
    let (code, json) = code_and_json(MetricsError::no_value("m", "pods", "x"));
    assert_eq!((code, json.get("details")), (404, None));
    assert_eq!(json["message"], "the server could not find the metric m for pods x");
    let (_, json) = code_and_json(MetricsError::Internal("unable to fetch metrics".into()));
    assert_eq!(json["message"], "Internal error occurred: unable to fetch metrics");
    assert_eq!(json["details"], json!({"causes": [{"message": "unable to fetch metrics"}]}));
    let (code, json) = code_and_json(MetricsError::Plain("odd".into()));
    assert_eq!((code, json.get("reason"), json.get("details")), (500, None, None));
    assert_eq!(code_and_json(MetricsError::Unavailable("down".into())).1["reason"], "ServiceUnavailable");
    let details = Box::new(json!({"retryAfterSeconds": 5, "kind": "pods"}));
    let failure = MetricsError::Detailed {
        code: 429,
        reason: "TooManyRequests".into(),
        message: "slow".into(),
        details,
    };
    assert_eq!(status(failure.clone()).retry_after, Some(5));
    assert_eq!(code_and_json(failure).1["details"], json!({"kind": "pods", "retryAfterSeconds": 5}));
}
