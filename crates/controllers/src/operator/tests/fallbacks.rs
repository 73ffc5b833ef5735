//! All behaviors of fallbacks.

use std::time::Duration;

use api::provider::Compat;
use serde_json::json;
use tokio::time::sleep;

use super::env::{TestEnv, trigger};
use super::sources::SourceResponse;
use crate::operator::OperatorSettings;

#[tokio::test(start_paused = true)]
async fn each_fallback_behavior_has_its_replica_count() {
    let env = TestEnv::start().await;
    env.sources.set("orders", SourceResponse::Fails("connection refused"));
    // The fallback is five replicas, and the target is ten per replica.
    let cases = [
        ("static-many", "static", 8, "50"),
        ("current", "currentReplicas", 8, "80"),
        ("higher-many", "currentReplicasIfHigher", 8, "80"),
        ("higher-few", "currentReplicasIfHigher", 2, "50"),
        ("lower-many", "currentReplicasIfLower", 8, "50"),
        ("lower-few", "currentReplicasIfLower", 2, "20"),
    ];
    for (name, behavior, replicas, _) in cases {
        env.deployment(name, replicas).await;
        let fallback = json!({"failureThreshold": 0, "replicas": 5, "behavior": behavior});
        let spec = json!({"pollingInterval": 5, "fallback": fallback, "triggers": [trigger("orders")]});
        env.scaled_object(name, spec).await;
    }
    for (name, _, replicas, expected) in cases {
        env.until(name, async || env.condition(name, "Fallback").await.0 == "True").await;
        let served = env.handle.metric("shop", name, "s0-orders").await.unwrap();
        assert_eq!(served[0].value.to_string(), expected, "{name}");
        // A fallback is active and no error.
        env.until(name, async || env.condition(name, "Active").await.0 == "True").await;
        assert_eq!(env.condition(name, "Ready").await.0, "True", "{name}");
        assert_eq!(env.replicas(name).await, i64::from(replicas), "{name}: the HPA does the rest");
    }
    env.stop().await;
}

fn mute_spec() -> serde_json::Value {
    let fallback = json!({"failureThreshold": 2, "replicas": 5});
    json!({"pollingInterval": 5, "cooldownPeriod": 5, "fallback": fallback, "triggers": [trigger("orders")]})
}

#[tokio::test(start_paused = true)]
async fn fallback_applies_when_a_trigger_lists_no_metrics() {
    let env = TestEnv::start().await;
    env.deployment("worker", 0).await;
    env.scaled_object("worker", mute_spec()).await;
    env.until("it was polled", async || env.condition("worker", "Active").await.0 == "False").await;
    env.sources.set("orders", SourceResponse::SpecsFail("it is away"));
    env.until("it falls back", async || env.condition("worker", "Fallback").await.0 == "True").await;
    env.until("it is woken", async || env.replicas("worker").await == 1).await;
    let served = env.handle.metric("shop", "worker", "s0-orders").await.unwrap();
    assert_eq!(served[0].value.to_string(), "50");
    assert_eq!(env.status("worker").await["externalMetricNames"], json!(["s0-orders"]));
    env.sources.set("orders", SourceResponse::Value(1));
    env.until("it is over", async || env.condition("worker", "Fallback").await.0 == "False").await;
    env.stop().await;
}

#[tokio::test(start_paused = true)]
async fn fallback_does_not_apply_without_metrics_in_strict_mode() {
    let env = TestEnv::with(OperatorSettings { compat: Compat::Strict, ..OperatorSettings::default() }).await;
    env.deployment("worker", 0).await;
    env.scaled_object("worker", mute_spec()).await;
    env.until("it was polled", async || env.condition("worker", "Active").await.0 == "False").await;
    env.sources.set("orders", SourceResponse::SpecsFail("it is away"));
    sleep(Duration::from_mins(2)).await;
    assert_eq!(env.condition("worker", "Fallback").await.0, "False");
    assert_eq!(env.replicas("worker").await, 0);
    env.stop().await;
}

#[tokio::test(start_paused = true)]
async fn fallback_to_zero_waits_for_the_failure_threshold() {
    let env = TestEnv::start().await;
    env.deployment("worker", 4).await;
    env.sources.set("orders", SourceResponse::Value(40));
    let fallback = json!({"failureThreshold": 60, "replicas": 0});
    let spec = json!({"pollingInterval": 5, "cooldownPeriod": 1, "fallback": fallback, "triggers": [trigger("orders")]});
    env.scaled_object("worker", spec).await;
    env.until("it is active", async || env.condition("worker", "Active").await.0 == "True").await;
    env.sources.set("orders", SourceResponse::Fails("connection refused"));
    sleep(Duration::from_mins(4)).await;
    assert_eq!(env.replicas("worker").await, 4, "a source that fails is no idle one");
    env.until("it is due", async || env.replicas("worker").await == 0).await;
    env.stop().await;
}
