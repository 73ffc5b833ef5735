//! What is copied to an HPA, and whose it is.

use serde_json::{Value, json};

use super::bench::{Bench, annotate, hpas, objects, trigger};

const EXCLUDED: &str = "scaledobject.keda.sh/hpa-excluded-labels";

#[tokio::test(start_paused = true)]
async fn labels_and_annotations_reach_the_hpa_but_for_labels_that_are_excluded() {
    let bench = Bench::start().await;
    bench.deployment("worker", 1).await;
    bench.scaled_object("worker", json!({"triggers": [trigger("orders")]})).await;
    bench.until("there is an HPA", async || bench.hpa("keda-hpa-worker").await.is_some()).await;
    let edit = json!({"metadata": {"labels": {"tier": "b", "stage": "c"}, "annotations": {EXCLUDED: "team,stage", "note": "y"}}});
    bench.patch(&objects("worker"), edit).await;
    let metadata = async || bench.hpa("keda-hpa-worker").await.unwrap()["metadata"].clone();
    bench.until("it is copied", async || metadata().await["labels"]["tier"] == "b").await;
    let metadata = metadata().await;
    assert_eq!(metadata["annotations"]["note"], "y");
    assert_eq!(metadata["annotations"][EXCLUDED], "team,stage");
    assert_eq!((&metadata["labels"]["team"], &metadata["labels"]["stage"]), (&Value::Null, &Value::Null));
    assert_eq!(metadata["labels"]["app.kubernetes.io/managed-by"], "keda-operator");
    assert_eq!(metadata["labels"]["app.kubernetes.io/part-of"], "worker");
    bench.stop().await;
}

#[tokio::test(start_paused = true)]
async fn an_hpa_of_that_name_is_taken_over() {
    let bench = Bench::start().await;
    bench.deployment("worker", 1).await;
    let resource = json!({"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}});
    let theirs = json!({
        "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "theirs", "labels": {"old": "1"}, "annotations": {"old": "1"}},
        "spec": {"maxReplicas": 3, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "worker"},
            "metrics": [{"type": "Resource", "resource": resource}]},
    });
    bench.create(hpas("theirs").trim_end_matches("/theirs"), theirs).await;
    let config = json!({"horizontalPodAutoscalerConfig": {"name": "theirs"}});
    bench.scaled_object("worker", json!({"advanced": config, "triggers": [trigger("orders")]})).await;
    bench.until("it is ready", async || bench.condition("worker", "Ready").await.0 == "True").await;
    let hpa = bench.hpa("theirs").await.unwrap();
    assert_eq!(hpa["metadata"]["ownerReferences"][0]["name"], "worker");
    assert_eq!(hpa["metadata"]["labels"]["old"], Value::Null);
    assert_eq!(hpa["metadata"]["annotations"]["old"], Value::Null);
    assert_eq!(hpa["spec"]["metrics"][0]["external"]["metric"]["name"], "s0-orders");
    assert_eq!(hpa["spec"]["maxReplicas"], 100);
    assert!(bench.hpa("keda-hpa-worker").await.is_none());
    bench.stop().await;
}

#[tokio::test(start_paused = true)]
async fn what_the_hpa_says_of_itself_is_said_as_long_as_there_is_one() {
    let bench = Bench::start().await;
    bench.deployment("worker", 1).await;
    bench
        .scaled_object(
            "worker",
            json!({"pollingInterval": 5, "minReplicaCount": 1, "triggers": [trigger("orders")]}),
        )
        .await;
    bench.until("there is an HPA", async || bench.hpa("keda-hpa-worker").await.is_some()).await;
    assert_eq!(bench.condition("worker", "HPAActive").await.0, "");
    let condition = json!({"type": "ScalingActive", "status": "False", "reason": "FailedGetExternalMetric", "message": "no",
        "lastTransitionTime": "2026-01-01T00:00:00Z"});
    let said = json!({"status": {"currentReplicas": 1, "desiredReplicas": 1, "conditions": [condition]}});
    bench.patch(&format!("{}/status", hpas("keda-hpa-worker")), said).await;
    let own = (
        "False".to_owned(),
        "FailedGetExternalMetric".to_owned(),
        "HPA is not actively scaling: no".to_owned(),
    );
    bench.until("it is mirrored", async || bench.condition("worker", "HPAActive").await == own).await;
    assert_eq!(bench.condition("worker", "Ready").await.0, "True");
    bench.patch(&objects("worker"), annotate("plimsoll.dev/act", "direct")).await;
    bench
        .until("without one nothing is said", async || {
            bench.condition("worker", "HPAActive").await.0.is_empty()
        })
        .await;
    bench.stop().await;
}
