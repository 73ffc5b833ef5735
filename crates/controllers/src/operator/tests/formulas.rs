//! Scaling modifiers: one formula of several metrics.

use serde_json::{Value, json};

use super::env::{TestEnv, objects};
use super::sources::SourceResponse;
use crate::operator::MetricRequestError;

fn named(name: &str) -> Value {
    json!({"type": "scripted", "name": name, "metadata": {"source": name}})
}

fn modifiers(formula: &str, more: &Value) -> Value {
    let mut modifiers = json!({"formula": formula, "target": "2"});
    modifiers.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    json!({"scalingModifiers": modifiers})
}

async fn composite(env: &TestEnv) -> Result<String, MetricRequestError> {
    let served = env.handle.metric("shop", "worker", "composite-metric").await?;
    assert_eq!(served[0].name, "composite-metric");
    Ok(served[0].value.to_string())
}

#[tokio::test(start_paused = true)]
async fn formula_decides_activity_and_the_metric_of_the_hpa() {
    let env = TestEnv::start().await;
    env.deployment("worker", 0).await;
    env.sources.set("a", SourceResponse::Value(4));
    env.sources.set("b", SourceResponse::Value(6));
    let advanced = modifiers("a + b", &json!({"activationTarget": "10", "metricType": "Value"}));
    let spec = json!({"pollingInterval": 5, "advanced": advanced, "triggers": [named("a"), named("b")]});
    env.scaled_object("worker", spec).await;
    env.until("it was polled", async || env.condition("worker", "Active").await.0 == "False").await;
    assert_eq!(env.replicas("worker").await, 0, "ten is not above ten");
    let hpa = env.hpa("keda-hpa-worker").await.unwrap();
    let metrics = hpa["spec"]["metrics"].as_array().unwrap();
    assert_eq!(metrics.len(), 1);
    assert_eq!(metrics[0]["external"]["metric"]["name"], "composite-metric");
    assert_eq!(metrics[0]["external"]["target"], json!({"type": "Value", "value": "2"}));
    let status = env.status("worker").await;
    assert_eq!(status["compositeScalerName"], "composite-metric");
    assert_eq!(status["externalMetricNames"], json!(["s0-a", "s1-b"]));

    env.sources.set("b", SourceResponse::Value(7));
    env.until("it is woken", async || env.replicas("worker").await == 1).await;
    env.until("that is reported", async || {
        let events = env.events("worker").await;
        events.iter().any(|(_, note)| note.ends_with("from 0 to 1, triggered by composite-metric"))
    })
    .await;
    assert_eq!(composite(&env).await.unwrap(), "11");
    env.stop().await;
}

#[tokio::test(start_paused = true)]
async fn formula_uses_the_fallback_of_a_failing_source() {
    let env = TestEnv::start().await;
    env.deployment("worker", 1).await;
    env.sources.set("a", SourceResponse::Value(4));
    env.sources.set("b", SourceResponse::Value(6));
    let fallback = json!({"failureThreshold": 1, "replicas": 3, "behavior": "scalingModifiers"});
    let advanced = modifiers("a + (b ?? 40.0)", &json!({}));
    let spec = json!({"pollingInterval": 5, "advanced": advanced, "fallback": fallback,
        "triggers": [named("a"), named("b")]});
    env.scaled_object("worker", spec).await;
    env.until("it is active", async || env.condition("worker", "Active").await.0 == "True").await;
    assert_eq!(composite(&env).await.unwrap(), "10");
    env.sources.set("b", SourceResponse::Fails("connection refused"));
    env.until("b counts for forty", async || composite(&env).await.as_deref() == Ok("44")).await;
    env.until("it says so", async || env.condition("worker", "Fallback").await.0 == "True").await;

    // If all metrics fail, the fallback applies: three replicas times the target of two.
    env.patch(&objects("worker"), json!({"spec": {"advanced": modifiers("b ?? nil", &json!({}))}})).await;
    env.until("it is the fallback's", async || composite(&env).await.as_deref() == Ok("6")).await;
    env.stop().await;
}

#[tokio::test(start_paused = true)]
async fn broken_trigger_keeps_its_metric_in_the_formula() {
    let env = TestEnv::start().await;
    env.deployment("worker", 3).await;
    env.sources.set("a", SourceResponse::Value(4));
    env.sources.set("b", SourceResponse::Value(6));
    let spec = json!({"pollingInterval": 5, "cooldownPeriod": 5, "advanced": modifiers("a + b", &json!({})),
        "triggers": [named("a"), named("b")]});
    env.scaled_object("worker", spec).await;
    env.until("it is active", async || env.condition("worker", "Active").await.0 == "True").await;
    let mut broken = named("b");
    broken["metadata"]["needs-password"] = json!("yes");
    env.patch(&objects("worker"), json!({"spec": {"triggers": [named("a"), broken]}})).await;
    env.until("it says so", async || {
        env.condition("worker", "Ready").await.2.contains("missing required parameter \"password\"")
    })
    .await;
    assert_eq!(env.status("worker").await["externalMetricNames"], json!(["s0-a", "s1-b"]));
    let refused = composite(&env).await.unwrap_err();
    assert!(refused.to_string().contains("password"), "{refused}");
    tokio::time::sleep(std::time::Duration::from_mins(5)).await;
    assert_eq!(env.replicas("worker").await, 3, "what is not known is no rest");
    env.stop().await;
}
