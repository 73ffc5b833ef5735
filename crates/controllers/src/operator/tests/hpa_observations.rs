//! Since KEDA 2.21, polls of objects that never scale to zero use what the HPA has requested.

use std::time::Duration;

use api::keda::KedaProfile;
use serde_json::{Value, json};
use tokio::time::sleep;

use super::env::{TestEnv, hpas, trigger};
use super::sources::SourceResponse;
use crate::operator::OperatorSettings;

/// An operator that shares no samples, so that every query is counted.
async fn env(profile: KedaProfile) -> TestEnv {
    env_with(OperatorSettings { profile, sample_age: Duration::ZERO, ..OperatorSettings::default() }).await
}

async fn env_with(settings: OperatorSettings) -> TestEnv {
    let env = TestEnv::with(settings).await;
    env.deployment("worker", 1).await;
    env.sources.set("orders", SourceResponse::Value(25));
    env.scaled_object("worker", spec()).await;
    env.until("it is polled", async || env.condition("worker", "Active").await.0 == "True").await;
    env
}

fn spec() -> Value {
    json!({"pollingInterval": 5, "minReplicaCount": 1, "triggers": [trigger("orders")]})
}

async fn set_scaling_active(env: &TestEnv, status: &str) {
    let condition = json!({"type": "ScalingActive", "status": status, "reason": "R", "message": "m",
        "lastTransitionTime": "2026-01-01T00:00:00Z"});
    let patch = json!({"status": {"currentReplicas": 1, "desiredReplicas": 1, "conditions": [condition]}});
    env.patch(&format!("{}/status", hpas("keda-hpa-worker")), patch).await;
    let expected = if status == "True" { "True" } else { "False" };
    env.until("the poll sees the condition", async || {
        env.condition("worker", "HPAActive").await.0 == expected
    })
    .await;
}

/// Queries of the source during these polls, where an HPA requests the metric after each.
async fn queries(env: &TestEnv, polls: u32, requests: bool) -> u64 {
    let before = env.sources.queries("orders");
    for _ in 0..polls {
        if requests {
            env.handle.metric("shop", "worker", "s0-orders").await.unwrap();
        }
        sleep(Duration::from_secs(5)).await;
    }
    env.sources.queries("orders") - before
}

#[tokio::test(start_paused = true)]
async fn polls_use_what_the_hpa_has_requested() {
    let env = env(KedaProfile::V2_21).await;
    assert!(queries(&env, 6, true).await > 6, "the HPA has not said that it scales by its metrics");
    set_scaling_active(&env, "True").await;
    assert_eq!(queries(&env, 6, true).await, 6, "only the requests reach the source");

    // The status still follows what the HPA sees.
    env.sources.set("orders", SourceResponse::Value(0));
    env.handle.metric("shop", "worker", "s0-orders").await.unwrap();
    env.until("it is inactive", async || env.condition("worker", "Active").await.0 == "False").await;
    env.sources.set("orders", SourceResponse::Fails("connection refused"));
    assert!(env.handle.metric("shop", "worker", "s0-orders").await.is_err());
    env.until("it fails", async || env.condition("worker", "Ready").await.1 == "TriggerError").await;
    env.until("an event says so", async || env.has_event("worker", "KEDAScalerFailed").await).await;
    env.sources.set("orders", SourceResponse::Value(9));

    // An HPA that requests nothing any more does not keep the status as it is.
    env.until("it is queried again", async || env.condition("worker", "Ready").await.0 == "True").await;
    set_scaling_active(&env, "False").await;
    assert!(queries(&env, 6, true).await > 6);
    env.stop().await;
}

#[tokio::test(start_paused = true)]
async fn requests_reach_the_source_where_polls_do_not() {
    let env = env_with(OperatorSettings { profile: KedaProfile::V2_21, ..OperatorSettings::default() }).await;
    set_scaling_active(&env, "True").await;
    // The first request may use the sample of a poll that has just ended.
    queries(&env, 1, true).await;
    assert_eq!(queries(&env, 6, true).await, 6, "a sample of the request before is too old");
    env.stop().await;
}

#[tokio::test(start_paused = true)]
async fn failed_scale_writes_are_reported_in_the_condition() {
    let settings = OperatorSettings { profile: KedaProfile::V2_21, ..OperatorSettings::default() };
    let env = TestEnv::with(settings).await;
    env.deployment("worker", 0).await;
    env.sources.set("orders", SourceResponse::Value(25));
    env.client_faults.refuse(http::Method::PUT, "/scale", 403, 1000);
    env.scaled_object("worker", json!({"pollingInterval": 5, "triggers": [trigger("orders")]})).await;
    env.until("it cannot be scaled", async || {
        let (status, reason, message) = env.condition("worker", "Ready").await;
        status == "False"
            && reason == "ErrorScalingTarget"
            && message.starts_with("error activating ScaleTarget: ")
    })
    .await;
    env.client_faults.clear_refusals();
    env.until("it is scaled", async || env.replicas("worker").await == 1).await;
    env.until("it is ready", async || env.condition("worker", "Ready").await.0 == "True").await;
    env.stop().await;
}
