//! Tests without IO, then on localkube through its aggregation layer.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

use std::sync::Arc;

use http::Request;
use http_body_util::BodyExt as _;
use jiff::Timestamp;
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use sim::Millis;
use sim::load::{CurveShape, LoadCurve};
use sim::workload::{ContainerUsageModel as Use, PodDelays, ServiceCapacity, UsageModel};

use super::answer::{MetricsRequest, read};
use super::contents::ServedMetrics;
use super::rate::UsageRates;
use super::*;
use crate::nodes::{ContainerReading, NodeReading, Plan, PodReading, Workload};
use crate::status::Status;
use crate::{Cluster, Options, Running};

const MI: i64 = 1 << 20;

fn noon() -> Timestamp {
    "2026-11-15T12:00:00.75Z".parse().unwrap()
}

fn filled(script: &Script) {
    let web = |cpu| PodUsage::new(&[("app", "web")], &[("main", cpu, 12 * MI), ("side", 2, 1000)]);
    let at = SampleTime::At("2026-11-15T11:59:51Z".parse().unwrap());
    script.set_pod("shop", "web-0", web(250).at(at).over(Duration::from_millis(11_997)));
    script.set_pod("shop", "web-1", web(500));
    script.set_pod("shop", "db-0", PodUsage::new(&[("app", "db")], &[("db", 9, MI)]));
    script.set_pod("bank", "web-0", web(1));
    for (pod, milli) in [("web-0", 300), ("web-1", 4_000)] {
        let series = Series::milli(milli).of_object(&[("app", "web")]).labelled(&[("verb", "GET")]);
        script.set_custom(DescribedObject::pod("shop", pod), "qps", series);
    }
    script.set_custom(DescribedObject::new("shop", "deployments.apps", "web"), "depth", Series::milli(7_000));
    script.set_custom(
        DescribedObject::namespace("shop"),
        "visitors",
        Series::milli(42_000).over(Duration::from_mins(1)),
    );
    script.set_custom(DescribedObject::new("", "nodes", "node-1"), "heat", Series::milli(1));
    script.set_external("shop", "Queue_Depth", Series::milli(12_500).labelled(&[("queue", "q1")]));
    script.set_external("shop", "Queue_Depth", Series::milli(1_500_000));
}

fn ask(script: &Script, accept: &str, path: &str) -> Result<Value, Status> {
    let parts = Request::get(path).header("accept", accept).body(()).unwrap().into_parts().0;
    let play = script.lock();
    let contents = [&play.contents, &play.measured];
    match read(&parts, &contents)? {
        MetricsRequest::Discovery(found) => Ok(found),
        MetricsRequest::Metrics(question) => question.answer(&contents, noon()),
        MetricsRequest::Health => Ok(Value::Null),
    }
}

fn get(script: &Script, path: &str) -> Result<Value, Status> {
    ask(script, "application/vnd.kubernetes.protobuf, */*", path)
}

fn names(list: &Value) -> Vec<&str> {
    list["items"].as_array().unwrap().iter().map(|item| item["metadata"]["name"].as_str().unwrap()).collect()
}

const PODS: &str = "/apis/metrics.k8s.io/v1beta1/namespaces/shop/pods";
const CUSTOM: &str = "/apis/custom.metrics.k8s.io/v1beta2";
const EXTERNAL: &str = "/apis/external.metrics.k8s.io/v1beta1/namespaces/shop";

