//! A ScaledObject is created, activated, deactivated, edited and deleted.

use std::time::Duration;

use http::Method;
use serde_json::json;
use tokio::time::{Instant, sleep};

use super::env::{TestEnv, hpas, objects, trigger};
use super::sources::SourceResponse;

#[tokio::test(start_paused = true)]
async fn new_object_gets_an_hpa_and_conditions() {
    let env = TestEnv::start().await;
    env.deployment("worker", 2).await;
    env.scaled_object("worker", json!({"maxReplicaCount": 20, "triggers": [trigger("orders")]})).await;
    env.until("it is ready", async || env.condition("worker", "Ready").await.0 == "True").await;
    let hpa = env.hpa("keda-hpa-worker").await.unwrap();
    assert_eq!(hpa["metadata"]["labels"]["scaledobject.keda.sh/name"], "worker");
    assert_eq!(hpa["metadata"]["labels"]["team"], "a");
    assert_eq!(hpa["metadata"]["annotations"]["note"], "x");
    assert_eq!(hpa["metadata"]["ownerReferences"][0]["kind"], "ScaledObject");
    assert_eq!((&hpa["spec"]["minReplicas"], &hpa["spec"]["maxReplicas"]), (&json!(1), &json!(20)));
    let metric = &hpa["spec"]["metrics"][0]["external"];
    assert_eq!(metric["metric"]["name"], "s0-orders");
    assert_eq!(metric["metric"]["selector"]["matchLabels"]["scaledobject.keda.sh/name"], "worker");
    assert_eq!(metric["target"]["averageValue"], "10");

    env.until("it was polled", async || env.condition("worker", "Active").await.0 == "False").await;
    let object = env.get(&objects("worker")).await.unwrap();
    assert_eq!(object["metadata"]["finalizers"], json!(["finalizer.keda.sh"]));
    assert_eq!(object["metadata"]["labels"]["scaledobject.keda.sh/name"], "worker");
    let status = &object["status"];
    assert_eq!(status["hpaName"], "keda-hpa-worker");
    assert_eq!(status["scaleTargetKind"], "apps/v1.Deployment");
    assert_eq!(status["scaleTargetGVKR"]["resource"], "deployments");
    assert_eq!(status["originalReplicaCount"], 2);
    assert_eq!(status["externalMetricNames"], json!(["s0-orders"]));
    assert_eq!((&status["triggersTypes"], &status["authenticationsTypes"]), (&json!("scripted"), &json!("")));
    assert_eq!(env.condition("worker", "Fallback").await.1, "NoFallbackFound");
    assert_eq!(env.condition("worker", "Paused").await.0, "False");
    for reason in ["ScaledObjectReady", "KEDAScalersStarted"] {
        env.until(reason, async || env.has_event("worker", reason).await).await;
    }
    env.stop().await;
}

#[tokio::test(start_paused = true)]
async fn target_is_activated_by_load_and_deactivated_after_the_cooldown() {
    let env = TestEnv::start().await;
    env.deployment("worker", 0).await;
    let spec = json!({"pollingInterval": 5, "cooldownPeriod": 60, "triggers": [trigger("orders")]});
    env.scaled_object("worker", spec).await;
    env.until("it was polled", async || env.condition("worker", "Active").await.1 == "ScalerNotActive").await;
    assert_eq!(env.replicas("worker").await, 0);

    env.sources.set("orders", SourceResponse::Value(25));
    let started = Instant::now();
    env.until("it is woken", async || env.replicas("worker").await == 1).await;
    assert!(started.elapsed() <= Duration::from_secs(6), "{:?}", started.elapsed());
    env.until("it says so", async || env.condition("worker", "Active").await.0 == "True").await;
    env.until("it is reported", async || env.has_event("worker", "KEDAScaleTargetActivated").await).await;
    assert_eq!(env.status("worker").await["triggersActivity"]["s0-orders"]["isActive"], true);

    // The HPA controller scales further, which the operator does not change.
    env.patch(&super::env::deployments("worker"), json!({"spec": {"replicas": 7}})).await;
    sleep(Duration::from_secs(30)).await;
    assert_eq!(env.replicas("worker").await, 7);

    env.sources.set("orders", SourceResponse::Value(0));
    env.until("it cools down", async || env.condition("worker", "Active").await.1 == "ScalerCooldown").await;
    let idle = Instant::now();
    env.until("it sleeps", async || env.replicas("worker").await == 0).await;
    assert!((50..70).contains(&idle.elapsed().as_secs()), "{:?}", idle.elapsed());
    env.until("it is reported", async || env.has_event("worker", "KEDAScaleTargetDeactivated").await).await;
    env.stop().await;
}

