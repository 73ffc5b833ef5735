//! Cooldowns, idle counts, forced activation.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::env::{TestEnv, annotate, deployments, objects, trigger};
use super::sources::SourceResponse;

#[tokio::test(start_paused = true)]
async fn inactive_target_is_deactivated_after_the_initial_cooldown() {
    let env = TestEnv::start().await;
    env.deployment("worker", 3).await;
    let began = Instant::now();
    let spec = json!({"pollingInterval": 5, "initialCooldownPeriod": 120, "cooldownPeriod": 5, "triggers": [trigger("orders")]});
    env.scaled_object("worker", spec).await;
    env.until("it cools down", async || env.condition("worker", "Active").await.1 == "ScalerCooldown").await;
    env.until("it rests", async || env.replicas("worker").await == 0).await;
    assert!((119..132).contains(&began.elapsed().as_secs()), "{:?}", began.elapsed());
    env.stop().await;
}

#[tokio::test(start_paused = true)]
async fn idle_count_applies_when_inactive_and_minimum_when_active() {
    let env = TestEnv::start().await;
    env.deployment("worker", 7).await;
    let spec = json!({"pollingInterval": 5, "cooldownPeriod": 30, "minReplicaCount": 3, "idleReplicaCount": 1,
        "triggers": [trigger("orders")]});
    env.scaled_object("worker", spec).await;
    env.until("it rests", async || env.replicas("worker").await == 1).await;
    assert_eq!(env.hpa("keda-hpa-worker").await.unwrap()["spec"]["minReplicas"], 3);
    env.sources.set("orders", SourceResponse::Value(1));
    env.until("it works", async || env.replicas("worker").await == 3).await;
    env.sources.set("orders", SourceResponse::Value(0));
    env.until("it rests again", async || env.replicas("worker").await == 1).await;
    // The operator does not change a count below the idle count.
    env.patch(&deployments("worker"), json!({"spec": {"replicas": 0}})).await;
    sleep(Duration::from_mins(1)).await;
    assert_eq!(env.replicas("worker").await, 0);
    env.stop().await;
}

#[tokio::test(start_paused = true)]
async fn inactive_target_is_activated_within_the_polling_interval() {
    let env = TestEnv::start().await;
    env.deployment("worker", 0).await;
    env.scaled_object("worker", json!({"pollingInterval": 30, "triggers": [trigger("orders")]})).await;
    env.until("it rests", async || env.condition("worker", "Active").await.0 == "False").await;
    let polls = async |time: u64| {
        let before = env.sources.queries("orders");
        sleep(Duration::from_secs(time)).await;
        env.sources.queries("orders") - before
    };
    sleep(Duration::from_mins(1)).await;
    assert_eq!(polls(29 * 30).await, 30);
    // Right after a poll, the next one is a whole interval away.
    let before = env.sources.queries("orders");
    env.until("it is polled", async || env.sources.queries("orders") > before).await;
    let began = Instant::now();
    env.sources.set("orders", SourceResponse::Value(1));
    env.until("it works", async || env.replicas("worker").await == 1).await;
    assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
    sleep(Duration::from_mins(1)).await;
    assert_eq!(polls(29 * 30).await, 29);
    env.stop().await;
}

#[tokio::test(start_paused = true)]
async fn count_below_the_minimum_is_corrected() {
    let env = TestEnv::start().await;
    env.deployment("worker", 0).await;
    let spec = json!({"pollingInterval": 5, "minReplicaCount": 2, "triggers": [trigger("orders")]});
    env.scaled_object("worker", spec).await;
    env.until("it is lifted", async || env.replicas("worker").await == 2).await;
    assert_eq!(env.condition("worker", "Active").await.1, "ScalerNotActive");
    env.stop().await;
}

#[tokio::test(start_paused = true)]
async fn activation_can_be_forced() {
    let env = TestEnv::start().await;
    env.deployment("worker", 0).await;
    let spec = json!({"pollingInterval": 5, "cooldownPeriod": 5, "triggers": [trigger("orders")]});
    env.scaled_object("worker", spec).await;
    env.until("it was polled", async || env.condition("worker", "Active").await.0 == "False").await;
    let key = "autoscaling.keda.sh/force-activation";
    env.patch(&objects("worker"), annotate(key, "true")).await;
    env.until("it is woken", async || env.replicas("worker").await == 1).await;
    let message = "Scaling is performed because activation is being forced by annotation";
    env.until("it says why", async || env.condition("worker", "Active").await.2 == message).await;
    env.until("it is reported", async || {
        let events = env.events("worker").await;
        events.iter().any(|(_, note)| note.ends_with("caused by forced activation annotation"))
    })
    .await;
    env.patch(&objects("worker"), annotate(key, Value::Null)).await;
    env.until("it rests", async || env.replicas("worker").await == 0).await;
    env.stop().await;
}

#[tokio::test(start_paused = true)]
async fn edited_object_is_polled_at_once() {
    let env = TestEnv::start().await;
    env.deployment("worker", 0).await;
    env.sources.set("mails", SourceResponse::Value(5));
    env.scaled_object("worker", json!({"pollingInterval": 3600, "triggers": [trigger("orders")]})).await;
    env.until("it was polled", async || env.condition("worker", "Active").await.0 == "False").await;
    let began = Instant::now();
    env.patch(&objects("worker"), json!({"spec": {"triggers": [trigger("mails")]}})).await;
    env.until("it is woken", async || env.replicas("worker").await == 1).await;
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    env.stop().await;
}
