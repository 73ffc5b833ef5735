//! `useCachedMetrics`: HPAs are served the samples of the last poll.

use std::time::Duration;

use serde_json::json;
use tokio::time::sleep;

use super::env::{TestEnv, annotate, objects};
use super::sources::SourceResponse;
use crate::operator::OperatorSettings;

#[tokio::test(start_paused = true)]
async fn cached_metrics_are_not_queried_between_polls() {
    // Otherwise a recent sample would be served in any case.
    let env =
        TestEnv::with(OperatorSettings { sample_age: Duration::ZERO, ..OperatorSettings::default() }).await;
    env.deployment("worker", 1).await;
    env.sources.set("orders", SourceResponse::Value(25));
    env.sources.set("mails", SourceResponse::Value(1));
    let source = |name: &str, cached: bool| json!({"type": "scripted", "useCachedMetrics": cached, "metadata": {"source": name}});
    let triggers = json!([source("orders", true), source("mails", false)]);
    env.scaled_object("worker", json!({"pollingInterval": 60, "triggers": triggers})).await;
    env.until("it was polled", async || env.condition("worker", "Active").await.0 == "True").await;
    let read_metric = async |metric: &str| env.handle.metric("shop", "worker", metric).await;
    let (orders, mails) = (env.sources.queries("orders"), env.sources.queries("mails"));
    env.sources.set("orders", SourceResponse::Value(99));
    for _ in 0..5 {
        assert_eq!(read_metric("s0-orders").await.unwrap()[0].value.to_string(), "25");
        assert_eq!(read_metric("s1-mails").await.unwrap()[0].value.to_string(), "1");
        sleep(Duration::from_secs(2)).await;
    }
    assert_eq!(env.sources.queries("orders"), orders);
    assert_eq!(env.sources.queries("mails"), mails + 5);
    env.until("the next poll is heard", async || {
        read_metric("s0-orders").await.unwrap()[0].value.to_string() == "99"
    })
    .await;

    // A failure is served until the next poll.
    env.sources.set("orders", SourceResponse::Fails("connection refused"));
    env.until("it fails", async || read_metric("s0-orders").await.is_err()).await;
    env.sources.set("orders", SourceResponse::Value(7));
    assert!(read_metric("s0-orders").await.unwrap_err().to_string().contains("connection refused"));
    env.until("it is heard again", async || read_metric("s0-orders").await.is_ok()).await;
    env.stop().await;
}

#[tokio::test(start_paused = true)]
async fn cached_metrics_end_with_an_edit_and_a_pause() {
    let env = TestEnv::start().await;
    env.deployment("worker", 1).await;
    let slow = |value: i64| SourceResponse::Delayed(Duration::from_secs(5), value);
    let source = |target: &str| {
        let metadata = json!({"source": "orders", "target": target});
        json!([{"type": "scripted", "useCachedMetrics": true, "metadata": metadata}])
    };
    env.sources.set("orders", SourceResponse::Value(25));
    env.scaled_object("worker", json!({"pollingInterval": 60, "triggers": source("10")})).await;
    env.until("it was polled", async || env.condition("worker", "Active").await.0 == "True").await;
    let read_metric =
        async || env.handle.metric("shop", "worker", "s0-orders").await.unwrap()[0].value.to_string();
    assert_eq!(read_metric().await, "25");

    // The trigger reads something else under the same name, and the first poll of the new generation has not ended.
    env.sources.set("orders", slow(50));
    let builds = env.sources.builds("orders");
    env.patch(&objects("worker"), json!({"spec": {"triggers": source("20")}})).await;
    env.until("the edit is seen", async || env.sources.builds("orders") > builds).await;
    assert_eq!(read_metric().await, "50");

    let pause = "autoscaling.keda.sh/paused";
    env.patch(&objects("worker"), annotate(pause, "true")).await;
    env.until("the HPA is gone", async || env.hpa("keda-hpa-worker").await.is_none()).await;
    env.until("it is paused", async || env.condition("worker", "Paused").await.0 == "True").await;
    sleep(Duration::from_mins(1)).await;
    env.sources.set("orders", slow(75));
    env.patch(&objects("worker"), annotate(pause, serde_json::Value::Null)).await;
    env.until("the HPA is back", async || env.hpa("keda-hpa-worker").await.is_some()).await;
    assert_eq!(read_metric().await, "75");
    env.stop().await;
}

#[tokio::test(start_paused = true)]
async fn remembered_failure_does_not_reset_health() {
    let env = TestEnv::start().await;
    env.deployment("worker", 2).await;
    env.sources.set("orders", SourceResponse::Fails("connection refused"));
    let source = json!({"type": "scripted", "useCachedMetrics": true, "metadata": {"source": "orders"}});
    let fallback = json!({"failureThreshold": 1, "replicas": 4});
    env.scaled_object("worker", json!({"pollingInterval": 10, "fallback": fallback, "triggers": [source]}))
        .await;
    env.until("it falls back", async || env.condition("worker", "Fallback").await.0 == "True").await;
    let failures =
        async || env.status("worker").await["health"]["s0-orders"]["numberOfFailures"].as_i64().unwrap();
    let before = failures().await;
    for _ in 0..20 {
        let served = env.handle.metric("shop", "worker", "s0-orders").await.unwrap();
        assert_eq!(served[0].value.to_string(), "40");
        assert!(failures().await >= before, "it is as ill as it was");
        sleep(Duration::from_secs(3)).await;
    }
    assert!(failures().await - before <= 7, "only polls count");
    env.stop().await;
}
