//! Polls that fail in strict mode, as in KEDA.

use std::time::Duration;

use api::provider::Compat;
use serde_json::json;
use tokio::time::sleep;

use super::env::{TestEnv, trigger};
use super::sources::SourceResponse;
use crate::operator::OperatorSettings;

async fn strict() -> TestEnv {
    TestEnv::with(OperatorSettings { compat: Compat::Strict, ..OperatorSettings::default() }).await
}

#[tokio::test(start_paused = true)]
async fn skipped_poll_still_writes_health() {
    let env = strict().await;
    env.deployment("worker", 0).await;
    env.sources.set("orders", SourceResponse::Value(5));
    let source = json!({"type": "scripted", "name": "orders", "metadata": {"source": "orders"}});
    let modifiers = json!({"formula": "orders", "target": "2", "activationTarget": "much"});
    let fallback = json!({"failureThreshold": 3, "replicas": 1});
    let spec = json!({"pollingInterval": 5, "fallback": fallback, "advanced": {"scalingModifiers": modifiers}, "triggers": [source]});
    env.scaled_object("worker", spec).await;
    let health = async || env.status("worker").await["health"]["s0-orders"]["status"].clone();
    env.until("health is noted", async || health().await == "Happy").await;
    sleep(Duration::from_mins(1)).await;
    assert_eq!(env.condition("worker", "Active").await.0, "Unknown", "nothing is decided");
    assert_eq!(env.replicas("worker").await, 0);
    env.stop().await;
}

#[tokio::test(start_paused = true)]
async fn source_without_metrics_is_an_error_of_one_trigger() {
    let env = strict().await;
    env.deployment("worker", 0).await;
    env.sources.set("orders", SourceResponse::Value(5));
    env.sources.set("mails", SourceResponse::Empty);
    env.scaled_object(
        "worker",
        json!({"pollingInterval": 5, "triggers": [trigger("orders"), trigger("mails")]}),
    )
    .await;
    env.until("it is woken by the other", async || env.replicas("worker").await == 1).await;
    let partial = ("Unknown".to_owned(), "PartialTriggerError".to_owned());
    env.until("it says so", async || {
        let (state, reason, _) = env.condition("worker", "Ready").await;
        (state, reason) == partial
    })
    .await;
    let hpa = env.hpa("keda-hpa-worker").await.unwrap();
    assert_eq!(hpa["spec"]["metrics"].as_array().unwrap().len(), 1);
    env.stop().await;
}
