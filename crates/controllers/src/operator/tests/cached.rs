//! `useCachedMetrics`: HPAs are answered with what the last poll found.

use std::time::Duration;

use serde_json::json;
use tokio::time::sleep;

use super::bench::Bench;
use super::script::Says;
use crate::operator::OperatorSettings;

#[tokio::test(start_paused = true)]
async fn nobody_is_asked_between_two_polls() {
    // Without it, every question would go to the source.
    let bench =
        Bench::with(OperatorSettings { sample_age: Duration::ZERO, ..OperatorSettings::default() }).await;
    bench.deployment("worker", 1).await;
    bench.script.say("orders", Says::Value(25));
    bench.script.say("mails", Says::Value(1));
    let source = |name: &str, cached: bool| json!({"type": "scripted", "useCachedMetrics": cached, "metadata": {"source": name}});
    let triggers = json!([source("orders", true), source("mails", false)]);
    bench.scaled_object("worker", json!({"pollingInterval": 60, "triggers": triggers})).await;
    bench.until("it was polled", async || bench.condition("worker", "Active").await.0 == "True").await;
    let ask = async |metric: &str| bench.handle.metric("shop", "worker", metric).await;
    let (orders, mails) = (bench.script.asked("orders"), bench.script.asked("mails"));
    bench.script.say("orders", Says::Value(99));
    for _ in 0..5 {
        assert_eq!(ask("s0-orders").await.unwrap()[0].value.to_string(), "25");
        assert_eq!(ask("s1-mails").await.unwrap()[0].value.to_string(), "1");
        sleep(Duration::from_secs(2)).await;
    }
    assert_eq!(bench.script.asked("orders"), orders);
    assert_eq!(bench.script.asked("mails"), mails + 5);
    bench
        .until("the next poll is heard", async || {
            ask("s0-orders").await.unwrap()[0].value.to_string() == "99"
        })
        .await;

    // What failed has failed, until the next poll.
    bench.script.say("orders", Says::Fails("connection refused"));
    bench.until("it fails", async || ask("s0-orders").await.is_err()).await;
    bench.script.say("orders", Says::Value(7));
    assert!(ask("s0-orders").await.unwrap_err().contains("connection refused"));
    bench.until("it is heard again", async || ask("s0-orders").await.is_ok()).await;
    bench.stop().await;
}

#[tokio::test(start_paused = true)]
async fn what_is_remembered_of_a_failing_source_does_not_make_it_well() {
    let bench = Bench::start().await;
    bench.deployment("worker", 2).await;
    bench.script.say("orders", Says::Fails("connection refused"));
    let source = json!({"type": "scripted", "useCachedMetrics": true, "metadata": {"source": "orders"}});
    let fallback = json!({"failureThreshold": 1, "replicas": 4});
    bench
        .scaled_object("worker", json!({"pollingInterval": 10, "fallback": fallback, "triggers": [source]}))
        .await;
    bench.until("it falls back", async || bench.condition("worker", "Fallback").await.0 == "True").await;
    let failures =
        async || bench.status("worker").await["health"]["s0-orders"]["numberOfFailures"].as_i64().unwrap();
    let before = failures().await;
    for _ in 0..20 {
        let served = bench.handle.metric("shop", "worker", "s0-orders").await.unwrap();
        assert_eq!(served[0].value.to_string(), "40");
        assert!(failures().await >= before, "it is as ill as it was");
        sleep(Duration::from_secs(3)).await;
    }
    assert!(failures().await - before <= 7, "only polls count");
    bench.stop().await;
}
