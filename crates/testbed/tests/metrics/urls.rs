//! Every form of URL of the three APIs, as JSON and as protobuf, through the API server.

use http::Request;
use http_body_util::BodyExt as _;
use kube::client::Body;
use serde_json::Value;
use testbed::harness::Failure;

use crate::env::{TestNamespace, on_both, peers};

const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

/// Path under `/apis`, kind of the response, and number of items (none: it is no list).
type UrlCase = (&'static str, &'static str, Option<usize>);

const RESOURCE: [UrlCase; 9] = [
    (
        "metrics.k8s.io/v1beta1/nodes?labelSelector=kubernetes.io%2Fhostname%3Dbusy",
        "NodeMetricsList",
        Some(1),
    ),
    ("metrics.k8s.io/v1beta1/nodes/busy", "NodeMetrics", None),
    ("metrics.k8s.io/v1beta1/pods?fieldSelector=metadata.namespace%3D{ns}", "PodMetricsList", Some(2)),
    ("metrics.k8s.io/v1beta1/namespaces/{ns}/pods", "PodMetricsList", Some(2)),
    (
        "metrics.k8s.io/v1beta1/namespaces/{ns}/pods?labelSelector=app%3Dweb&limit=1",
        "PodMetricsList",
        Some(2),
    ),
    (
        "metrics.k8s.io/v1beta1/namespaces/{ns}/pods?labelSelector=app%20notin%20(web)",
        "PodMetricsList",
        Some(0),
    ),
    (
        "metrics.k8s.io/v1beta1/namespaces/{ns}/pods?fieldSelector=metadata.name%3Dweb-1",
        "PodMetricsList",
        Some(1),
    ),
    ("metrics.k8s.io/v1beta1/namespaces/{ns}/pods/web-0", "PodMetrics", None),
    ("metrics.k8s.io/v1beta1/namespaces/nowhere/pods", "PodMetricsList", Some(0)),
];

/// Paths of both versions, without the version.
const CUSTOM: [UrlCase; 8] = [
    ("namespaces/{ns}/pods/*/http_requests", "MetricValueList", Some(2)),
    ("namespaces/{ns}/pods/%2A/http_requests?labelSelector=app%3Dweb", "MetricValueList", Some(2)),
    ("namespaces/{ns}/pods/web-0/http_requests", "MetricValueList", Some(1)),
    ("namespaces/{ns}/pods/*/http_requests?metricLabelSelector=method%3DGET", "MetricValueList", Some(2)),
    ("namespaces/{ns}/metrics/http_requests", "MetricValueList", Some(1)),
    ("namespaces/{ns}/services/web/service_requests", "MetricValueList", Some(1)),
    ("nodes/busy/node_temperature_celsius", "MetricValueList", Some(1)),
    (
        "nodes/*/node_temperature_celsius?labelSelector=kubernetes.io%2Fhostname%3Dbusy",
        "MetricValueList",
        Some(1),
    ),
];

const EXTERNAL: [UrlCase; 3] = [
    (
        "external.metrics.k8s.io/v1beta1/namespaces/{ns}/queue_depth?labelSelector=queue%3D{ns}",
        "ExternalMetricValueList",
        Some(1),
    ),
    (
        "external.metrics.k8s.io/v1beta1/namespaces/{ns}/queue_depth?labelSelector=queue%20in%20({ns},other)",
        "ExternalMetricValueList",
        Some(1),
    ),
    (
        "external.metrics.k8s.io/v1beta1/namespaces/{ns}/queue_depth?labelSelector=queue%3Dnobody",
        "ExternalMetricValueList",
        Some(0),
    ),
];

/// Missing metrics: path, code, and a part of the message.
const MISSING: [(&str, u16, &str); 11] = [
    ("metrics.k8s.io/v1beta1/nodes/nope", 404, "node \"nope\" not found"),
    ("metrics.k8s.io/v1beta1/namespaces/{ns}/pods/nope", 404, "pods \"nope\" not found"),
    ("metrics.k8s.io/v1beta1/pods/web-0", 404, "the server could not find the requested resource"),
    ("metrics.k8s.io/v1beta1/pods?fieldSelector=spec.nodeName%3Da", 400, "is not a known field selector"),
    ("metrics.k8s.io/v1beta1/pods?labelSelector=%3D%3D", 400, "found '=='"),
    ("metrics.k8s.io/v1beta1/pods?watch=true", 405, "watch is not supported on resources of kind"),
    (
        "custom.metrics.k8s.io/v1beta2/namespaces/{ns}/pods/*/nope",
        404,
        "the server could not find the metric nope for pods",
    ),
    (
        "custom.metrics.k8s.io/v1beta1/namespaces/{ns}/pods/nope/http_requests",
        404,
        "the server could not find the metric http_requests for pods nope",
    ),
    (
        "external.metrics.k8s.io/v1beta1/namespaces/{ns}/nope",
        404,
        "the server could not find the metric nope",
    ),
    ("external.metrics.k8s.io/v1beta1/queue_depth", 404, "the server could not find the requested resource"),
    ("external.metrics.k8s.io/v1beta1/namespaces/{ns}/queue_depth?watch=true", 405, "watch is not supported"),
];

