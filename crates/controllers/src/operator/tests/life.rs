//! The life of a ScaledObject: made, woken, put to sleep, edited, deleted.

use std::time::Duration;

use http::Method;
use serde_json::json;
use tokio::time::{Instant, sleep};

use super::bench::{Bench, hpas, objects, trigger};
use super::script::Says;

#[tokio::test(start_paused = true)]
async fn a_new_object_gets_its_hpa_and_says_so() {
    let bench = Bench::start().await;
    bench.deployment("worker", 2).await;
    bench.scaled_object("worker", json!({"maxReplicaCount": 20, "triggers": [trigger("orders")]})).await;
    bench.until("it is ready", async || bench.condition("worker", "Ready").await.0 == "True").await;
    let hpa = bench.hpa("keda-hpa-worker").await.unwrap();
    assert_eq!(hpa["metadata"]["labels"]["scaledobject.keda.sh/name"], "worker");
    assert_eq!(hpa["metadata"]["labels"]["team"], "a");
    assert_eq!(hpa["metadata"]["annotations"]["note"], "x");
    assert_eq!(hpa["metadata"]["ownerReferences"][0]["kind"], "ScaledObject");
    assert_eq!((&hpa["spec"]["minReplicas"], &hpa["spec"]["maxReplicas"]), (&json!(1), &json!(20)));
    let metric = &hpa["spec"]["metrics"][0]["external"];
    assert_eq!(metric["metric"]["name"], "s0-orders");
    assert_eq!(metric["metric"]["selector"]["matchLabels"]["scaledobject.keda.sh/name"], "worker");
    assert_eq!(metric["target"]["averageValue"], "10");

    bench.until("it was polled", async || bench.condition("worker", "Active").await.0 == "False").await;
    let object = bench.get(&objects("worker")).await.unwrap();
    assert_eq!(object["metadata"]["finalizers"], json!(["finalizer.keda.sh"]));
    assert_eq!(object["metadata"]["labels"]["scaledobject.keda.sh/name"], "worker");
    let status = &object["status"];
    assert_eq!(status["hpaName"], "keda-hpa-worker");
    assert_eq!(status["scaleTargetKind"], "apps/v1.Deployment");
    assert_eq!(status["scaleTargetGVKR"]["resource"], "deployments");
    assert_eq!(status["originalReplicaCount"], 2);
    assert_eq!(status["externalMetricNames"], json!(["s0-orders"]));
    assert_eq!((&status["triggersTypes"], &status["authenticationsTypes"]), (&json!("scripted"), &json!("")));
    assert_eq!(bench.condition("worker", "Fallback").await.1, "NoFallbackFound");
    assert_eq!(bench.condition("worker", "Paused").await.0, "False");
    for reason in ["ScaledObjectReady", "KEDAScalersStarted"] {
        bench.until(reason, async || bench.has_event("worker", reason).await).await;
    }
    bench.stop().await;
}

#[tokio::test(start_paused = true)]
async fn work_wakes_a_target_and_its_end_puts_it_to_sleep_after_the_cooldown() {
    let bench = Bench::start().await;
    bench.deployment("worker", 0).await;
    let spec = json!({"pollingInterval": 5, "cooldownPeriod": 60, "triggers": [trigger("orders")]});
    bench.scaled_object("worker", spec).await;
    bench
        .until("it was polled", async || bench.condition("worker", "Active").await.1 == "ScalerNotActive")
        .await;
    assert_eq!(bench.replicas("worker").await, 0);

    bench.script.say("orders", Says::Value(25));
    let asked = Instant::now();
    bench.until("it is woken", async || bench.replicas("worker").await == 1).await;
    assert!(asked.elapsed() <= Duration::from_secs(6), "{:?}", asked.elapsed());
    bench.until("it says so", async || bench.condition("worker", "Active").await.0 == "True").await;
    bench.until("it is told", async || bench.has_event("worker", "KEDAScaleTargetActivated").await).await;
    assert_eq!(bench.status("worker").await["triggersActivity"]["s0-orders"]["isActive"], true);

    // Somebody, usually an HPA controller, scales further; that is none of our business.
    bench.patch(&super::bench::deployments("worker"), json!({"spec": {"replicas": 7}})).await;
    sleep(Duration::from_secs(30)).await;
    assert_eq!(bench.replicas("worker").await, 7);

    bench.script.say("orders", Says::Value(0));
    bench
        .until("it cools down", async || bench.condition("worker", "Active").await.1 == "ScalerCooldown")
        .await;
    let idle = Instant::now();
    bench.until("it sleeps", async || bench.replicas("worker").await == 0).await;
    assert!((50..70).contains(&idle.elapsed().as_secs()), "{:?}", idle.elapsed());
    bench.until("it is told", async || bench.has_event("worker", "KEDAScaleTargetDeactivated").await).await;
    bench.stop().await;
}

