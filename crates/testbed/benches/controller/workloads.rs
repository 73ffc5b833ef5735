//! Namespaces with autoscalers, their Deployments, and pods that are running and ready.

use http::Method;
use kube::Client;
use serde_json::{Value, json};
use testbed::harness::{eventually, send, write};

use crate::shared::write_many;

/// Pods of each deployment.
pub(crate) const PODS_PER_DEPLOYMENT: usize = 10;
/// The CPU request of each pod.
pub(crate) const CPU_REQUEST_MILLICORES: i64 = 200;
/// The target of the autoscalers, in percent of the CPU request.
const TARGET_UTILIZATION_PERCENT: i64 = 50;

/// The number of objects.
#[derive(Clone, Copy)]
pub(crate) struct Workloads {
    pub(crate) autoscalers: usize,
    pub(crate) namespaces: usize,
}

impl Workloads {
    pub(crate) fn namespace(self, autoscaler: usize) -> String {
        format!("bench-{:03}", autoscaler % self.namespaces)
    }

    /// Creates all namespaces, and the objects of all autoscalers.
    pub(crate) async fn create(self, client: &Client) {
        for number in 0..self.namespaces {
            let name = self.namespace(number);
            let namespace = json!({"metadata": {"name": name}});
            write(client, Method::POST, "/api/v1/namespaces", &namespace).await;
            // The API server refuses pods until the default service account exists.
            let account = format!("/api/v1/namespaces/{name}/serviceaccounts/default");
            eventually(&account, async || {
                (send(client, Method::GET, &account, None).await.0 == 200).then_some(())
            })
            .await;
        }
        let client = client.clone();
        write_many(self.autoscalers, move |number| {
            let client = client.clone();
            async move { workload(&client, &self.namespace(number), number).await }
        })
        .await;
    }
}

pub(crate) fn name(autoscaler: usize) -> String {
    format!("checkout-{autoscaler:05}")
}

pub(crate) fn pod_name(autoscaler: usize, pod: usize) -> String {
    format!("{}-7d4b9c6f5-{pod:05}", name(autoscaler))
}

async fn workload(client: &Client, namespace: &str, number: usize) {
    let name = name(number);
    let deployments = format!("/apis/apps/v1/namespaces/{namespace}/deployments");
    let spec = json!({
        "replicas": PODS_PER_DEPLOYMENT, "selector": {"matchLabels": {"app": name}},
        "template": {"metadata": {"labels": labels(&name)}, "spec": pod_spec(&name)}
    });
    write(client, Method::POST, &deployments, &json!({"metadata": {"name": name}, "spec": spec})).await;
    let status = json!({"status": {
        "replicas": PODS_PER_DEPLOYMENT, "updatedReplicas": PODS_PER_DEPLOYMENT,
        "readyReplicas": PODS_PER_DEPLOYMENT, "availableReplicas": PODS_PER_DEPLOYMENT,
        "observedGeneration": 1
    }});
    write(client, Method::PATCH, &format!("{deployments}/{name}/status"), &status).await;
    for index in 0..PODS_PER_DEPLOYMENT {
        pod(client, namespace, &name, &pod_name(number, index)).await;
    }
    let metric = json!({"name": "cpu", "target": {"type": "Utilization", "averageUtilization": TARGET_UTILIZATION_PERCENT}});
    let spec = json!({
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name},
        "minReplicas": 2, "maxReplicas": 40, "metrics": [{"type": "Resource", "resource": metric}]
    });
    let hpas = format!("/apis/autoscaling/v2/namespaces/{namespace}/horizontalpodautoscalers");
    write(client, Method::POST, &hpas, &json!({"metadata": {"name": name}, "spec": spec})).await;
}

async fn pod(client: &Client, namespace: &str, workload: &str, name: &str) {
    let pods = format!("/api/v1/namespaces/{namespace}/pods");
    let metadata = json!({"name": name, "labels": labels(workload), "annotations": {
        "prometheus.io/scrape": "true", "prometheus.io/port": "9102",
        "checksum/config": "8d5e957f297893487bd98fa830fa6413c4f2ab3aaa2f6f1d3b0e6a3f7c1d2e4b",
        "kubectl.kubernetes.io/restartedAt": "2026-03-01T09:12:44Z"
    }});
    write(client, Method::POST, &pods, &json!({"metadata": metadata, "spec": pod_spec(workload)})).await;
    // The pod has been ready for long, so that it does not count as starting.
    let since = "2026-01-01T00:00:00Z";
    let condition = |kind: &str| json!({"type": kind, "status": "True", "lastTransitionTime": since});
    let kinds = ["PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled"];
    let conditions: Vec<Value> = kinds.into_iter().map(condition).collect();
    let container = json!({
        "name": "app", "image": "registry.example/shop/checkout:1.2.3", "ready": true, "started": true, "restartCount": 0,
        "imageID": "registry.example/shop/checkout@sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "containerID": "containerd://2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae",
        "state": {"running": {"startedAt": since}}
    });
    let status = json!({"status": {
        "phase": "Running", "startTime": since, "hostIP": "10.0.0.7", "podIP": "10.1.2.3", "qosClass": "Burstable",
        "conditions": conditions, "containerStatuses": [container]
    }});
    write(client, Method::PATCH, &format!("{pods}/{name}/status"), &status).await;
}

fn labels(workload: &str) -> Value {
    json!({
        "app": workload, "pod-template-hash": "7d4b9c6f5", "app.kubernetes.io/part-of": "shop",
        "app.kubernetes.io/version": "1.2.3"
    })
}

fn pod_spec(workload: &str) -> Value {
    let value = |name: &str, value: &str| json!({"name": name, "value": value});
    let probe = |path: &str| json!({"httpGet": {"path": path, "port": 8080}, "periodSeconds": 10});
    let secret = json!({"name": "DATABASE_PASSWORD", "valueFrom": {"secretKeyRef": {"name": "database", "key": "password"}}});
    let own_name = json!({"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}});
    json!({
        "containers": [{
            "name": "app", "image": "registry.example/shop/checkout:1.2.3",
            "args": ["--listen=:8080", "--config=/etc/checkout/config.yaml"],
            "env": [
                value("SERVICE_NAME", workload), value("LOG_LEVEL", "info"), value("DATABASE_HOST", "orders.db.svc"),
                value("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector.telemetry.svc:4317"), secret, own_name
            ],
            "ports": [{"name": "http", "containerPort": 8080}, {"name": "metrics", "containerPort": 9102}],
            "resources": {
                "requests": {"cpu": format!("{CPU_REQUEST_MILLICORES}m"), "memory": "256Mi"}, "limits": {"memory": "512Mi"}
            },
            "readinessProbe": probe("/ready"), "livenessProbe": probe("/alive"),
            "volumeMounts": [{"name": "config", "mountPath": "/etc/checkout"}, {"name": "cache", "mountPath": "/cache"}]
        }],
        "volumes": [{"name": "config", "configMap": {"name": "checkout"}}, {"name": "cache", "emptyDir": {}}],
        "terminationGracePeriodSeconds": 45
    })
}