#[test]
fn pod_metrics_match_the_reference_server() {
    let script = Script::default();
    filled(&script);
    let pod = get(&script, &format!("{PODS}/web-0")).unwrap();
    let expected = r#"{"kind":"PodMetrics","apiVersion":"metrics.k8s.io/v1beta1","metadata":{"name":"web-0","namespace":"shop","creationTimestamp":"2026-11-15T12:00:00Z","labels":{"app":"web"}},"timestamp":"2026-11-15T11:59:51Z","window":"11.997s","containers":[{"name":"main","usage":{"cpu":"250m","memory":"12Mi"}},{"name":"side","usage":{"cpu":"2m","memory":"1k"}}]}"#;
    assert_eq!(pod.to_string(), expected);
    let list = get(&script, &format!("{PODS}?labelSelector=app%3Dweb")).unwrap();
    assert_eq!(names(&list), ["web-0", "web-1"]);
    assert_eq!((&list["kind"], &list["metadata"]), (&json!("PodMetricsList"), &json!({})));
    assert_eq!(list["items"][1]["timestamp"], "2026-11-15T12:00:00Z");
    assert!(list["items"][0].get("kind").is_none());
    assert_eq!(names(&get(&script, "/apis/metrics.k8s.io/v1beta1/pods").unwrap()).len(), 4);
    assert_eq!(
        names(&get(&script, &format!("{PODS}?fieldSelector=metadata.name%3Ddb-0")).unwrap()),
        ["db-0"]
    );
    assert_eq!(get(&script, &format!("{PODS}/none")).unwrap_err().message, "pods \"none\" not found");
    assert_eq!(get(&script, "/apis/metrics.k8s.io/v1beta1/pods/web-0").unwrap_err().code, 404);
    assert_eq!(get(&script, &format!("{PODS}?labelSelector=%3D%3D")).unwrap_err().code, 400);
    assert_eq!(get(&script, &format!("{PODS}?watch=true")).unwrap_err().code, 405);
    script.remove_pod("shop", "web-0");
    script.clear_pods("bank");
    assert_eq!(names(&get(&script, "/apis/metrics.k8s.io/v1beta1/pods").unwrap()), ["db-0", "web-1"]);
}

#[test]
fn tables_sum_the_containers_of_a_pod() {
    let script = Script::default();
    filled(&script);
    let table = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
    let found = ask(&script, table, &format!("{PODS}?labelSelector=app%3Dweb")).unwrap();
    assert_eq!(found["rows"][0]["cells"], json!(["web-0", "252m", "12583912", "11.997s"]));
    let columns: Vec<&str> =
        found["columnDefinitions"].as_array().unwrap().iter().map(|c| c["name"].as_str().unwrap()).collect();
    assert_eq!(columns, ["Name", "cpu", "memory", "Window"]);
    assert_eq!(found["rows"][0]["object"]["kind"], "PartialObjectMetadata");
    let empty = ask(&script, table, "/apis/metrics.k8s.io/v1beta1/nodes").unwrap();
    assert_eq!((&empty["rows"], &empty["columnDefinitions"]), (&Value::Null, &Value::Null));
}

#[test]
fn custom_metrics_support_four_path_forms() {
    let script = Script::default();
    filled(&script);
    let found =
        get(&script, &format!("{CUSTOM}/namespaces/shop/pods/%2A/qps?labelSelector=app%3Dweb")).unwrap();
    let expected = r#"{"describedObject":{"kind":"Pod","namespace":"shop","name":"web-0","apiVersion":"/v1"},"metric":{"name":"qps","selector":null},"timestamp":"2026-11-15T12:00:00Z","value":"300m"}"#;
    assert_eq!(found["items"][0].to_string(), expected);
    assert_eq!(found["items"].as_array().unwrap().len(), 2);
    let old =
        "/apis/custom.metrics.k8s.io/v1beta1/namespaces/shop/pods/web-0/qps?metricLabelSelector=verb%3DGET";
    let expected = r#"{"describedObject":{"kind":"Pod","namespace":"shop","name":"web-0","apiVersion":"/v1"},"metricName":"qps","timestamp":"2026-11-15T12:00:00Z","value":"300m","selector":{"matchLabels":{"verb":"GET"}}}"#;
    assert_eq!(get(&script, old).unwrap()["items"][0].to_string(), expected);
    let none = format!("{CUSTOM}/namespaces/shop/pods/*/qps?labelSelector=app%3Ddb");
    assert_eq!(get(&script, &none).unwrap()["items"], json!([]));
    let object = get(&script, &format!("{CUSTOM}/namespaces/shop/deployments.apps/web/depth")).unwrap();
    assert_eq!(object["items"][0]["describedObject"]["apiVersion"], "apps/v1");
    let own = get(&script, &format!("{CUSTOM}/namespaces/shop/metrics/visitors")).unwrap();
    assert_eq!(
        own["items"][0]["describedObject"],
        json!({"kind": "Namespace", "name": "shop", "apiVersion": "/v1"})
    );
    assert_eq!(own["items"][0]["windowSeconds"], 60);
    assert_eq!(get(&script, &format!("{CUSTOM}/nodes/*/heat")).unwrap()["items"][0]["value"], "1m");
    let message = |path: &str| get(&script, &format!("{CUSTOM}/{path}")).unwrap_err().message;
    assert_eq!(message("namespaces/shop/pods/*/nope"), "the server could not find the metric nope for pods");
    assert_eq!(
        message("namespaces/shop/pods/db-0/qps"),
        "the server could not find the metric qps for pods db-0"
    );
    assert_eq!(message("namespaces/shop/pods"), "invalid request path");
    script.clear_custom("shop");
    assert_eq!(
        message("namespaces/shop/metrics/visitors"),
        "the server could not find the metric visitors for namespaces"
    );
}

