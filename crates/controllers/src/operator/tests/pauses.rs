//! All forms of pauses.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::sleep;

use super::env::{TestEnv, objects, trigger};
use super::sources::SourceResponse;

fn annotate(key: &str, value: impl Into<Value>) -> Value {
    let value = value.into();
    json!({"metadata": {"annotations": {format!("autoscaling.keda.sh/{key}"): value}}})
}

#[tokio::test(start_paused = true)]
async fn pause_sets_the_replica_count_and_deletes_the_hpa_until_it_ends() {
    let env = TestEnv::start().await;
    env.deployment("worker", 1).await;
    env.scaled_object("worker", json!({"pollingInterval": 5, "triggers": [trigger("orders")]})).await;
    env.sources.set("orders", SourceResponse::Value(5));
    env.until("it is active", async || env.condition("worker", "Active").await.0 == "True").await;

    env.patch(&objects("worker"), annotate("paused-replicas", "4")).await;
    env.until("it is pinned", async || env.replicas("worker").await == 4).await;
    env.until("the HPA is gone", async || env.hpa("keda-hpa-worker").await.is_none()).await;
    env.until("it says so", async || env.condition("worker", "Paused").await.0 == "True").await;
    assert_eq!(env.status("worker").await["pausedReplicaCount"], 4);
    assert_eq!(env.condition("worker", "Ready").await.2, "ScaledObject is paused");
    let query_count = env.sources.queries("orders");
    sleep(Duration::from_mins(1)).await;
    assert_eq!(env.sources.queries("orders"), query_count, "no source is queried while it is paused");

    env.patch(&objects("worker"), annotate("paused-replicas", Value::Null)).await;
    env.until("the HPA is back", async || env.hpa("keda-hpa-worker").await.is_some()).await;
    env.until("it says so", async || env.condition("worker", "Paused").await.1 == "ScaledObjectUnpaused")
        .await;
    assert!(env.status("worker").await.get("pausedReplicaCount").is_none());
    env.until("it is queried again", async || env.sources.queries("orders") > query_count).await;

    env.patch(&objects("worker"), annotate("paused", "yes")).await;
    env.until("the HPA is gone again", async || env.hpa("keda-hpa-worker").await.is_none()).await;
    assert_eq!(env.replicas("worker").await, 4, "it stays where it is");
    env.stop().await;
}

#[tokio::test(start_paused = true)]
async fn invalid_paused_replicas_are_reported_and_retried() {
    let env = TestEnv::start().await;
    env.deployment("worker", 1).await;
    env.scaled_object("worker", json!({"triggers": [trigger("orders")]})).await;
    env.until("there is an HPA", async || env.hpa("keda-hpa-worker").await.is_some()).await;
    env.patch(&objects("worker"), annotate("paused-replicas", "abc")).await;
    env.until("it says so", async || {
        env.condition("worker", "Ready").await.2.contains("failed to parse paused replica count")
    })
    .await;
    env.patch(&objects("worker"), annotate("paused-replicas", "2")).await;
    env.until("it is pinned", async || env.replicas("worker").await == 2).await;
    env.stop().await;
}

#[tokio::test(start_paused = true)]
async fn pause_in_one_direction_stops_only_that_direction() {
    let env = TestEnv::start().await;
    env.deployment("worker", 0).await;
    let spec = json!({"pollingInterval": 5, "cooldownPeriod": 5, "triggers": [trigger("orders")]});
    env.scaled_object("worker", spec).await;
    env.until("there is an HPA", async || env.hpa("keda-hpa-worker").await.is_some()).await;
    env.patch(&objects("worker"), annotate("paused-scale-out", "true")).await;
    let policy = async |direction: &str| {
        let hpa = env.hpa("keda-hpa-worker").await.unwrap();
        hpa["spec"]["behavior"][direction]["selectPolicy"].clone()
    };
    env.until("the HPA knows", async || policy("scaleUp").await == "Disabled").await;
    env.sources.set("orders", SourceResponse::Value(9));
    sleep(Duration::from_mins(1)).await;
    assert_eq!(env.replicas("worker").await, 0);

    env.patch(&objects("worker"), annotate("paused-scale-out", Value::Null)).await;
    env.until("it is woken", async || env.replicas("worker").await == 1).await;
    env.patch(&objects("worker"), annotate("paused-scale-in", "true")).await;
    env.until("the HPA knows", async || policy("scaleDown").await == "Disabled").await;
    env.sources.set("orders", SourceResponse::Value(0));
    sleep(Duration::from_mins(1)).await;
    assert_eq!(env.replicas("worker").await, 1);
    env.stop().await;
}
