//! Faulty kubelets, a faulty Prometheus and an invalid configuration: the server does not crash, serves no wrong zero, and keeps valid metrics.

use std::time::Duration;

use serde_json::{Value, json};
use testbed::harness::Failure;
use testbed::kubelets::{Behaviour, Measures, PodLoad, objects};
use testbed::program::TempFolder;
use testbed::prometheus::ResponseFault;

use crate::env::tested_server::{prometheus_flags, serving_flags, started};
use crate::env::{
    Caller, Scaler, TestNamespace, alone_on_both, direct, free_port, make_node, milli, on_both, peers,
    program, rules, until,
};

/// Extra memory that hostile responses may cost.
const MAX_EXTRA_MEMORY_BYTES: u64 = 64 << 20;

/// Millicores of a pod's first container.
fn used(pod: &Value) -> Option<i64> {
    milli(&pod["containers"][0]["usage"]["cpu"])
}

/// Values in a list of custom metrics.
fn values(body: &Value) -> Vec<&str> {
    let items = body["items"].as_array().into_iter().flatten();
    items.filter_map(|item| item["value"].as_str()).collect()
}

#[test]
fn autoscalers_hold_without_prometheus() -> Result<(), Failure> {
    alone_on_both(async |ns| {
        ns.deployment("web", 2).await;
        for name in ["web-0", "web-1"] {
            ns.pod("busy", "web", name, &[("app", 100, 64 << 20)]).await;
            ns.serve(name, 29.0).await;
        }
        let _scaler = Scaler::start(&ns).await;
        let metric = json!({"type": "Pods", "pods": {
            "metric": {"name": "http_requests"}, "target": {"type": "AverageValue", "averageValue": "10"}
        }});
        ns.hpa("web", json!([metric])).await;
        // Six, with a margin for rates on a busy machine; three would mean that one of the two pods counted as idle.
        let holds = |found| (5..=7).contains(&found);
        ns.until_replicas_are("web", "the same size", holds).await;
        let path = "/apis/custom.metrics.k8s.io/v1beta2/namespaces/{ns}/pods/*/http_requests?labelSelector=app%3Dweb";
        let mut faults = vec![
            ResponseFault::Html,
            ResponseFault::Code(503),
            ResponseFault::Truncated,
            ResponseFault::Values("+Inf"),
            ResponseFault::Values("rubbish"),
        ];
        if !peers() {
            // prometheus-adapter serves zero for this value.
            faults.push(ResponseFault::Values("NaN"));
        }
        for fault in faults {
            ns.env.prometheus_proxy.set_fault(fault.clone());
            ns.until_answer(path, |_, body| values(body).is_empty()).await;
            ns.until_condition("web", "ScalingActive", "False FailedGetPodsMetric").await;
            ns.until_replicas_are("web", "the same size", holds).await;
            ns.env.prometheus_proxy.set_fault(ResponseFault::None);
            ns.until_answer(path, |_, body| values(body).len() == 2).await;
        }
        // Warnings and duplicate series do not hide valid values.
        for fault in [ResponseFault::Warnings, ResponseFault::DuplicateSeries] {
            ns.env.prometheus_proxy.set_fault(fault);
            ns.until_answer(path, |_, body| values(body).len() == 2).await;
        }
        ns.env.prometheus_proxy.set_fault(ResponseFault::None);
        ns.env.prometheus.lock().await.stop();
        ns.until_answer(path, |code, _| code >= 500).await;
        ns.until_condition("web", "ScalingActive", "False FailedGetPodsMetric").await;
        ns.until_replicas_are("web", "the same size", holds).await;
        // Resource metrics do not depend on Prometheus.
        assert_eq!(ns.get("/apis/metrics.k8s.io/v1beta1/nodes/busy").await.0, 200);
        ns.env.prometheus.lock().await.resume().await.unwrap();
        ns.until_condition("web", "ScalingActive", "True ValidMetricFound").await;
    })
}

