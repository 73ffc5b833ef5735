//! When a target rests, and how far: cooldowns, idle counts, activation that is forced.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::bench::{Bench, annotate, deployments, objects, trigger};
use super::script::Says;

#[tokio::test(start_paused = true)]
async fn what_was_never_active_rests_after_the_initial_cooldown() {
    let bench = Bench::start().await;
    bench.deployment("worker", 3).await;
    let began = Instant::now();
    let spec = json!({"pollingInterval": 5, "initialCooldownPeriod": 120, "cooldownPeriod": 5, "triggers": [trigger("orders")]});
    bench.scaled_object("worker", spec).await;
    bench
        .until("it cools down", async || bench.condition("worker", "Active").await.1 == "ScalerCooldown")
        .await;
    bench.until("it rests", async || bench.replicas("worker").await == 0).await;
    assert!((119..132).contains(&began.elapsed().as_secs()), "{:?}", began.elapsed());
    bench.stop().await;
}

#[tokio::test(start_paused = true)]
async fn rest_is_at_the_idle_count_and_work_at_the_minimum() {
    let bench = Bench::start().await;
    bench.deployment("worker", 7).await;
    let spec = json!({"pollingInterval": 5, "cooldownPeriod": 30, "minReplicaCount": 3, "idleReplicaCount": 1,
        "triggers": [trigger("orders")]});
    bench.scaled_object("worker", spec).await;
    bench.until("it rests", async || bench.replicas("worker").await == 1).await;
    assert_eq!(bench.hpa("keda-hpa-worker").await.unwrap()["spec"]["minReplicas"], 3);
    bench.script.say("orders", Says::Value(1));
    bench.until("it works", async || bench.replicas("worker").await == 3).await;
    bench.script.say("orders", Says::Value(0));
    bench.until("it rests again", async || bench.replicas("worker").await == 1).await;
    // Below that is not for us to change.
    bench.patch(&deployments("worker"), json!({"spec": {"replicas": 0}})).await;
    sleep(Duration::from_mins(1)).await;
    assert_eq!(bench.replicas("worker").await, 0);
    bench.stop().await;
}

#[tokio::test(start_paused = true)]
async fn at_rest_polls_come_a_little_early_so_that_work_is_taken_up_within_the_interval() {
    let bench = Bench::start().await;
    bench.deployment("worker", 0).await;
    bench.scaled_object("worker", json!({"pollingInterval": 30, "triggers": [trigger("orders")]})).await;
    bench.until("it rests", async || bench.condition("worker", "Active").await.0 == "False").await;
    let polls = async |time: u64| {
        let before = bench.script.asked("orders");
        sleep(Duration::from_secs(time)).await;
        bench.script.asked("orders") - before
    };
    sleep(Duration::from_mins(1)).await;
    assert_eq!(polls(29 * 30).await, 30);
    // Just asked, as far from the next poll as can be.
    let before = bench.script.asked("orders");
    bench.until("it is polled", async || bench.script.asked("orders") > before).await;
    let began = Instant::now();
    bench.script.say("orders", Says::Value(1));
    bench.until("it works", async || bench.replicas("worker").await == 1).await;
    assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
    sleep(Duration::from_mins(1)).await;
    assert_eq!(polls(29 * 30).await, 29);
    bench.stop().await;
}

#[tokio::test(start_paused = true)]
async fn whoever_scales_below_the_minimum_is_corrected() {
    let bench = Bench::start().await;
    bench.deployment("worker", 0).await;
    let spec = json!({"pollingInterval": 5, "minReplicaCount": 2, "triggers": [trigger("orders")]});
    bench.scaled_object("worker", spec).await;
    bench.until("it is lifted", async || bench.replicas("worker").await == 2).await;
    assert_eq!(bench.condition("worker", "Active").await.1, "ScalerNotActive");
    bench.stop().await;
}

#[tokio::test(start_paused = true)]
async fn activation_can_be_forced() {
    let bench = Bench::start().await;
    bench.deployment("worker", 0).await;
    let spec = json!({"pollingInterval": 5, "cooldownPeriod": 5, "triggers": [trigger("orders")]});
    bench.scaled_object("worker", spec).await;
    bench.until("it was polled", async || bench.condition("worker", "Active").await.0 == "False").await;
    let key = "autoscaling.keda.sh/force-activation";
    bench.patch(&objects("worker"), annotate(key, "true")).await;
    bench.until("it is woken", async || bench.replicas("worker").await == 1).await;
    let message = "Scaling is performed because activation is being forced by annotation";
    bench.until("it says why", async || bench.condition("worker", "Active").await.2 == message).await;
    bench
        .until("it is told", async || {
            let events = bench.events("worker").await;
            events.iter().any(|(_, note)| note.ends_with("caused by forced activation annotation"))
        })
        .await;
    bench.patch(&objects("worker"), annotate(key, Value::Null)).await;
    bench.until("it rests", async || bench.replicas("worker").await == 0).await;
    bench.stop().await;
}

#[tokio::test(start_paused = true)]
async fn an_edit_is_acted_on_at_once() {
    let bench = Bench::start().await;
    bench.deployment("worker", 0).await;
    bench.script.say("mails", Says::Value(5));
    bench.scaled_object("worker", json!({"pollingInterval": 3600, "triggers": [trigger("orders")]})).await;
    bench.until("it was polled", async || bench.condition("worker", "Active").await.0 == "False").await;
    let began = Instant::now();
    bench.patch(&objects("worker"), json!({"spec": {"triggers": [trigger("mails")]}})).await;
    bench.until("it is woken", async || bench.replicas("worker").await == 1).await;
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    bench.stop().await;
}
