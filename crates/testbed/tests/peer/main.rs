//! Kubernetes' own HPA controller on the real cluster, with scripted metrics, and objects that were written to etcd.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

mod console;
#[allow(dead_code, reason = "shared with other test programs")]
#[path = "../shared/program.rs"]
mod program;

use std::time::Duration;

use http::Method;
use kube::Client;
use localkube::metrics::{DescribedObject, MetricsApi, MetricsSettings, PodUsage, Script, Series};
use localkube::nodes::{Nodes, Plan};
use serde_json::{Value, json};
use testbed::etcd::{self, Etcd};
use testbed::harness::{Failure, connect, eventually, send};
use testbed::peer::{Peer, PeerOptions};
use testbed::{Access, Error};

struct PeerEnv {
    access: &'static Access,
    client: Client,
}

/// The lock of the test that registers metrics APIs, because a cluster has one server of each.
static METRICS_APIS: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

/// The real cluster; none if it is not available.
async fn env() -> Result<Option<PeerEnv>, Failure> {
    match testbed::shared() {
        Ok(access) => {
            let client = connect(&access.kubeconfig_for(access.admin())).await?;
            Ok(Some(PeerEnv { access, client }))
        }
        Err(error) if Error::is_out_of_reach(error) => {
            eprintln!("left out: {error}");
            Ok(None)
        }
        Err(error) => panic!("{error}"),
    }
}

impl PeerEnv {
    async fn send_request(&self, method: Method, path: &str, body: &Value) -> (u16, Value) {
        send(&self.client, method, path, Some(body)).await
    }

    async fn get(&self, path: &str) -> Value {
        self.send_request(Method::GET, path, &Value::Null).await.1
    }

    async fn create(&self, path: &str, object: &Value) {
        let (code, response) = self.send_request(Method::POST, path, object).await;
        assert_eq!(code, 201, "{response}");
    }