#[test]
fn external_metric_names_are_lower_case() {
    let script = Script::default();
    filled(&script);
    let found = get(&script, &format!("{EXTERNAL}/queue_depth")).unwrap();
    let expected = r#"{"kind":"ExternalMetricValueList","apiVersion":"external.metrics.k8s.io/v1beta1","metadata":{},"items":[{"metricName":"queue_depth","metricLabels":{"queue":"q1"},"timestamp":"2026-11-15T12:00:00Z","value":"12500m"},{"metricName":"queue_depth","metricLabels":{},"timestamp":"2026-11-15T12:00:00Z","value":"1500"}]}"#;
    assert_eq!(found.to_string(), expected);
    let one = get(&script, &format!("{EXTERNAL}/queue_depth?labelSelector=queue%3Dq1")).unwrap();
    assert_eq!(one["items"].as_array().unwrap().len(), 1);
    let none = get(&script, &format!("{EXTERNAL}/queue_depth?labelSelector=queue%3Dq9")).unwrap();
    assert_eq!(none["items"], json!([]));
    assert_eq!(get(&script, &format!("{EXTERNAL}/nope")).unwrap_err().code, 404);
    script.set_external("shop", "queue_depth", Series::milli(9).labelled(&[("queue", "q1")]));
    assert_eq!(get(&script, &format!("{EXTERNAL}/queue_depth")).unwrap()["items"][0]["value"], "9m");
    script.remove_external("shop", "queue_depth");
    assert_eq!(get(&script, &format!("{EXTERNAL}/queue_depth")).unwrap_err().code, 404);
}

#[test]
fn resource_lists_are_never_empty() {
    let script = Script::default();
    let resources = |path: &str| get(&script, path).unwrap()["resources"].clone();
    assert_eq!(resources(CUSTOM)[0]["name"], "/custommetrics");
    assert_eq!(resources("/apis/external.metrics.k8s.io/v1beta1")[0]["name"], "externalmetrics");
    filled(&script);
    assert_eq!(resources(CUSTOM)[0]["name"], "deployments.apps/depth");
    assert_eq!(get(&script, "/apis").unwrap()["groups"].as_array().unwrap().len(), 3);
    assert_eq!(
        get(&script, "/apis/custom.metrics.k8s.io").unwrap()["preferredVersion"]["version"],
        "v1beta2"
    );
    assert_eq!(get(&script, "/apis/other.k8s.io/v1").unwrap_err().code, 404);
}

#[test]
fn durations_are_formatted_like_go() {
    let cases = [
        (0, "0s"),
        (1, "1ns"),
        (1_500, "1.5µs"),
        (999_000_000, "999ms"),
        (15_013_000_000, "15.013s"),
        (60_000_000_000, "1m0s"),
        (3_600_000_000_000, "1h0m0s"),
        (1_234_567_890_123, "20m34.567890123s"),
    ];
    for (nanos, text) in cases {
        assert_eq!(super::wire::go_duration(Duration::from_nanos(nanos)), text);
    }
}