#[tokio::test(start_paused = true)]
async fn edits_reach_the_hpa_and_a_new_name_replaces_the_hpa() {
    let env = TestEnv::start().await;
    env.deployment("worker", 1).await;
    env.scaled_object("worker", json!({"triggers": [trigger("orders")]})).await;
    env.until("there is an HPA", async || env.hpa("keda-hpa-worker").await.is_some()).await;
    let edit = json!({"spec": {"maxReplicaCount": 7, "triggers": [trigger("orders"), trigger("mails")]}});
    env.patch(&objects("worker"), edit).await;
    let metrics =
        async || env.hpa("keda-hpa-worker").await.unwrap()["spec"]["metrics"].as_array().unwrap().len();
    env.until("it has two metrics", async || metrics().await == 2).await;
    assert_eq!(env.hpa("keda-hpa-worker").await.unwrap()["spec"]["maxReplicas"], 7);

    // An edit by another client is undone.
    env.patch(&hpas("keda-hpa-worker"), json!({"spec": {"maxReplicas": 50}})).await;
    let most = async || env.hpa("keda-hpa-worker").await.unwrap()["spec"]["maxReplicas"].clone();
    env.until("it is as it was", async || most().await == 7).await;
    env.delete(&hpas("keda-hpa-worker")).await;
    env.until("it is there again", async || env.hpa("keda-hpa-worker").await.is_some()).await;

    let rename = json!({"spec": {"advanced": {"horizontalPodAutoscalerConfig": {"name": "mine"}}}});
    env.patch(&objects("worker"), rename).await;
    env.until("it has another name", async || env.hpa("mine").await.is_some()).await;
    env.until("the old one is gone", async || env.hpa("keda-hpa-worker").await.is_none()).await;
    env.until("it says so", async || env.status("worker").await["hpaName"] == "mine").await;
    env.stop().await;
}

#[tokio::test(start_paused = true)]
async fn original_replica_count_is_restored_on_deletion() {
    let env = TestEnv::start().await;
    env.deployment("worker", 3).await;
    let advanced = json!({"restoreToOriginalReplicaCount": true});
    let spec = json!({"cooldownPeriod": 1, "pollingInterval": 1, "advanced": advanced, "triggers": [trigger("orders")]});
    env.scaled_object("worker", spec).await;
    env.until("it sleeps", async || env.replicas("worker").await == 0).await;
    env.delete(&objects("worker")).await;
    env.until("it is gone", async || env.get(&objects("worker")).await.is_none()).await;
    assert_eq!(env.replicas("worker").await, 3);
    for reason in ["ScaledObjectDeleted", "KEDAScalersStopped"] {
        env.until(reason, async || env.has_event("worker", reason).await).await;
    }
    env.until("its HPA went with it", async || env.hpa("keda-hpa-worker").await.is_none()).await;
    env.stop().await;
}

#[tokio::test(start_paused = true)]
async fn original_replica_count_is_restored_after_an_outage() {
    let env = TestEnv::start().await;
    env.deployment("worker", 3).await;
    let advanced = json!({"restoreToOriginalReplicaCount": true});
    let spec = json!({"cooldownPeriod": 1, "pollingInterval": 1, "advanced": advanced, "triggers": [trigger("orders")]});
    env.scaled_object("worker", spec.clone()).await;
    env.until("it sleeps", async || env.replicas("worker").await == 0).await;
    env.client_faults.refuse(Method::PUT, "/deployments/worker/scale", 503, 3);
    env.delete(&objects("worker")).await;
    env.until("it is gone", async || env.get(&objects("worker")).await.is_none()).await;
    assert_eq!(env.replicas("worker").await, 3);

    // If the write is always refused, the deletion is not blocked forever.
    env.scaled_object("worker", spec).await;
    env.until("it sleeps again", async || env.replicas("worker").await == 0).await;
    env.client_faults.refuse(Method::PUT, "/deployments/worker/scale", 403, u32::MAX);
    env.delete(&objects("worker")).await;
    let began = Instant::now();
    env.until("it is gone", async || env.get(&objects("worker")).await.is_none()).await;
    assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
    env.stop().await;
}
