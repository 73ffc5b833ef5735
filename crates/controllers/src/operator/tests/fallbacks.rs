//! What stands for a source that fails, in all its forms.

use std::time::Duration;

use api::provider::Compat;
use serde_json::json;
use tokio::time::sleep;

use super::bench::{Bench, trigger};
use super::script::Says;
use crate::operator::OperatorSettings;

#[tokio::test(start_paused = true)]
async fn each_behavior_has_its_number() {
    let bench = Bench::start().await;
    bench.script.say("orders", Says::Fails("connection refused"));
    // Five are asked for, and ten are one replica's work.
    let cases = [
        ("static-many", "static", 8, "50"),
        ("current", "currentReplicas", 8, "80"),
        ("higher-many", "currentReplicasIfHigher", 8, "80"),
        ("higher-few", "currentReplicasIfHigher", 2, "50"),
        ("lower-many", "currentReplicasIfLower", 8, "50"),
        ("lower-few", "currentReplicasIfLower", 2, "20"),
    ];
    for (name, behavior, replicas, _) in cases {
        bench.deployment(name, replicas).await;
        let fallback = json!({"failureThreshold": 0, "replicas": 5, "behavior": behavior});
        let spec = json!({"pollingInterval": 5, "fallback": fallback, "triggers": [trigger("orders")]});
        bench.scaled_object(name, spec).await;
    }
    for (name, _, replicas, expected) in cases {
        bench.until(name, async || bench.condition(name, "Fallback").await.0 == "True").await;
        let served = bench.handle.metric("shop", name, "s0-orders").await.unwrap();
        assert_eq!(served[0].value.to_string(), expected, "{name}");
        // Falling back is work to do, and no fault.
        bench.until(name, async || bench.condition(name, "Active").await.0 == "True").await;
        assert_eq!(bench.condition(name, "Ready").await.0, "True", "{name}");
        assert_eq!(bench.replicas(name).await, i64::from(replicas), "{name}: the HPA does the rest");
    }
    bench.stop().await;
}

fn mute_spec() -> serde_json::Value {
    let fallback = json!({"failureThreshold": 2, "replicas": 5});
    json!({"pollingInterval": 5, "cooldownPeriod": 5, "fallback": fallback, "triggers": [trigger("orders")]})
}

#[tokio::test(start_paused = true)]
async fn a_source_that_does_not_even_say_which_metrics_it_has_is_replaced_too() {
    let bench = Bench::start().await;
    bench.deployment("worker", 0).await;
    bench.scaled_object("worker", mute_spec()).await;
    bench.until("it was polled", async || bench.condition("worker", "Active").await.0 == "False").await;
    bench.script.say("orders", Says::Mute("it is away"));
    bench.until("it falls back", async || bench.condition("worker", "Fallback").await.0 == "True").await;
    bench.until("it is woken", async || bench.replicas("worker").await == 1).await;
    let served = bench.handle.metric("shop", "worker", "s0-orders").await.unwrap();
    assert_eq!(served[0].value.to_string(), "50");
    assert_eq!(bench.status("worker").await["externalMetricNames"], json!(["s0-orders"]));
    bench.script.say("orders", Says::Value(1));
    bench.until("it is over", async || bench.condition("worker", "Fallback").await.0 == "False").await;
    bench.stop().await;
}

#[tokio::test(start_paused = true)]
async fn to_be_strict_it_is_not() {
    let bench = Bench::with(OperatorSettings { compat: Compat::Strict, ..OperatorSettings::default() }).await;
    bench.deployment("worker", 0).await;
    bench.scaled_object("worker", mute_spec()).await;
    bench.until("it was polled", async || bench.condition("worker", "Active").await.0 == "False").await;
    bench.script.say("orders", Says::Mute("it is away"));
    sleep(Duration::from_mins(2)).await;
    assert_eq!(bench.condition("worker", "Fallback").await.0, "False");
    assert_eq!(bench.replicas("worker").await, 0);
    bench.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_fallback_to_nothing_is_not_had_before_it_is_due() {
    let bench = Bench::start().await;
    bench.deployment("worker", 4).await;
    bench.script.say("orders", Says::Value(40));
    let fallback = json!({"failureThreshold": 60, "replicas": 0});
    let spec = json!({"pollingInterval": 5, "cooldownPeriod": 1, "fallback": fallback, "triggers": [trigger("orders")]});
    bench.scaled_object("worker", spec).await;
    bench.until("it is active", async || bench.condition("worker", "Active").await.0 == "True").await;
    bench.script.say("orders", Says::Fails("connection refused"));
    sleep(Duration::from_mins(4)).await;
    assert_eq!(bench.replicas("worker").await, 4, "a source that fails is no idle one");
    bench.until("it is due", async || bench.replicas("worker").await == 0).await;
    bench.stop().await;
}
