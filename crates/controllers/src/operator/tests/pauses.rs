//! All forms of pauses.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::sleep;

use super::bench::{Bench, objects, trigger};
use super::script::Says;

fn annotate(key: &str, value: impl Into<Value>) -> Value {
    let value = value.into();
    json!({"metadata": {"annotations": {format!("autoscaling.keda.sh/{key}"): value}}})
}

#[tokio::test(start_paused = true)]
async fn a_full_pause_pins_the_target_and_removes_the_hpa_until_it_ends() {
    let bench = Bench::start().await;
    bench.deployment("worker", 1).await;
    bench.scaled_object("worker", json!({"pollingInterval": 5, "triggers": [trigger("orders")]})).await;
    bench.script.say("orders", Says::Value(5));
    bench.until("it is active", async || bench.condition("worker", "Active").await.0 == "True").await;

    bench.patch(&objects("worker"), annotate("paused-replicas", "4")).await;
    bench.until("it is pinned", async || bench.replicas("worker").await == 4).await;
    bench.until("the HPA is gone", async || bench.hpa("keda-hpa-worker").await.is_none()).await;
    bench.until("it says so", async || bench.condition("worker", "Paused").await.0 == "True").await;
    assert_eq!(bench.status("worker").await["pausedReplicaCount"], 4);
    assert_eq!(bench.condition("worker", "Ready").await.2, "ScaledObject is paused");
    let asked = bench.script.asked("orders");
    sleep(Duration::from_mins(1)).await;
    assert_eq!(bench.script.asked("orders"), asked, "nobody is asked while it is paused");

    bench.patch(&objects("worker"), annotate("paused-replicas", Value::Null)).await;
    bench.until("the HPA is back", async || bench.hpa("keda-hpa-worker").await.is_some()).await;
    bench
        .until("it says so", async || bench.condition("worker", "Paused").await.1 == "ScaledObjectUnpaused")
        .await;
    assert!(bench.status("worker").await.get("pausedReplicaCount").is_none());
    bench.until("it is asked again", async || bench.script.asked("orders") > asked).await;

    bench.patch(&objects("worker"), annotate("paused", "yes")).await;
    bench.until("the HPA is gone again", async || bench.hpa("keda-hpa-worker").await.is_none()).await;
    assert_eq!(bench.replicas("worker").await, 4, "it stays where it is");
    bench.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_pause_that_cannot_be_read_is_said_and_tried_again() {
    let bench = Bench::start().await;
    bench.deployment("worker", 1).await;
    bench.scaled_object("worker", json!({"triggers": [trigger("orders")]})).await;
    bench.until("there is an HPA", async || bench.hpa("keda-hpa-worker").await.is_some()).await;
    bench.patch(&objects("worker"), annotate("paused-replicas", "abc")).await;
    bench
        .until("it says so", async || {
            bench.condition("worker", "Ready").await.2.contains("failed to parse paused replica count")
        })
        .await;
    bench.patch(&objects("worker"), annotate("paused-replicas", "2")).await;
    bench.until("it is pinned", async || bench.replicas("worker").await == 2).await;
    bench.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_pause_in_one_direction_stops_that_one_only() {
    let bench = Bench::start().await;
    bench.deployment("worker", 0).await;
    let spec = json!({"pollingInterval": 5, "cooldownPeriod": 5, "triggers": [trigger("orders")]});
    bench.scaled_object("worker", spec).await;
    bench.until("there is an HPA", async || bench.hpa("keda-hpa-worker").await.is_some()).await;
    bench.patch(&objects("worker"), annotate("paused-scale-out", "true")).await;
    let policy = async |direction: &str| {
        let hpa = bench.hpa("keda-hpa-worker").await.unwrap();
        hpa["spec"]["behavior"][direction]["selectPolicy"].clone()
    };
    bench.until("the HPA knows", async || policy("scaleUp").await == "Disabled").await;
    bench.script.say("orders", Says::Value(9));
    sleep(Duration::from_mins(1)).await;
    assert_eq!(bench.replicas("worker").await, 0);

    bench.patch(&objects("worker"), annotate("paused-scale-out", Value::Null)).await;
    bench.until("it is woken", async || bench.replicas("worker").await == 1).await;
    bench.patch(&objects("worker"), annotate("paused-scale-in", "true")).await;
    bench.until("the HPA knows", async || policy("scaleDown").await == "Disabled").await;
    bench.script.say("orders", Says::Value(0));
    sleep(Duration::from_mins(1)).await;
    assert_eq!(bench.replicas("worker").await, 1);
    bench.stop().await;
}