fn reading(seconds: i64, started: i64, cpu_seconds: f64) -> Vec<NodeReading> {
    let time = |seconds| Timestamp::from_second(1_000 + seconds).unwrap();
    let container =
        ContainerReading { name: "main".into(), started: time(started), cpu_seconds, memory_bytes: 4096.0 };
    let labels = Arc::default();
    let pod = PodReading {
        namespace: "shop".into(),
        name: "web".into(),
        labels,
        work: 0.0,
        containers: vec![container],
    };
    let labels = Labels::new();
    let (name, at) = ("node-1".to_owned(), time(seconds));
    let elapsed = Duration::from_secs(seconds as u64);
    vec![NodeReading {
        name,
        labels,
        at,
        elapsed,
        cpu_seconds: 2.0 * cpu_seconds,
        memory_bytes: 1.0,
        pods: vec![pod],
    }]
}

/// CPU and window after each sample.
fn rates(readings: &[(i64, i64, f64)]) -> Vec<Option<(String, Duration)>> {
    let mut rates = UsageRates::default();
    let step = |&(at, started, cpu): &(i64, i64, f64)| {
        let contents: ServedMetrics = rates.step(Duration::from_mins(1), &reading(at, started, cpu));
        let pod = contents.pods.into_values().next()?;
        Some((pod.containers[0].usage["cpu"].canonical(), pod.window))
    };
    readings.iter().map(step).collect()
}

#[test]
fn rates_need_two_samples() {
    let seconds = Duration::from_secs;
    let found = |cpu: &str, window| Some((cpu.to_owned(), seconds(window)));
    assert_eq!(rates(&[(120, 0, 1.0), (125, 0, 6.0)]), [None, found("1", 5)]);
    assert_eq!(rates(&[(10, 0, 10.0)]), [found("1", 10)], "its start is a reading");
    assert_eq!(rates(&[(9, 0, 10.0)]), [None], "it is too young");
    assert_eq!(
        rates(&[(10, 0, 1.0), (25, 15, 5.0)]),
        [found("100m", 10), found("500m", 10)],
        "it was restarted"
    );
    assert_eq!(rates(&[(110, 0, 20.0), (120, 0, 10.0)]), [None, None], "the counter went back");
    assert_eq!(rates(&[(110, 0, 20.0), (110, 0, 20.0)]), [None, None], "time stood still");
}

struct MetricsFixture {
    #[allow(dead_code, reason = "held for its end")]
    cluster: Running,
    client: Client,
    api: MetricsApi,
}

impl MetricsFixture {
    async fn new() -> Self {
        let cluster = Cluster::start(Options::default()).await.unwrap();
        let client = cluster.client();
        let api = MetricsApi::start(MetricsSettings::default()).await.unwrap();
        api.register(&client, "default").await.unwrap();
        filled(&api.script());
        Self { cluster, client, api }
    }

    async fn text(&self, path: &str) -> Result<(u16, String), String> {
        let request = Request::get(path).body(Body::empty()).unwrap();
        let answer = self.client.send(request).await.map_err(|error| error.to_string())?;
        let code = answer.status().as_u16();
        let body = answer.into_body().collect().await.map_err(|error| error.to_string())?;
        Ok((code, String::from_utf8(body.to_bytes().to_vec()).unwrap()))
    }
}