/// Each faulty kubelet has a pod that a correct one would report.
fn bad() -> Vec<(&'static str, Behaviour)> {
    vec![
        ("slow", Behaviour::Slow(Duration::from_secs(30))),
        ("endless", Behaviour::Endless),
        ("garbage", Behaviour::Garbage),
        ("long", Behaviour::LongLine(10 << 20)),
        ("past", Behaviour::WrongTimes),
        ("cut", Behaviour::Truncated),
        ("blind", Behaviour::ScrapeError),
        ("closed", Behaviour::Status(403)),
    ]
}

#[test]
fn bad_kubelets_affect_only_their_own_pods() -> Result<(), Failure> {
    // Other tests would use memory of the same server.
    alone_on_both(async |ns| {
        let env = ns.env;
        let node = |name: &str| format!("{}-{name}", ns.namespace);
        ns.pod("busy", "good", "good", &[("app", 300, 64 << 20)]).await;
        for (name, behaviour) in bad() {
            let address = env.kubelets.add_node(&node(name), Measures::Always).unwrap();
            env.kubelets.set_behaviour(&node(name), behaviour);
            make_node(&ns.client, &objects::node(&node(name), address, env.kubelets.port(), 1)).await;
            ns.pod(&node(name), name, name, &[("app", 100, 64 << 20)]).await;
        }
        let before = env.tested_server.resident();
        // Two reads each, because the first may be too early.
        for (name, _) in bad() {
            until(&format!("requests to {name}"), async || {
                let found = env.kubelets.requests(&node(name));
                if found >= 2 { Ok(()) } else { Err(found) }
            })
            .await;
        }
        let pods = "/apis/metrics.k8s.io/v1beta1/namespaces/{ns}/pods";
        let body = ns.until_answer(pods, |_, body| body.to_string().contains("\"good\"")).await;
        let shown: Vec<&str> = body["items"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|pod| pod["metadata"]["name"].as_str())
            .collect();
        assert_eq!(shown, ["good"], "{body}");
        assert!(
            env.tested_server.resident() < before + MAX_EXTRA_MEMORY_BYTES,
            "{before} bytes became {}",
            env.tested_server.resident()
        );
        let (code, body) = ns.get(&format!("/apis/metrics.k8s.io/v1beta1/nodes/{}", node("blind"))).await;
        assert_eq!(code, 404, "{body}");
        // The kubelets recover.
        for (name, _) in bad() {
            env.kubelets.set_behaviour(&node(name), Behaviour::Normal);
        }
        let all = bad().len() + 1;
        ns.until_answer(pods, |_, body| body["items"].as_array().is_some_and(|items| items.len() == all))
            .await;
    })
}

