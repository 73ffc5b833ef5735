//! What was watched may be old: nothing is taken away for that, and nothing that was asked for is lost.

use std::time::Duration;

use http::Method;
use serde_json::{Value, json};
use tokio::time::sleep;

use super::bench::{Bench, deployments, objects, trigger};
use super::script::Says;

/// An operator with one object, whose target has so many replicas; then its target changes, and nobody is told.
async fn moved(spec: Value, seen: i32, real: i32) -> Bench {
    let bench = Bench::start().await;
    bench.deployment("worker", seen).await;
    let mut whole = json!({"pollingInterval": 5, "triggers": [trigger("orders")]});
    whole.as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
    bench.scaled_object("worker", whole).await;
    bench.until("it was polled", async || bench.script.asked("orders") > 2).await;
    // TargetIndex are watched a moment after the first object has come.
    sleep(Duration::from_secs(5)).await;
    bench.wire.hold("/deployments");
    bench.patch(&deployments("worker"), json!({"spec": {"replicas": real}})).await;
    bench
}

async fn is_active(bench: &Bench) -> bool {
    bench.condition("worker", "Active").await.0 == "True"
}

#[tokio::test(start_paused = true)]
async fn waking_takes_nothing_away_that_somebody_added() {
    let bench = moved(json!({}), 0, 5).await;
    bench.script.say("orders", Says::Value(25));
    bench.until("it is active", async || is_active(&bench).await).await;
    sleep(Duration::from_secs(30)).await;
    assert_eq!(bench.replicas("worker").await, 5);
    assert!(!bench.has_event("worker", "KEDAScaleTargetActivationFailed").await, "nothing has failed");
    assert!(bench.status("worker").await["lastActiveTime"].is_string(), "it was active");
    bench.wire.release();
    bench.stop().await;
}

#[tokio::test(start_paused = true)]
async fn lifting_to_the_minimum_takes_nothing_away() {
    let bench = moved(json!({}), 0, 0).await;
    bench.wire.release();
    bench.script.say("orders", Says::Value(1));
    bench.until("it is active", async || is_active(&bench).await).await;
    bench.until("it is woken", async || bench.replicas("worker").await == 1).await;
    sleep(Duration::from_secs(5)).await;
    // What is seen is below the minimum, what is there is not.
    bench.wire.hold("/deployments");
    bench.patch(&deployments("worker"), json!({"spec": {"replicas": 9}})).await;
    bench.patch(&objects("worker"), json!({"spec": {"minReplicaCount": 4}})).await;
    bench.script.say("orders", Says::Value(0));
    bench.until("it is not active", async || !is_active(&bench).await).await;
    sleep(Duration::from_secs(30)).await;
    assert_eq!(bench.replicas("worker").await, 9);
    bench.wire.release();
    bench.stop().await;
}

#[tokio::test(start_paused = true)]
async fn who_is_woken_from_another_count_than_was_seen_is_woken() {
    let bench = moved(json!({"minReplicaCount": 3, "idleReplicaCount": 0}), 0, 1).await;
    assert_eq!(bench.replicas("worker").await, 1);
    bench.script.say("orders", Says::Value(25));
    bench.until("it is woken, though the watch is late", async || bench.replicas("worker").await == 3).await;
    let told =
        async || bench.events("worker").await.into_iter().any(|(_, note)| note.contains("from 1 to 3"));
    bench.until("it is told", told).await;
    bench.wire.release();
    bench.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_pause_pins_what_is_there_and_not_what_was_seen() {
    let bench = moved(json!({}), 0, 7).await;
    bench.patch(&objects("worker"), super::bench::annotate("autoscaling.keda.sh/paused-replicas", "0")).await;
    bench.until("it says so", async || bench.condition("worker", "Paused").await.0 == "True").await;
    assert_eq!(bench.replicas("worker").await, 0);
    bench.wire.release();
    bench.stop().await;
}

#[tokio::test(start_paused = true)]
async fn an_hpa_that_was_neither_seen_nor_noted_goes_when_its_object_is_paused() {
    let bench = Bench::start().await;
    bench.deployment("worker", 1).await;
    bench.wire.hold("/horizontalpodautoscalers");
    bench.wire.refuse(Method::PATCH, "/scaledobjects/worker/status", 500, u32::MAX);
    bench.scaled_object("worker", json!({"triggers": [trigger("orders")]})).await;
    bench.until("there is an HPA", async || bench.hpa("keda-hpa-worker").await.is_some()).await;
    assert!(bench.status("worker").await.get("hpaName").is_none());
    bench.patch(&objects("worker"), super::bench::annotate("autoscaling.keda.sh/paused", "true")).await;
    sleep(Duration::from_secs(1)).await;
    bench.wire.let_through();
    bench.until("it says so", async || bench.condition("worker", "Paused").await.0 == "True").await;
    assert!(bench.hpa("keda-hpa-worker").await.is_none(), "it would scale what is paused");
    bench.wire.release();
    bench.stop().await;
}

#[tokio::test(start_paused = true)]
async fn answers_from_before_a_push_put_nothing_to_sleep() {
    let bench = Bench::start().await;
    bench.deployment("worker", 0).await;
    let trigger = json!({"type": "scripted-push", "metadata": {"source": "orders"}});
    let spec = json!({"pollingInterval": 20, "cooldownPeriod": 0, "triggers": [trigger]});
    bench.scaled_object("worker", spec).await;
    bench.until("it was polled", async || bench.condition("worker", "Active").await.0 == "False").await;
    bench.script.say("orders", Says::Late(Duration::from_secs(4), 0));
    let asked = bench.script.asked("orders");
    bench.until("it is asked", async || bench.script.asked("orders") > asked).await;
    sleep(Duration::from_secs(1)).await;
    bench.script.push();
    bench.until("it is woken", async || bench.replicas("worker").await == 1).await;
    // By now the source has said that there was nothing to do.
    sleep(Duration::from_secs(6)).await;
    assert_eq!(bench.replicas("worker").await, 1);
    bench.until("the next answer counts", async || bench.replicas("worker").await == 0).await;
    bench.stop().await;
}