#[tokio::test]
async fn injected_faults_reach_the_client() {
    let fixture = MetricsFixture::new().await;
    let script = fixture.api.script();
    let (code, body) = fixture.text(PODS).await.unwrap();
    assert!(code == 200 && body.contains("\"web-0\""), "{body}");
    let message = "etcd is on fire".to_owned();
    script.fail(MetricsGroup::Resource, Outage::Status { code: 500, reason: "InternalError", message });
    let (code, body) = fixture.text(PODS).await.unwrap();
    assert!(
        code == 500 && body.contains(r#""message":"etcd is on fire","reason":"InternalError","code":500"#),
        "{body}"
    );
    assert_eq!(fixture.text(&format!("{EXTERNAL}/queue_depth")).await.unwrap().0, 200, "the others are well");
    script.fail(MetricsGroup::Resource, Outage::Text { code: 503, body: "service unavailable\n".into() });
    assert_eq!(fixture.text(PODS).await.unwrap(), (503, "service unavailable\n".into()));
    script.fail(MetricsGroup::Resource, Outage::Empty);
    assert!(fixture.text(PODS).await.unwrap().1.contains("\"items\":[]"));
    script.fail(MetricsGroup::Resource, Outage::Garbage);
    let (code, body) = fixture.text(PODS).await.unwrap();
    assert!(code == 200 && serde_json::from_str::<Value>(&body).is_err(), "{body}");
    script.fail(MetricsGroup::Resource, Outage::Cut);
    assert!(fixture.text(PODS).await.is_err());
    script.fail(MetricsGroup::Resource, Outage::Hang);
    assert!(tokio::time::timeout(Duration::from_millis(200), fixture.text(PODS)).await.is_err());
    script.forget_requests();
    script.fail(MetricsGroup::Resource, Outage::None);
    assert_eq!(fixture.text(PODS).await.unwrap().0, 200);
    assert_eq!((script.count(PODS), script.count(EXTERNAL)), (1, 0));
}

#[tokio::test]
async fn last_registration_wins() {
    let fixture = MetricsFixture::new().await;
    let other = MetricsApi::start(MetricsSettings::default()).await.unwrap();
    other.register(&fixture.client, "default").await.unwrap();
    assert!(fixture.text(PODS).await.unwrap().1.contains("\"items\":[]"));
    other.unregister(&fixture.client, "default").await;
    assert_eq!(fixture.text(PODS).await.unwrap().0, 404);
}

#[tokio::test]
async fn usage_of_simulated_nodes_is_served() {
    let cluster = Cluster::start(Options::default()).await.unwrap();
    let client = cluster.client();
    let busy = |name: &str| Use {
        name: name.into(),
        cpu: UsageModel { idle: 100.0, per_unit: 0.0, starting: 100.0, limit: f64::INFINITY },
        memory: UsageModel { idle: 64_000.0 * MI as f64, per_unit: 0.0, starting: 0.0, limit: f64::INFINITY },
    };
    let workload = Workload {
        namespace: "default".into(),
        selector: "app=web".parse().unwrap(),
        load: LoadCurve::new(vec![CurveShape::Constant(1.0)], Vec::new()),
        service: ServiceCapacity { per_pod: Some(10.0), queue: 0.0 },
        containers: vec![busy("main")],
        delays: Some(PodDelays { start: Millis::ZERO, ready: Millis::ZERO, stop: Millis::ZERO }),
    };
    let plan = Plan { serve: false, workloads: vec![workload], ..Plan::default() };
    let nodes = Nodes::start(client.clone(), plan).await.unwrap();
    let settings = MetricsSettings { resolution: Duration::from_millis(100), ..MetricsSettings::default() };
    let api = MetricsApi::of_nodes(&nodes, settings).await.unwrap();
    api.register(&client, "default").await.unwrap();
    let pod = json!({"metadata": {"name": "web", "labels": {"app": "web"}},
        "spec": {"containers": [{"name": "main", "image": "web"}]}});
    let pods: kube::Api<k8s_openapi::api::core::v1::Pod> = kube::Api::default_namespaced(client.clone());
    pods.create(&kube::api::PostParams::default(), &serde_json::from_value(pod).unwrap()).await.unwrap();
    let fixture = MetricsFixture { cluster, client, api };
    let found = tokio::time::timeout(Duration::from_mins(1), async {
        loop {
            let path = "/apis/metrics.k8s.io/v1beta1/namespaces/default/pods?labelSelector=app%3Dweb";
            let list: Value = serde_json::from_str(&fixture.text(path).await.unwrap().1).unwrap();
            if let Some(found) = list["items"].as_array().unwrap().first() {
                return found.clone();
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    let found = found.await.unwrap();
    let cpu = quantity::Quantity::parse(found["containers"][0]["usage"]["cpu"].as_str().unwrap()).unwrap();
    assert_eq!(cpu.milli_value(), 100, "{found}");
    assert_eq!(found["metadata"]["labels"], json!({"app": "web"}));
    let (_, nodes) = fixture.text("/apis/metrics.k8s.io/v1beta1/nodes").await.unwrap();
    let nodes: Value = serde_json::from_str(&nodes).unwrap();
    assert_eq!(names(&nodes), ["node-1", "node-2", "node-3"]);
}