#[test]
fn one_failed_scrape_does_not_hide_a_node() -> Result<(), Failure> {
    if peers() {
        return Ok(());
    }
    on_both(async |ns| {
        let env = ns.env;
        let node = format!("{}-shaky", ns.namespace);
        let address = env.kubelets.add_node(&node, Measures::Always).unwrap();
        make_node(&ns.client, &objects::node(&node, address, env.kubelets.port(), 1)).await;
        ns.pod(&node, "web", "web", &[("app", 300, 64 << 20)]).await;
        let pod = "/apis/metrics.k8s.io/v1beta1/namespaces/{ns}/pods/web";
        ns.until_answer(pod, |code, _| code == 200).await;
        env.kubelets.set_behaviour(&node, Behaviour::Status(500));
        let requests = env.kubelets.requests(&node);
        until("a request that fails", async || {
            let found = env.kubelets.requests(&node);
            if found > requests { Ok(()) } else { Err(found) }
        })
        .await;
        for _ in 0..10 {
            let (code, body) = ns.get(pod).await;
            assert_eq!((code, used(&body)), (200, Some(300)), "{body}");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    })
}

#[test]
fn broken_configuration_is_not_loaded() -> Result<(), Failure> {
    if peers() {
        return Ok(());
    }
    on_both(async |ns| {
        ns.pod("busy", "web", "web-0", &[("app", 100, 64 << 20)]).await;
        ns.serve("web-0", 10.0).await;
        let (temp_folder, port) = (TempFolder::new().unwrap(), free_port());
        let mut arguments = vec!["metrics".to_owned()];
        arguments.extend(serving_flags(&temp_folder, &ns.env.cluster.kubeconfig, port));
        arguments.push(format!("--kubeconfig={}", temp_folder.path("kubeconfig").display()));
        arguments.extend(prometheus_flags(&temp_folder, &ns.env.prometheus_proxy.url()));
        let mut server = started("plimsoll", program(), &arguments, temp_folder, port).await.unwrap();
        let admin = admin(&ns);
        let code = async |metric: &str| {
            let path =
                format!("/apis/custom.metrics.k8s.io/v1beta2/namespaces/{}/pods/*/{metric}", ns.namespace);
            direct(port, &admin, &path).await.map_or(0, |response| response.code)
        };
        let until_code = async |metric: &str, wanted: u16| {
            until(&format!("{wanted} for {metric}"), async || {
                let found = code(metric).await;
                if found == wanted { Ok(()) } else { Err((found, server.log())) }
            })
            .await;
        };
        until_code("http_requests", 200).await;
        let body = server.log().len();
        server.temp_folder().write("rules.yaml", "rules:\n- seriesquery: wrong\n").unwrap();
        until("a word about it", async || {
            let log = server.log()[body..].to_owned();
            if log.contains("seriesquery") { Ok(()) } else { Err(log) }
        })
        .await;
        assert_eq!(code("http_requests").await, 200);
        server
            .temp_folder()
            .write(
                "rules.yaml",
                &rules()
                    .replace("{matches: \"^(.*)_total$\"}", "{matches: \"^(.*)_total$\", as: \"new_$1\"}"),
            )
            .unwrap();
        until_code("new_http_requests", 200).await;
        until_code("http_requests", 404).await;
        assert_eq!(server.ended(), None);
    })
}

/// The administrator of a cluster.
pub(crate) fn admin(ns: &TestNamespace) -> Caller {
    Caller::with_certificate(&identity(ns))
}

/// The client certificate and key of the administrator.
pub(crate) fn identity(ns: &TestNamespace) -> testbed::pki::Identity {
    use base64::Engine as _;
    let config = &ns.env.cluster.kubeconfig;
    let field = |name: &str| {
        let line = config.lines().find_map(|line| line.trim().strip_prefix(&format!("{name}: "))).unwrap();
        let bytes = base64::engine::general_purpose::STANDARD.decode(line.trim()).unwrap();
        String::from_utf8(bytes).unwrap()
    };
    testbed::pki::Identity { certificate: field("client-certificate-data"), key: field("client-key-data") }
}

#[test]
fn restarted_container_has_no_negative_rate() -> Result<(), Failure> {
    on_both(async |ns| {
        ns.pod("busy", "web", "web", &[("app", 300, 64 << 20)]).await;
        let pod = "/apis/metrics.k8s.io/v1beta1/namespaces/{ns}/pods/web";
        ns.until_answer(pod, |code, body| code == 200 && used(body) == Some(300)).await;
        // The counter of the container starts at zero again, with a new start time.
        let again = PodLoad::started(&ns.namespace, "web", Duration::from_secs(2), &[("app", 200, 64 << 20)]);
        ns.env.kubelets.set_pod("busy", again);
        ns.until_answer(pod, |code, body| {
            // The response has no sample, or one of either container, but never a rate over both.
            assert!(code == 404 || matches!(used(body), None | Some(200 | 300)), "{body}");
            code == 200 && used(body) == Some(200)
        })
        .await;
    })
}
