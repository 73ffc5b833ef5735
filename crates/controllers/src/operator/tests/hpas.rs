//! Labels, annotations and owners of HPAs.

use serde_json::{Value, json};

use super::env::{TestEnv, annotate, hpas, objects, trigger};

const EXCLUDED: &str = "scaledobject.keda.sh/hpa-excluded-labels";

#[tokio::test(start_paused = true)]
async fn labels_and_annotations_are_copied_to_the_hpa_except_excluded_labels() {
    let env = TestEnv::start().await;
    env.deployment("worker", 1).await;
    env.scaled_object("worker", json!({"triggers": [trigger("orders")]})).await;
    env.until("there is an HPA", async || env.hpa("keda-hpa-worker").await.is_some()).await;
    let edit = json!({"metadata": {"labels": {"tier": "b", "stage": "c"}, "annotations": {EXCLUDED: "team,stage", "note": "y"}}});
    env.patch(&objects("worker"), edit).await;
    let metadata = async || env.hpa("keda-hpa-worker").await.unwrap()["metadata"].clone();
    env.until("it is copied", async || metadata().await["labels"]["tier"] == "b").await;
    let metadata = metadata().await;
    assert_eq!(metadata["annotations"]["note"], "y");
    assert_eq!(metadata["annotations"][EXCLUDED], "team,stage");
    assert_eq!((&metadata["labels"]["team"], &metadata["labels"]["stage"]), (&Value::Null, &Value::Null));
    assert_eq!(metadata["labels"]["app.kubernetes.io/managed-by"], "keda-operator");
    assert_eq!(metadata["labels"]["app.kubernetes.io/part-of"], "worker");
    env.stop().await;
}

#[tokio::test(start_paused = true)]
async fn existing_hpa_with_that_name_is_adopted() {
    let env = TestEnv::start().await;
    env.deployment("worker", 1).await;
    let resource = json!({"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}});
    let theirs = json!({
        "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "theirs", "labels": {"old": "1"}, "annotations": {"old": "1"}},
        "spec": {"maxReplicas": 3, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "worker"},
            "metrics": [{"type": "Resource", "resource": resource}]},
    });
    env.create(hpas("theirs").trim_end_matches("/theirs"), theirs).await;
    let config = json!({"horizontalPodAutoscalerConfig": {"name": "theirs"}});
    env.scaled_object("worker", json!({"advanced": config, "triggers": [trigger("orders")]})).await;
    env.until("it is ready", async || env.condition("worker", "Ready").await.0 == "True").await;
    let hpa = env.hpa("theirs").await.unwrap();
    assert_eq!(hpa["metadata"]["ownerReferences"][0]["name"], "worker");
    assert_eq!(hpa["metadata"]["labels"]["old"], Value::Null);
    assert_eq!(hpa["metadata"]["annotations"]["old"], Value::Null);
    assert_eq!(hpa["spec"]["metrics"][0]["external"]["metric"]["name"], "s0-orders");
    assert_eq!(hpa["spec"]["maxReplicas"], 100);
    assert!(env.hpa("keda-hpa-worker").await.is_none());
    env.stop().await;
}

#[tokio::test(start_paused = true)]
async fn hpa_condition_is_reported_while_the_hpa_exists() {
    let env = TestEnv::start().await;
    env.deployment("worker", 1).await;
    env.scaled_object(
        "worker",
        json!({"pollingInterval": 5, "minReplicaCount": 1, "triggers": [trigger("orders")]}),
    )
    .await;
    env.until("there is an HPA", async || env.hpa("keda-hpa-worker").await.is_some()).await;
    assert_eq!(env.condition("worker", "HPAActive").await.0, "");
    let condition = json!({"type": "ScalingActive", "status": "False", "reason": "FailedGetExternalMetric", "message": "no",
        "lastTransitionTime": "2026-01-01T00:00:00Z"});
    let status = json!({"status": {"currentReplicas": 1, "desiredReplicas": 1, "conditions": [condition]}});
    env.patch(&format!("{}/status", hpas("keda-hpa-worker")), status).await;
    let own = (
        "False".to_owned(),
        "FailedGetExternalMetric".to_owned(),
        "HPA is not actively scaling: no".to_owned(),
    );
    env.until("it is mirrored", async || env.condition("worker", "HPAActive").await == own).await;
    assert_eq!(env.condition("worker", "Ready").await.0, "True");
    env.patch(&objects("worker"), annotate("plimsoll.dev/act", "direct")).await;
    env.until("without one nothing is reported", async || {
        env.condition("worker", "HPAActive").await.0.is_empty()
    })
    .await;
    env.stop().await;
}
