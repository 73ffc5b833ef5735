//! Bad kubelets, a bad Prometheus, a bad configuration: nothing crashes, nothing is served as zero, and valid metrics stay.

use std::time::Duration;

use serde_json::{Value, json};
use testbed::harness::Failure;
use testbed::kubelets::{Behaviour, Measures, PodLoad, objects};
use testbed::program::Room;
use testbed::prometheus::ResponseFault;

use crate::env::subject::{prometheus_flags, serving_flags, started};
use crate::env::{
    Caller, Scaler, TestNamespace, alone_on_both, direct, free_port, make_node, milli, on_both, peers,
    program, rules, until,
};

/// Extra memory that hostile responses may cost.
const MORE: u64 = 64 << 20;

/// Millicores of a pod's first container.
fn used(pod: &Value) -> Option<i64> {
    milli(&pod["containers"][0]["usage"]["cpu"])
}

/// Values in a list of custom metrics.
fn values(said: &Value) -> Vec<&str> {
    let items = said["items"].as_array().into_iter().flatten();
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
            ResponseFault::Half,
            ResponseFault::Values("+Inf"),
            ResponseFault::Values("rubbish"),
        ];
        if !peers() {
            // prometheus-adapter makes zero of it.
            faults.push(ResponseFault::Values("NaN"));
        }
        for fault in faults {
            ns.env.front.set(fault.clone());
            ns.until_answer(path, |_, said| values(said).is_empty()).await;
            ns.until_condition("web", "ScalingActive", "False FailedGetPodsMetric").await;
            ns.until_replicas_are("web", "the same size", holds).await;
            ns.env.front.set(ResponseFault::None);
            ns.until_answer(path, |_, said| values(said).len() == 2).await;
        }
        // Warnings and doubles are no reason to hide what is known.
        for fault in [ResponseFault::Warnings, ResponseFault::Twice] {
            ns.env.front.set(fault);
            ns.until_answer(path, |_, said| values(said).len() == 2).await;
        }
        ns.env.front.set(ResponseFault::None);
        ns.env.prometheus.lock().await.stop();
        ns.until_answer(path, |code, _| code >= 500).await;
        ns.until_condition("web", "ScalingActive", "False FailedGetPodsMetric").await;
        ns.until_replicas_are("web", "the same size", holds).await;
        // What kubelets say does not depend on it.
        assert_eq!(ns.get("/apis/metrics.k8s.io/v1beta1/nodes/busy").await.0, 200);
        ns.env.prometheus.lock().await.resume().await.unwrap();
        ns.until_condition("web", "ScalingActive", "True ValidMetricFound").await;
    })
}

/// Each bad kubelet has a pod that a good one would show.
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
    on_both(async |ns| {
        let env = ns.env;
        let node = |name: &str| format!("{}-{name}", ns.namespace);
        ns.pod("busy", "good", "good", &[("app", 300, 64 << 20)]).await;
        for (name, behaviour) in bad() {
            let address = env.kubelets.add_node(&node(name), Measures::Always).unwrap();
            env.kubelets.behave(&node(name), behaviour);
            make_node(&ns.client, &objects::node(&node(name), address, env.kubelets.port(), 1)).await;
            ns.pod(&node(name), name, name, &[("app", 100, 64 << 20)]).await;
        }
        let before = env.subject.resident();
        // Two reads each, because the first may be too early.
        for (name, _) in bad() {
            until(&format!("requests to {name}"), async || {
                let found = env.kubelets.requests(&node(name));
                if found >= 2 { Ok(()) } else { Err(found) }
            })
            .await;
        }
        let pods = "/apis/metrics.k8s.io/v1beta1/namespaces/{ns}/pods";
        let said = ns.until_answer(pods, |_, said| said.to_string().contains("\"good\"")).await;
        let shown: Vec<&str> = said["items"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|pod| pod["metadata"]["name"].as_str())
            .collect();
        assert_eq!(shown, ["good"], "{said}");
        assert!(env.subject.resident() < before + MORE, "{before} bytes became {}", env.subject.resident());
        let (code, said) = ns.get(&format!("/apis/metrics.k8s.io/v1beta1/nodes/{}", node("blind"))).await;
        assert_eq!(code, 404, "{said}");
        // They recover, too.
        for (name, _) in bad() {
            env.kubelets.behave(&node(name), Behaviour::Well);
        }
        let all = bad().len() + 1;
        ns.until_answer(pods, |_, said| said["items"].as_array().is_some_and(|items| items.len() == all))
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
        env.kubelets.behave(&node, Behaviour::Status(500));
        let asked = env.kubelets.requests(&node);
        until("a request that fails", async || {
            let found = env.kubelets.requests(&node);
            if found > asked { Ok(()) } else { Err(found) }
        })
        .await;
        for _ in 0..10 {
            let (code, said) = ns.get(pod).await;
            assert_eq!((code, used(&said)), (200, Some(300)), "{said}");
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
        let (room, port) = (Room::new().unwrap(), free_port());
        let mut arguments = vec!["metrics".to_owned()];
        arguments.extend(serving_flags(&room, &ns.env.cluster.kubeconfig, port));
        arguments.push(format!("--kubeconfig={}", room.path("kubeconfig").display()));
        arguments.extend(prometheus_flags(&room, &ns.env.front.url()));
        let mut server = started("plimsoll", program(), &arguments, room, port).await.unwrap();
        let admin = admin(&ns);
        let code = async |metric: &str| {
            let path =
                format!("/apis/custom.metrics.k8s.io/v1beta2/namespaces/{}/pods/*/{metric}", ns.namespace);
            direct(port, &admin, &path).await.map_or(0, |answer| answer.code)
        };
        let until_code = async |metric: &str, wanted: u16| {
            until(&format!("{wanted} for {metric}"), async || {
                let found = code(metric).await;
                if found == wanted { Ok(()) } else { Err((found, server.log())) }
            })
            .await;
        };
        until_code("http_requests", 200).await;
        let said = server.log().len();
        server.room().write("rules.yaml", "rules:\n- seriesquery: wrong\n").unwrap();
        until("a word about it", async || {
            let log = server.log()[said..].to_owned();
            if log.contains("seriesquery") { Ok(()) } else { Err(log) }
        })
        .await;
        assert_eq!(code("http_requests").await, 200);
        server
            .room()
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

/// Who may do everything on a cluster.
pub(crate) fn admin(ns: &TestNamespace) -> Caller {
    Caller::certified(&identity(ns))
}

/// The client certificate and key of that user.
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
        ns.until_answer(pod, |code, said| code == 200 && used(said) == Some(300)).await;
        // Its counter begins anew, and so does its start.
        let again = PodLoad::started(&ns.namespace, "web", Duration::from_secs(2), &[("app", 200, 64 << 20)]);
        ns.env.kubelets.set_pod("busy", again);
        ns.until_answer(pod, |code, said| {
            // Nothing, or one of the two: never a mixture.
            assert!(code == 404 || matches!(used(said), None | Some(200 | 300)), "{said}");
            code == 200 && used(said) == Some(200)
        })
        .await;
    })
}
