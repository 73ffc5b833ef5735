//! What KEDA does in a round that cannot be completed, for those who want it so.

use std::time::Duration;

use api::provider::Compat;
use serde_json::json;
use tokio::time::sleep;

use super::bench::{Bench, trigger};
use super::script::Says;
use crate::operator::OperatorSettings;

async fn strict() -> Bench {
    Bench::with(OperatorSettings { compat: Compat::Strict, ..OperatorSettings::default() }).await
}

#[tokio::test(start_paused = true)]
async fn a_round_that_is_skipped_still_notes_how_sources_fare() {
    let bench = strict().await;
    bench.deployment("worker", 0).await;
    bench.script.say("orders", Says::Value(5));
    let source = json!({"type": "scripted", "name": "orders", "metadata": {"source": "orders"}});
    let modifiers = json!({"formula": "orders", "target": "2", "activationTarget": "much"});
    let fallback = json!({"failureThreshold": 3, "replicas": 1});
    let spec = json!({"pollingInterval": 5, "fallback": fallback, "advanced": {"scalingModifiers": modifiers}, "triggers": [source]});
    bench.scaled_object("worker", spec).await;
    let health = async || bench.status("worker").await["health"]["s0-orders"]["status"].clone();
    bench.until("health is noted", async || health().await == "Happy").await;
    sleep(Duration::from_mins(1)).await;
    assert_eq!(bench.condition("worker", "Active").await.0, "Unknown", "nothing is decided");
    assert_eq!(bench.replicas("worker").await, 0);
    bench.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_source_without_metrics_is_left_out_and_is_a_fault_of_one_trigger() {
    let bench = strict().await;
    bench.deployment("worker", 0).await;
    bench.script.say("orders", Says::Value(5));
    bench.script.say("mails", Says::Empty);
    bench
        .scaled_object(
            "worker",
            json!({"pollingInterval": 5, "triggers": [trigger("orders"), trigger("mails")]}),
        )
        .await;
    bench.until("it is woken by the other", async || bench.replicas("worker").await == 1).await;
    let partial = ("Unknown".to_owned(), "PartialTriggerError".to_owned());
    bench
        .until("it says so", async || {
            let (state, reason, _) = bench.condition("worker", "Ready").await;
            (state, reason) == partial
        })
        .await;
    let hpa = bench.hpa("keda-hpa-worker").await.unwrap();
    assert_eq!(hpa["spec"]["metrics"].as_array().unwrap().len(), 1);
    bench.stop().await;
}
