//! Differences of the API between releases of Kubernetes.

#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use KubernetesVersion::{V1_36, V1_37};
use http::Method;
use serde_json::{Value, json};

use crate::{Cluster, KubernetesVersion, Options, Running};

const HPAS: &str = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers";
const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";
const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";
const STATEFUL_SETS: &str = "/apis/apps/v1/namespaces/default/statefulsets";

async fn start(kubernetes: KubernetesVersion) -> Running {
    Cluster::start(Options { workloads: false, kubernetes, ..Options::default() }).await.unwrap()
}

/// The response to a request, or the message of its error.
async fn send(running: &Running, method: Method, path: &str, body: &Value) -> Result<Value, String> {
    let content = if method == Method::PATCH { "application/merge-patch+json" } else { "application/json" };
    let request = http::Request::builder().method(method).uri(path).header("content-type", content);
    let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
    running.client().request(request.body(body).unwrap()).await.map_err(|error| match error {
        kube::Error::Api(status) => status.message,
        other => other.to_string(),
    })
}

async fn post(running: &Running, path: &str, body: &Value) -> Result<Value, String> {
    send(running, Method::POST, path, body).await
}

async fn patch(running: &Running, path: &str, body: &Value) -> Value {
    send(running, Method::PATCH, path, body).await.unwrap()
}

fn hpa() -> Value {
    json!({
        "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "a"},
        "spec": {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "a"}, "maxReplicas": 3},
    })
}

fn generation(object: &Value) -> i64 {
    object["metadata"]["generation"].as_i64().unwrap_or_default()
}

#[tokio::test]
async fn version_names_the_release() {
    for version in KubernetesVersion::ALL {
        let answer = send(&start(version).await, Method::GET, "/version", &Value::Null).await.unwrap();
        assert_eq!(answer["gitVersion"], version.profile().git_version);
        assert_eq!(answer["minor"], version.minor().to_string());
    }
}

#[tokio::test]
async fn generation_counts_changes_of_the_spec_since_1_37() {
    let path = format!("{HPAS}/a");
    for (version, expected) in [(V1_36, [0, 0, 0, 0]), (V1_37, [1, 2, 2, 2])] {
        let running = start(version).await;
        let created = post(&running, HPAS, &hpa()).await.unwrap();
        let changed = patch(&running, &path, &json!({"spec": {"maxReplicas": 4}})).await;
        let labeled =
            patch(&running, &path, &json!({"metadata": {"labels": {"a": "b"}, "generation": 9}})).await;
        let status = json!({"status": {"currentReplicas": 2}});
        let reported = patch(&running, &format!("{path}/status"), &status).await;
        let found = [created, changed, labeled, reported].map(|object| generation(&object));
        assert_eq!(found, expected, "{version}");
    }
}

#[tokio::test]
async fn generation_starts_with_the_first_change_after_an_upgrade() {
    let running = start(V1_36).await;
    let path = format!("{HPAS}/a");
    post(&running, HPAS, &hpa()).await.unwrap();
    running.cluster().change_release(V1_37);
    let same = patch(&running, &path, &json!({"metadata": {"labels": {"a": "b"}}})).await;
    assert_eq!(generation(&same), 0);
    let through_v1 = path.replace("/v2/", "/v1/");
    let changed = patch(&running, &through_v1, &json!({"spec": {"maxReplicas": 4}})).await;
    assert_eq!(generation(&changed), 1);
}

#[tokio::test]
async fn conditions_have_a_generation_since_1_37() {
    let status = |generation: i64| {
        json!({"status": {"conditions": [{"type": "AbleToScale", "status": "True",
        "lastTransitionTime": "2026-01-01T00:00:00Z", "observedGeneration": generation}]}})
    };
    let path = format!("{HPAS}/a/status");
    for (version, expected) in [(V1_36, Value::Null), (V1_37, json!(3))] {
        let running = start(version).await;
        post(&running, HPAS, &hpa()).await.unwrap();
        let stored = patch(&running, &path, &status(3)).await;
        assert_eq!(stored["status"]["conditions"][0]["observedGeneration"], expected, "{version}");
        let refused = send(&running, Method::PATCH, &path, &status(-1)).await;
        assert_eq!(refused.is_err(), version == V1_37, "{refused:?}");
    }
}

