//! The metrics server and its doctor on a cluster with simulated nodes.
#![allow(clippy::panic)]

use std::net::Ipv4Addr;
use std::path::Path;
use std::time::Duration;

use http::{Method, Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use localkube::nodes::{Nodes, Plan};
use serde_json::{Value, json};

use crate::setting::{Ended, Setting, free_port};

/// Repeats a request until a condition is true for the response.
async fn until(what: &str, mut poll: impl AsyncFnMut() -> Option<Value>) -> Value {
    for _ in 0..600 {
        if let Some(found) = poll().await {
            return found;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("{what} did not come");
}

async fn get(setting: &Setting, path: &str) -> Option<Value> {
    let request = Request::get(path).body(Vec::new()).unwrap();
    setting.client().request::<Value>(request).await.ok()
}

fn flags(port: u16, authority: &Path) -> Vec<String> {
    let mut flags: Vec<String> = [
        "metrics",
        "--metric-resolution=10s",
        "--kubelet-request-timeout=5s",
        "--kubelet-use-node-status-port",
        "--kubelet-preferred-address-types=InternalIP",
        "--log-level=error",
        "--cert-dir=/tmp",
        "--bind-address=127.0.0.1",
    ]
    .map(str::to_owned)
    .to_vec();
    flags.push(format!("--secure-port={port}"));
    flags.push(format!("--kubelet-certificate-authority={}", authority.display()));
    flags
}

#[tokio::test(flavor = "multi_thread")]
async fn metrics_are_served_and_doctor_finds_no_problem() {
    let setting = Setting::new().await;
    let nodes = Nodes::start(setting.client(), Plan { count: 2, ..Plan::default() }).await.unwrap();
    let authority = setting.folder.join("kubelets.pem");
    std::fs::write(&authority, nodes.ca_pem()).unwrap();
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "labels": {"app": "web"}},
        "spec": {"containers": [{"name": "web", "image": "web"}]}});
    setting.send(Method::POST, "/api/v1/namespaces/shop/pods", &pod).await;
    let without_server = setting.run(&["metrics", "doctor"]).await;
    assert_eq!(without_server.code, 1, "{without_server:?}");
    assert!(
        without_server.out.starts_with("metrics.k8s.io           not served\n  ✗ it is not served"),
        "{without_server:?}"
    );

    let port = free_port();
    let flags = flags(port, &authority);
    let going = setting.start(&flags.iter().map(String::as_str).collect::<Vec<_>>());
    for (group, version) in [("metrics.k8s.io", "v1beta1"), ("metrics.plimsoll.dev", "v1alpha1")] {
        setting.register_api(group, version, "plimsoll-metrics", port).await;
    }
    let some = |list: Value| (!list["items"].as_array()?.is_empty()).then_some(list);
    let list = until("metrics of nodes", async || {
        get(&setting, "/apis/metrics.k8s.io/v1beta1/nodes")
            .await
            .and_then(some)
            .filter(|l| l["items"].as_array().unwrap().len() == 2)
    });
    let list = list.await;
    assert_eq!(list["items"][0]["metadata"]["name"], "node-1");
    let pods = until("metrics of pods", async || {
        get(&setting, "/apis/metrics.k8s.io/v1beta1/namespaces/shop/pods?labelSelector=app%3Dweb")
            .await
            .and_then(some)
    });
    assert_eq!(pods.await["items"][0]["containers"][0]["name"], "web");

    let well = setting.run(&["metrics", "doctor"]).await;
    assert_eq!(well.code, 0, "{well:?}");
    assert!(
        well.out.starts_with("metrics.k8s.io           served by plimsoll, 2 of 2 nodes fresh, 1 of 1 running pods have metrics\n"),
        "{well:?}"
    );
    let json = setting.run(&["metrics", "doctor", "-o", "json"]).await;
    let json: Value = serde_json::from_str(&json.out).unwrap();
    assert_eq!(json["report"]["resource"]["freshNodes"], 2);
    assert_eq!(json["groups"][0]["servedBy"], "plimsoll");
    going.terminate();
    assert_eq!(going.end().await, Some(0));
    // A kubelet that no longer responds is reported.
    let gone: Ended = setting.run(&["metrics", "doctor"]).await;
    assert_ne!(gone.code, 0, "{gone:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn untrusted_kubelets_are_reported_with_remedy() {
    let setting = Setting::new().await;
    let _nodes = Nodes::start(setting.client(), Plan { count: 2, ..Plan::default() }).await.unwrap();
    // The certificate is signed by another authority.
    let stranger =
        Nodes::start(setting.client(), Plan { count: 1, prefix: "other".into(), ..Plan::default() })
            .await
            .unwrap();
    let authority = setting.folder.join("stranger.pem");
    std::fs::write(&authority, stranger.ca_pem()).unwrap();
    stranger.stop().await;
    let port = free_port();
    let flags = flags(port, &authority);
    let going = setting.start(&flags.iter().map(String::as_str).collect::<Vec<_>>());
    for (group, version) in [("metrics.k8s.io", "v1beta1"), ("metrics.plimsoll.dev", "v1alpha1")] {
        setting.register_api(group, version, "plimsoll-metrics", port).await;
    }
    until("a report with problems", async || {
        let report = get(&setting, "/apis/metrics.plimsoll.dev/v1alpha1/reports/current").await?;
        (report["resource"]["nodeProblems"][0]["count"] == 2).then_some(report)
    })
    .await;
    let ill = setting.run(&["metrics", "doctor"]).await;
    assert_eq!(ill.code, 1, "{ill:?}");
    assert!(ill.out.contains("0 of 2 nodes fresh"), "{ill:?}");
    assert!(
        ill.out.contains("✗ 2 nodes   node-1, node-2   certificate signed by unknown authority"),
        "{ill:?}"
    );
    assert!(ill.out.contains("remedy: "), "{ill:?}");
    going.terminate();
    assert_eq!(going.end().await, Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn doctor_fails_on_an_unreachable_cluster() {
    let ended = Setting::nowhere().run(&["metrics", "doctor"]).await;
    assert_eq!(ended.code, 2, "{ended:?}");
    assert!(ended.err.contains("connection refused"), "{ended:?}");
}

/// A Prometheus with one counter of one pod and one queue; its port.
async fn prometheus() -> u16 {
    let listener = tokio::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let answer = service_fn(async |request: http::Request<Incoming>| {
                let query = request.uri().query().unwrap_or_default().to_owned();
                let data = match (request.uri().path(), query.contains("queue")) {
                    ("/api/v1/series", true) => {
                        json!([{"__name__": "queue_messages_ready", "queue": "orders"}])
                    }
                    ("/api/v1/series", false) => {
                        json!([{"__name__": "http_requests_total", "namespace": "shop", "pod": "web"}])
                    }
                    (_, true) => {
                        json!({"resultType": "vector", "result": [{"metric": {}, "value": [1_700_000_000.0, "12"]}]})
                    }
                    (_, false) => {
                        json!({"resultType": "vector", "result": [{"metric": {"pod": "web"}, "value": [1_700_000_000.0, "20.5"]}]})
                    }
                };
                let body = json!({"status": "success", "data": data}).to_string();
                let response = Response::builder().header("content-type", "application/json");
                Ok::<_, std::convert::Infallible>(response.body(Full::new(bytes::Bytes::from(body))).unwrap())
            });
            tokio::spawn(
                hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), answer),
            );
        }
    });
    port
}