    /// Creates a Deployment of two pods that each request 100m of CPU.
    async fn deploy(&self, namespace: &str) {
        let container = json!({"name": "main", "image": "web", "resources": {"requests": {"cpu": "100m"}}});
        let template = json!({"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [container]}});
        let spec = json!({"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": template});
        let object = json!({"metadata": {"name": "web"}, "spec": spec});
        self.create(&format!("/apis/apps/v1/namespaces/{namespace}/deployments"), &object).await;
    }

    /// Creates an HPA with one metric.
    async fn autoscale(&self, namespace: &str, metric: &Value) {
        let target = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"});
        let spec = json!({"scaleTargetRef": target, "maxReplicas": 20, "metrics": [metric]});
        let object = json!({"metadata": {"name": "web"}, "spec": spec});
        self.create(&hpas(namespace), &object).await;
    }

    async fn replicas(&self, namespace: &str) -> Value {
        self.get(&format!("/apis/apps/v1/namespaces/{namespace}/deployments/web")).await["spec"]["replicas"]
            .clone()
    }

    /// The names of ready pods.
    async fn ready(&self, namespace: &str) -> Vec<String> {
        let list = self.get(&format!("/api/v1/namespaces/{namespace}/pods")).await;
        let is_ready = |pod: &&Value| {
            let conditions = pod["status"]["conditions"].as_array().cloned().unwrap_or_default();
            conditions.iter().any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
        };
        let pods = list["items"].as_array().unwrap().iter().filter(is_ready);
        pods.map(|pod| pod["metadata"]["name"].as_str().unwrap().to_owned()).collect()
    }

    /// Waits until the Deployment has this number of replicas.
    async fn scaled(&self, namespace: &str, replicas: u32) {
        let look = async || (self.replicas(namespace).await == replicas).then_some(());
        eventually(&format!("{replicas} replicas of {namespace}"), look).await;
    }

    async fn remove(&self, namespaces: &[&str]) {
        for namespace in namespaces {
            self.send_request(Method::DELETE, &format!("/api/v1/namespaces/{namespace}"), &Value::Null).await;
        }
    }
}

fn hpas(namespace: &str) -> String {
    format!("/apis/autoscaling/v2/namespaces/{namespace}/horizontalpodautoscalers")
}

fn quick(namespace: Option<&str>) -> PeerOptions {
    PeerOptions {
        namespace: namespace.map(str::to_owned),
        sync_period: Some(Duration::from_secs(1)),
        downscale_stabilization: Some(Duration::ZERO),
        // The CPU usage of pods counts from their start.
        cpu_initialization_period: Some(Duration::from_millis(1)),
        initial_readiness_delay: Some(Duration::from_millis(1)),
        ..PeerOptions::default()
    }
}

/// Each kind of metric, and the number of replicas to which it must lead.
fn metrics() -> [(Value, u32); 5] {
    let average = |value: &str| json!({"type": "AverageValue", "averageValue": value});
    let utilization = json!({"type": "Utilization", "averageUtilization": 50});
    let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"});
    [
        (json!({"type": "Resource", "resource": {"name": "cpu", "target": utilization.clone()}}), 4),
        (json!({"type": "External", "external": {"metric": {"name": "queue"}, "target": average("10")}}), 7),
        (json!({"type": "Pods", "pods": {"metric": {"name": "qps"}, "target": average("10")}}), 5),
        (
            json!({"type": "Object", "object": {"metric": {"name": "depth"}, "describedObject": deployment, "target": average("10")}}),
            3,
        ),
        (
            json!({"type": "ContainerResource", "containerResource": {"name": "cpu", "container": "main", "target": utilization}}),
            6,
        ),
    ]
}

/// Sets the value of a metric so that it proposes this number of replicas.
fn set_metric(script: &Script, number: usize, namespace: &str, pods: &[String], replicas: u32) {
    let (labels, total) = ([("app", "web")], i64::from(replicas) * 10_000);
    let each = total / pods.len() as i64;
    match number {
        // The target is half of the request of 100m: 50m for each replica.
        0 | 4 => {
            let cpu = i64::from(replicas) * 50 / pods.len() as i64;
            for pod in pods {
                script.set_pod(namespace, pod, PodUsage::new(&labels, &[("main", cpu, 1 << 20)]));
            }
        }
        1 => script.set_external(namespace, "queue", Series::milli(total)),
        2 => {
            for pod in pods {
                script.set_custom(
                    DescribedObject::pod(namespace, pod),
                    "qps",
                    Series::milli(each).of_object(&labels),
                );
            }
        }
        _ => script.set_custom(
            DescribedObject::new(namespace, "deployments.apps", "web"),
            "depth",
            Series::milli(total),
        ),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn peer_scales_on_every_metric_in_its_namespace_only() -> Result<(), Failure> {
    let Some(env) = env().await? else { return Ok(()) };
    let _only = METRICS_APIS.lock().await;
    let (here, there) = (env.access.namespace("peer").unwrap(), env.access.namespace("alone").unwrap());
    let api = MetricsApi::start(MetricsSettings::default()).await.unwrap();
    api.register(&env.client, &here).await.unwrap();
    let script = api.script();
    let plan = |namespace: &str| Plan {
        count: 1,
        prefix: namespace.to_owned(),
        namespace: Some(namespace.to_owned()),
        serve: false,
        ..Plan::default()
    };
    let nodes = Nodes::start(env.client.clone(), plan(&here)).await.unwrap();
    let peer = Peer::start(env.access, &quick(Some(&here))).await.unwrap();
    assert!(peer.usage().is_some_and(|usage| usage.resident > 1 << 20), "{:?}", peer.pid());
    for namespace in [&here, &there] {
        env.deploy(namespace).await;
    }
    script.set_external(&there, "queue", Series::milli(70_000));
    for (number, (metric, replicas)) in metrics().into_iter().enumerate() {
        let web = format!("/apis/apps/v1/namespaces/{here}/deployments/web/scale");
        let two = json!({"metadata": {"name": "web", "namespace": here}, "spec": {"replicas": 2}});
        env.send_request(Method::PUT, &web, &two).await;
        let pods = eventually("two ready pods", async || {
            let pods = env.ready(&here).await;
            (pods.len() == 2).then_some(pods)
        });
        let pods = pods.await;
        script.clear_pods(&here);
        set_metric(&script, number, &here, &pods, replicas);
        env.autoscale(&here, &metric).await;
        if number == 1 {
            env.autoscale(&there, &metric).await;
        }
        env.scaled(&here, replicas).await;
        env.send_request(Method::DELETE, &format!("{}/web", hpas(&here)), &Value::Null).await;
    }
    assert_eq!(env.replicas(&there).await, 2, "it is not the peer's");
    let left = env.get(&format!("{}/web", hpas(&there))).await;
    assert!(left["status"].get("conditions").is_none(), "{left}");
    let scales = "/apis/apps/v1/namespaces/{ns}/deployments/{name}/scale";
    assert!(peer.rules().unwrap().count(&Method::PUT, scales) >= 5, "{:?}", peer.rules().unwrap().counts());
    drop(peer);
    nodes.stop().await;
    api.unregister(&env.client, &here).await;
    env.remove(&[&here, &there]).await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn objects_written_to_etcd_are_served() -> Result<(), Failure> {
    let Some(env) = env().await? else { return Ok(()) };
    let namespace = env.access.namespace("stored").unwrap();
    let target = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"});
    let object = json!({
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "odd", "namespace": namespace, "uid": "a-b-c", "creationTimestamp": "2026-01-01T00:00:00Z"},
        "spec": {"scaleTargetRef": target, "minReplicas": 9, "maxReplicas": 3},
    });
    let (code, response) = env.send_request(Method::POST, &hpas(&namespace), &object).await;
    assert_eq!(code, 422, "validation refuses it: {response}");
    let store = Etcd::of(env.access);
    let key = etcd::key("horizontalpodautoscalers", &namespace, "odd");
    assert_eq!(store.get(&key).await.unwrap(), None);
    store.put(&key, &object).await.unwrap();
    let served = env.get(&format!("{}/odd", hpas(&namespace))).await;
    assert_eq!(
        (&served["spec"]["minReplicas"], &served["spec"]["maxReplicas"]),
        (&json!(9), &json!(3)),
        "{served}"
    );
    assert!(store.get(&key).await.unwrap().unwrap().starts_with(b"{"));
    assert!(store.delete(&key).await.unwrap() && !store.delete(&key).await.unwrap());
    assert_eq!(
        env.send_request(Method::GET, &format!("{}/odd", hpas(&namespace)), &Value::Null).await.0,
        404
    );
    env.remove(&[&namespace]).await;
    Ok(())
}
