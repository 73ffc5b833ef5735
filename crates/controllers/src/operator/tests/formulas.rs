//! One number of many.

use serde_json::{Value, json};

use super::bench::{Bench, objects};
use super::script::Says;

fn named(name: &str) -> Value {
    json!({"type": "scripted", "name": name, "metadata": {"source": name}})
}

fn modifiers(formula: &str, more: &Value) -> Value {
    let mut modifiers = json!({"formula": formula, "target": "2"});
    modifiers.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    json!({"scalingModifiers": modifiers})
}

async fn composite(bench: &Bench) -> Result<String, String> {
    let served = bench.handle.metric("shop", "worker", "composite-metric").await?;
    assert_eq!(served[0].name, "composite-metric");
    Ok(served[0].value.to_string())
}

#[tokio::test(start_paused = true)]
async fn a_formula_says_what_is_active_and_what_the_hpa_sees() {
    let bench = Bench::start().await;
    bench.deployment("worker", 0).await;
    bench.script.say("a", Says::Value(4));
    bench.script.say("b", Says::Value(6));
    let advanced = modifiers("a + b", &json!({"activationTarget": "10", "metricType": "Value"}));
    let spec = json!({"pollingInterval": 5, "advanced": advanced, "triggers": [named("a"), named("b")]});
    bench.scaled_object("worker", spec).await;
    bench.until("it was polled", async || bench.condition("worker", "Active").await.0 == "False").await;
    assert_eq!(bench.replicas("worker").await, 0, "ten is not above ten");
    let hpa = bench.hpa("keda-hpa-worker").await.unwrap();
    let metrics = hpa["spec"]["metrics"].as_array().unwrap();
    assert_eq!(metrics.len(), 1);
    assert_eq!(metrics[0]["external"]["metric"]["name"], "composite-metric");
    assert_eq!(metrics[0]["external"]["target"], json!({"type": "Value", "value": "2"}));
    let status = bench.status("worker").await;
    assert_eq!(status["compositeScalerName"], "composite-metric");
    assert_eq!(status["externalMetricNames"], json!(["s0-a", "s1-b"]));

    bench.script.say("b", Says::Value(7));
    bench.until("it is woken", async || bench.replicas("worker").await == 1).await;
    bench
        .until("that is told", async || {
            let events = bench.events("worker").await;
            events.iter().any(|(_, note)| note.ends_with("from 0 to 1, triggered by composite-metric"))
        })
        .await;
    assert_eq!(composite(&bench).await.unwrap(), "11");
    bench.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_formula_says_what_a_source_that_fails_counts_for() {
    let bench = Bench::start().await;
    bench.deployment("worker", 1).await;
    bench.script.say("a", Says::Value(4));
    bench.script.say("b", Says::Value(6));
    let fallback = json!({"failureThreshold": 1, "replicas": 3, "behavior": "scalingModifiers"});
    let advanced = modifiers("a + (b ?? 40.0)", &json!({}));
    let spec = json!({"pollingInterval": 5, "advanced": advanced, "fallback": fallback,
        "triggers": [named("a"), named("b")]});
    bench.scaled_object("worker", spec).await;
    bench.until("it is active", async || bench.condition("worker", "Active").await.0 == "True").await;
    assert_eq!(composite(&bench).await.unwrap(), "10");
    bench.script.say("b", Says::Fails("connection refused"));
    bench.until("b counts for forty", async || composite(&bench).await.as_deref() == Ok("44")).await;
    bench.until("it says so", async || bench.condition("worker", "Fallback").await.0 == "True").await;

    // What yields nothing at all is what the fallback asks for: three times two.
    bench.patch(&objects("worker"), json!({"spec": {"advanced": modifiers("b ?? nil", &json!({}))}})).await;
    bench.until("it is the fallback's", async || composite(&bench).await.as_deref() == Ok("6")).await;
    bench.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_trigger_that_breaks_does_not_make_a_formula_forget_its_metric() {
    let bench = Bench::start().await;
    bench.deployment("worker", 3).await;
    bench.script.say("a", Says::Value(4));
    bench.script.say("b", Says::Value(6));
    let spec = json!({"pollingInterval": 5, "cooldownPeriod": 5, "advanced": modifiers("a + b", &json!({})),
        "triggers": [named("a"), named("b")]});
    bench.scaled_object("worker", spec).await;
    bench.until("it is active", async || bench.condition("worker", "Active").await.0 == "True").await;
    let mut broken = named("b");
    broken["metadata"]["needs-password"] = json!("yes");
    bench.patch(&objects("worker"), json!({"spec": {"triggers": [named("a"), broken]}})).await;
    bench
        .until("it says so", async || {
            bench.condition("worker", "Ready").await.2.contains("missing required parameter \"password\"")
        })
        .await;
    assert_eq!(bench.status("worker").await["externalMetricNames"], json!(["s0-a", "s1-b"]));
    let refused = composite(&bench).await.unwrap_err();
    assert!(refused.contains("password"), "{refused}");
    tokio::time::sleep(std::time::Duration::from_mins(5)).await;
    assert_eq!(bench.replicas("worker").await, 3, "what is not known is no rest");
    bench.stop().await;
}
