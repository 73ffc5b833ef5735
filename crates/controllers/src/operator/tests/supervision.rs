//! Reconciles, polls and activations that panic are reported and retried; other objects go on.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::sleep;

use super::env::{TestEnv, trigger};
use super::sources::SourceResponse;
use crate::operator::{OperatorSettings, ScalingMode};

fn scaled_by(source: &str) -> Value {
    json!({"pollingInterval": 5, "triggers": [trigger(source)]})
}

/// The value of `plimsoll_reconcile_panics_total`.
fn panics(env: &TestEnv) -> u64 {
    let text = env.handle.exported_metrics();
    let count = text.lines().find_map(|line| line.strip_prefix("plimsoll_reconcile_panics_total "));
    count.unwrap().parse().unwrap()
}

/// Waits until the event `ReconcilePanicked` with this text is recorded.
async fn until_reported(env: &TestEnv, text: &str) {
    env.until(text, async || {
        env.events("worker").await.contains(&("ReconcilePanicked".to_owned(), text.to_owned()))
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn poll_that_panics_is_retried_with_backoff_while_another_object_scales() {
    let env = TestEnv::start().await;
    env.deployment("worker", 0).await;
    env.deployment("other", 0).await;
    env.sources.set("orders", SourceResponse::Panics);
    env.scaled_object("worker", scaled_by("orders")).await;
    env.scaled_object("other", scaled_by("mails")).await;
    until_reported(&env, "reconcile panicked and is retried in 1 s: injected fault").await;
    until_reported(&env, "reconcile panicked and is retried in 2 s: injected fault").await;
    env.sources.set("mails", SourceResponse::Value(5));
    env.until("the other object is activated", async || env.replicas("other").await == 1).await;
    sleep(Duration::from_mins(4)).await;
    // After 1, 2, 4, 8, 16, 32, 64 and 128 seconds, although the polling interval is 5 s.
    assert!((7..=10).contains(&panics(&env)), "{}", panics(&env));
    assert_eq!(env.replicas("worker").await, 0);
    env.sources.set("orders", SourceResponse::Value(5));
    env.until("the object is activated", async || env.replicas("worker").await == 1).await;
    env.stop().await;
}

#[tokio::test(start_paused = true)]
async fn reconcile_that_panics_is_repeated() {
    let env = TestEnv::start().await;
    env.handle.faults().panic_in_reconcile("ScaledObject shop/worker");
    env.deployment("worker", 0).await;
    env.scaled_object("worker", scaled_by("orders")).await;
    until_reported(&env, "reconcile panicked and is retried in 4 s: injected fault").await;
    assert_eq!(env.hpa("keda-hpa-worker").await, None);
    env.handle.faults().clear();
    env.until("the HPA is created", async || env.hpa("keda-hpa-worker").await.is_some()).await;
    env.stop().await;
}

/// An operator in scaling mode `direct` with a push trigger whose source was queried once.
async fn with_push_trigger() -> TestEnv {
    let settings = OperatorSettings { scaling_mode: ScalingMode::Direct, ..OperatorSettings::default() };
    let env = TestEnv::with(settings).await;
    env.deployment("worker", 0).await;
    let push = json!({"type": "scripted-push", "metadata": {"source": "orders"}});
    env.scaled_object("worker", json!({"pollingInterval": 3600, "triggers": [push]})).await;
    env.until("it was polled", async || env.condition("worker", "Active").await.0 == "False").await;
    env
}

#[tokio::test(start_paused = true)]
async fn activation_that_panics_is_reported_and_later_pushes_activate() {
    let env = with_push_trigger().await;
    env.sources.set("orders", SourceResponse::Panics);
    env.sources.push();
    until_reported(&env, "activation panicked and is retried in 1 s: injected fault").await;
    env.sources.set("orders", SourceResponse::Value(35));
    env.sources.push();
    env.until("the target is scaled", async || env.replicas("worker").await == 4).await;
    env.stop().await;
}

#[tokio::test(start_paused = true)]
async fn activation_that_panics_is_retried_by_a_poll() {
    let env = with_push_trigger().await;
    env.sources.set("orders", SourceResponse::Panics);
    env.sources.push();
    until_reported(&env, "activation panicked and is retried in 1 s: injected fault").await;
    env.sources.set("orders", SourceResponse::Value(35));
    let before = env.sources.queries("orders");
    sleep(Duration::from_secs(3)).await;
    assert!(env.sources.queries("orders") > before, "the polling interval is an hour");
    assert_eq!(env.replicas("worker").await, 4);
    env.stop().await;
}

#[tokio::test(start_paused = true)]
async fn push_stream_that_panics_is_reported_and_opened_again() {
    let env = with_push_trigger().await;
    env.sources.panic_in_push();
    until_reported(&env, "the stream of trigger 0 panicked and is retried in 1 s: injected fault").await;
    assert_eq!(panics(&env), 1);
    sleep(Duration::from_secs(2)).await;
    env.sources.set("orders", SourceResponse::Value(35));
    env.sources.push();
    env.until("the target is scaled", async || env.replicas("worker").await == 4).await;
    env.stop().await;
}