/// GET with an Accept header: code, media type, body.
async fn send_request(ns: &TestNamespace, path: &str, accept: &str) -> (u16, String, Vec<u8>) {
    let path = format!("/apis/{}", path.replace("{ns}", &ns.namespace));
    let request = Request::get(path).header("accept", accept).body(Body::empty()).unwrap();
    let response = ns.client.send(request).await.unwrap();
    let code = response.status().as_u16();
    let kind = response.headers().get("content-type").map(|kind| kind.to_str().unwrap().to_owned());
    let body = response.into_body().collect().await.unwrap().to_bytes().to_vec();
    (code, kind.unwrap_or_default(), body)
}

async fn furnish(ns: &TestNamespace) {
    for name in ["web-0", "web-1"] {
        ns.pod("busy", "web", name, &[("app", 100, 64 << 20)]).await;
        ns.serve(name, 10.0).await;
    }
    let app = &ns.env.app;
    app.set_counter(
        &format!("service_requests_total{{namespace=\"{}\",service=\"web\"}}", ns.namespace),
        20.0,
    );
    app.set_gauge(&format!("queue_depth{{queue=\"{}\"}}", ns.namespace), 12.5);
    app.set_gauge("node_temperature_celsius{node=\"busy\"}", 45.0);
    let items = |response_body: &Value| response_body["items"].as_array().map_or(0, Vec::len);
    for (path, _, wanted) in RESOURCE.iter().skip(2).take(1).chain(&EXTERNAL[..1]) {
        ns.until_answer(&format!("/apis/{path}"), |_, response_body| Some(items(response_body)) == *wanted)
            .await;
    }
    for (path, _, wanted) in &CUSTOM {
        let path = format!("/apis/custom.metrics.k8s.io/v1beta2/{path}");
        ns.until_answer(&path, |_, response_body| Some(items(response_body)) == *wanted).await;
    }
}

#[test]
fn every_url_form_is_served_in_both_encodings() -> Result<(), Failure> {
    on_both(async |ns| {
        furnish(&ns).await;
        let kubectl = ns.kubectl();
        let mut forms: Vec<(String, &str, Option<usize>)> = Vec::new();
        for (path, kind, items) in RESOURCE.iter().chain(&EXTERNAL) {
            forms.push(((*path).to_owned(), kind, *items));
            if !peers() && path.starts_with("metrics.k8s.io/") {
                forms.push((path.replace("/v1beta1/", "/v1/"), kind, *items));
            }
        }
        for version in ["v1beta1", "v1beta2"] {
            forms.extend(CUSTOM.iter().map(|(path, kind, items)| {
                (format!("custom.metrics.k8s.io/{version}/{path}"), *kind, *items)
            }));
        }
        for (path, kind, items) in &forms {
            let version = path.split('/').take(2).collect::<Vec<_>>().join("/");
            let (code, media, body) = send_request(&ns, path, "application/json").await;
            let response_body: Value = serde_json::from_slice(&body).unwrap_or_default();
            assert_eq!((code, media.as_str()), (200, "application/json"), "{path}: {response_body}");
            assert_eq!(
                (&response_body["kind"], &response_body["apiVersion"]),
                (&(*kind).into(), &version.clone().into()),
                "{path}"
            );
            assert_eq!(response_body["items"].as_array().map(Vec::len), *items, "{path}: {response_body}");
            let (code, media, body) = send_request(&ns, path, PROTOBUF).await;
            assert_eq!((code, media.as_str()), (200, PROTOBUF), "{path}");
            assert!(body.starts_with(b"k8s\0"), "{path}");
            let has = |word: &str| body.windows(word.len()).any(|window| window == word.as_bytes());
            assert!(has(kind) && has(&version), "{path}");
            assert!(items.is_none_or(|items| items == 0) || body.len() > 100, "{path}");
            if let Some(kubectl) = &kubectl {
                let line = format!("get --raw /apis/{}", path.replace("{ns}", &ns.namespace));
                let (good, text) = tokio::task::block_in_place(|| kubectl.run(&line));
                assert!(good && text.contains(&format!("\"kind\":\"{kind}\"")), "{line}: {text}");
            }
        }
    })
}

#[test]
fn missing_metrics_have_the_usual_messages() -> Result<(), Failure> {
    on_both(async |ns| {
        furnish(&ns).await;
        for (path, code, words) in MISSING {
            let (found, _, body) = send_request(&ns, path, "application/json").await;
            let response_body: Value = serde_json::from_slice(&body).unwrap_or_default();
            assert_eq!(found, code, "{path}: {response_body}");
            let message = response_body["message"].as_str().unwrap_or_default();
            assert!(response_body["kind"] == "Status" && message.contains(words), "{path}: {response_body}");
        }
    })
}

#[test]
fn the_apis_are_discovered() -> Result<(), Failure> {
    on_both(async |ns| {
        furnish(&ns).await;
        let Some(kubectl) = ns.kubectl() else { return };
        let (good, response_body) =
            tokio::task::block_in_place(|| kubectl.run("api-resources --api-group=metrics.k8s.io -o name"));
        assert!(
            good && response_body.contains("nodes.metrics.k8s.io")
                && response_body.contains("pods.metrics.k8s.io"),
            "{response_body}"
        );
        let response_body = ns.get("/apis/custom.metrics.k8s.io/v1beta1").await.1;
        let listed =
            |name: &str| response_body["resources"].as_array().unwrap().iter().any(|one| one["name"] == name);
        for name in ["pods/http_requests", "namespaces/http_requests", "services/service_requests"] {
            assert!(listed(name), "{name}: {response_body}");
        }
        let response_body = ns.get("/apis/external.metrics.k8s.io/v1beta1").await.1;
        assert_eq!(response_body["resources"][0]["name"], "queue_depth", "{response_body}");
    })
}