#[tokio::test(start_paused = true)]
async fn edits_reach_the_hpa_and_a_new_name_replaces_it() {
    let bench = Bench::start().await;
    bench.deployment("worker", 1).await;
    bench.scaled_object("worker", json!({"triggers": [trigger("orders")]})).await;
    bench.until("there is an HPA", async || bench.hpa("keda-hpa-worker").await.is_some()).await;
    let edit = json!({"spec": {"maxReplicaCount": 7, "triggers": [trigger("orders"), trigger("mails")]}});
    bench.patch(&objects("worker"), edit).await;
    let metrics =
        async || bench.hpa("keda-hpa-worker").await.unwrap()["spec"]["metrics"].as_array().unwrap().len();
    bench.until("it has two metrics", async || metrics().await == 2).await;
    assert_eq!(bench.hpa("keda-hpa-worker").await.unwrap()["spec"]["maxReplicas"], 7);

    // What somebody else does to it is undone.
    bench.patch(&hpas("keda-hpa-worker"), json!({"spec": {"maxReplicas": 50}})).await;
    let most = async || bench.hpa("keda-hpa-worker").await.unwrap()["spec"]["maxReplicas"].clone();
    bench.until("it is as it was", async || most().await == 7).await;
    bench.delete(&hpas("keda-hpa-worker")).await;
    bench.until("it is there again", async || bench.hpa("keda-hpa-worker").await.is_some()).await;

    let rename = json!({"spec": {"advanced": {"horizontalPodAutoscalerConfig": {"name": "mine"}}}});
    bench.patch(&objects("worker"), rename).await;
    bench.until("it has another name", async || bench.hpa("mine").await.is_some()).await;
    bench.until("the old one is gone", async || bench.hpa("keda-hpa-worker").await.is_none()).await;
    bench.until("it says so", async || bench.status("worker").await["hpaName"] == "mine").await;
    bench.stop().await;
}

#[tokio::test(start_paused = true)]
async fn the_first_count_comes_back_when_an_object_is_deleted() {
    let bench = Bench::start().await;
    bench.deployment("worker", 3).await;
    let advanced = json!({"restoreToOriginalReplicaCount": true});
    let spec = json!({"cooldownPeriod": 1, "pollingInterval": 1, "advanced": advanced, "triggers": [trigger("orders")]});
    bench.scaled_object("worker", spec).await;
    bench.until("it sleeps", async || bench.replicas("worker").await == 0).await;
    bench.delete(&objects("worker")).await;
    bench.until("it is gone", async || bench.get(&objects("worker")).await.is_none()).await;
    assert_eq!(bench.replicas("worker").await, 3);
    for reason in ["ScaledObjectDeleted", "KEDAScalersStopped"] {
        bench.until(reason, async || bench.has_event("worker", reason).await).await;
    }
    bench.until("its HPA went with it", async || bench.hpa("keda-hpa-worker").await.is_none()).await;
    bench.stop().await;
}

#[tokio::test(start_paused = true)]
async fn the_first_count_comes_back_although_the_server_was_away() {
    let bench = Bench::start().await;
    bench.deployment("worker", 3).await;
    let advanced = json!({"restoreToOriginalReplicaCount": true});
    let spec = json!({"cooldownPeriod": 1, "pollingInterval": 1, "advanced": advanced, "triggers": [trigger("orders")]});
    bench.scaled_object("worker", spec.clone()).await;
    bench.until("it sleeps", async || bench.replicas("worker").await == 0).await;
    bench.wire.refuse(Method::PUT, "/deployments/worker/scale", 503, 3);
    bench.delete(&objects("worker")).await;
    bench.until("it is gone", async || bench.get(&objects("worker")).await.is_none()).await;
    assert_eq!(bench.replicas("worker").await, 3);

    // Where that is never allowed, the object is not kept for ever.
    bench.scaled_object("worker", spec).await;
    bench.until("it sleeps again", async || bench.replicas("worker").await == 0).await;
    bench.wire.refuse(Method::PUT, "/deployments/worker/scale", 403, u32::MAX);
    bench.delete(&objects("worker")).await;
    let began = Instant::now();
    bench.until("it is gone", async || bench.get(&objects("worker")).await.is_none()).await;
    assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
    bench.stop().await;
}