#[tokio::test(flavor = "multi_thread")]
async fn adapter_rules_serve_metrics_and_are_reloaded() {
    let setting = Setting::new().await;
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "labels": {"app": "web"}},
        "spec": {"containers": [{"name": "web", "image": "web"}]}});
    setting.send(Method::POST, "/api/v1/namespaces/shop/pods", &pod).await;
    let rules = setting.folder.join("rules.yaml");
    let good = include_str!("../rules/good.yaml");
    std::fs::write(&rules, good).unwrap();
    let port = free_port();
    let url = format!("--prometheus-url=http://127.0.0.1:{}/", prometheus().await);
    let (config, secure) = (format!("--config={}", rules.display()), format!("--secure-port={port}"));
    // As prometheus-adapter is started: with nothing but flags.
    let going = setting.start(&[
        &config,
        &url,
        &secure,
        "--bind-address=127.0.0.1",
        "--logtostderr=true",
        "--log-level=off",
        "--metrics-relist-interval=1m",
    ]);
    for (group, version) in [
        ("custom.metrics.k8s.io", "v1beta1"),
        ("external.metrics.k8s.io", "v1beta1"),
        ("metrics.plimsoll.dev", "v1alpha1"),
    ] {
        setting.register_api(group, version, "plimsoll-metrics", port).await;
    }
    let path = "/apis/custom.metrics.k8s.io/v1beta1/namespaces/shop/pods/*/http_requests_per_second?labelSelector=app%3Dweb";
    let custom = until("a custom metric", async || get(&setting, path).await).await;
    assert_eq!(
        (&custom["items"][0]["value"], &custom["items"][0]["describedObject"]["name"]),
        (&json!("20500m"), &json!("web"))
    );
    let path = "/apis/external.metrics.k8s.io/v1beta1/namespaces/shop/queue_messages_ready";
    let external = until("an external metric", async || get(&setting, path).await).await;
    assert_eq!(external["items"][0]["value"], "12");
    let doctor = setting.run(&["metrics", "doctor"]).await;
    assert!(doctor.out.contains("custom.metrics.k8s.io    served by plimsoll from 127.0.0.1:"), "{doctor:?}");
    assert!(doctor.out.contains(", 2 metrics\n"), "{doctor:?}");

    // Invalid rules are refused and reported, and the old ones stay.
    std::fs::write(&rules, "rules: [{seriesquery: x}]").unwrap();
    let report = "/apis/metrics.plimsoll.dev/v1alpha1/reports/current";
    until("a refusal", async || {
        get(&setting, report).await.filter(|found| found["problems"][0]["reason"] == "RulesRefused")
    })
    .await;
    assert_eq!(get(&setting, path).await.unwrap()["items"][0]["value"], "12");
    std::fs::write(&rules, good.replace("_per_second", "_rate")).unwrap();
    let path = "/apis/custom.metrics.k8s.io/v1beta1/namespaces/shop/pods/web/http_requests_rate";
    until("a metric of the new rules", async || get(&setting, path).await).await;
    until("no complaint", async || get(&setting, report).await.filter(|found| found["problems"].is_null()))
        .await;
    going.terminate();
    assert_eq!(going.end().await, Some(0));
}