#[tokio::test]
async fn zero_replicas_are_valid_since_1_37() {
    let mut object = hpa();
    object["spec"]["minReplicas"] = json!(0);
    object["spec"]["metrics"] = json!([{"type": "External", "external": {
        "metric": {"name": "q"}, "target": {"type": "AverageValue", "averageValue": "1"}}}]);
    assert!(post(&start(V1_37).await, HPAS, &object).await.is_ok());
    let refused = post(&start(V1_36).await, HPAS, &object).await.unwrap_err();
    assert!(
        refused.contains("spec.minReplicas: Invalid value: 0: must be greater than or equal to 1"),
        "{refused}"
    );
}

#[tokio::test]
async fn owner_references_have_an_index_since_1_37() {
    let owned = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "a", "ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": "", "uid": "u"}]}});
    for (version, expected) in [
        (V1_36, "metadata.ownerReferences.name: Invalid value: \"\": must not be empty"),
        (V1_37, "metadata.ownerReferences[0].name: Required value: must not be empty"),
    ] {
        let refused = post(&start(version).await, CONFIG_MAPS, &owned).await.unwrap_err();
        assert!(refused.contains(expected), "{version}: {refused}");
    }
}

#[tokio::test]
async fn metadata_of_a_scale_is_ignored_since_1_37() {
    let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"}, "spec": {
        "selector": {"matchLabels": {"app": "a"}}, "template": {"metadata": {"labels": {"app": "a"}},
        "spec": {"containers": [{"name": "a", "image": "a"}]}}}});
    let path = format!("{DEPLOYMENTS}/a/scale");
    for version in [V1_36, V1_37] {
        let running = start(version).await;
        post(&running, DEPLOYMENTS, &deployment).await.unwrap();
        let mut scale = send(&running, Method::GET, &path, &Value::Null).await.unwrap();
        scale["spec"]["replicas"] = json!(4);
        let plain = send(&running, Method::PUT, &path, &scale).await.unwrap();
        assert_eq!(plain["spec"]["replicas"], 4);
        scale["metadata"]["labels"] = json!({"not a label": "x"});
        scale["metadata"]["resourceVersion"] = plain["metadata"]["resourceVersion"].clone();
        let odd = send(&running, Method::PUT, &path, &scale).await;
        assert_eq!(odd.is_ok(), version == V1_37, "{version}: {odd:?}");
    }
}

#[tokio::test]
async fn stateful_sets_have_max_unavailable_since_1_37() {
    let set = json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "a"}, "spec": {
        "serviceName": "a", "selector": {"matchLabels": {"app": "a"}}, "template": {
        "metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "a", "image": "a"}]}}}});
    let path = format!("{STATEFUL_SETS}/a");
    for (version, unavailable, refusal) in [
        (V1_36, Value::Null, "spec: Forbidden: updates to statefulset spec for fields other than"),
        (V1_37, json!(1), "spec.serviceName: Invalid value: \"b\": field is immutable"),
    ] {
        let running = start(version).await;
        let stored = post(&running, STATEFUL_SETS, &set).await.unwrap();
        assert_eq!(stored["spec"]["updateStrategy"]["rollingUpdate"]["maxUnavailable"], unavailable);
        let renamed = json!({"spec": {"serviceName": "b"}});
        let refused = send(&running, Method::PATCH, &path, &renamed).await.unwrap_err();
        assert!(refused.contains(refusal), "{version}: {refused}");
        let scaled = patch(&running, &path, &json!({"spec": {"replicas": 3}})).await;
        assert_eq!(generation(&scaled), 2);
        let none = json!({"spec": {"updateStrategy": {"rollingUpdate": {"maxUnavailable": "0%"}}}});
        let refused = send(&running, Method::PATCH, &path, &none).await;
        assert_eq!(refused.is_err(), version == V1_37, "{version}: {refused:?}");
    }
}

#[tokio::test]
async fn repeated_errors_are_listed_once_since_1_37() {
    let causes = async |version: KubernetesVersion| {
        let running = start(version).await;
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}});
        post(&running, CONFIG_MAPS, &object).await.unwrap();
        let change = json!({"metadata": {"uid": "another"}}).to_string().into_bytes();
        let request = http::Request::patch(format!("{CONFIG_MAPS}/a"));
        let request = request.header("content-type", "application/merge-patch+json").body(change).unwrap();
        match running.client().request::<Value>(request).await {
            Err(kube::Error::Api(status)) => status.details.unwrap().causes.len(),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(causes(V1_36).await, 2);
    assert_eq!(causes(V1_37).await, 1);
}
