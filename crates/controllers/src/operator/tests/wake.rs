//! Sources that wake their objects.

use std::time::Duration;

use serde_json::json;
use tokio::time::{Instant, sleep};

use super::env::{TestEnv, annotate, objects, trigger};
use super::sources::SourceResponse;

/// An idle object that is polled once per hour, and whose first source wakes it if it may.
async fn idle() -> TestEnv {
    let env = TestEnv::start().await;
    env.deployment("worker", 0).await;
    env.sources.set("orders", SourceResponse::Value(0));
    let triggers = json!([{"type": "scripted-wake", "metadata": {"source": "orders"}}, trigger("mails")]);
    env.scaled_object("worker", json!({"pollingInterval": 3600, "triggers": triggers})).await;
    env.until("it was polled", async || env.condition("worker", "Active").await.0 == "False").await;
    env
}

#[tokio::test(start_paused = true)]
async fn annotated_object_is_woken_within_a_second() {
    let env = idle().await;
    env.sources.set("orders", SourceResponse::Value(5));
    env.sources.push();
    sleep(Duration::from_secs(5)).await;
    assert_eq!((env.sources.streams(), env.replicas("worker").await), (0, 0), "it is not annotated");

    env.patch(&objects("worker"), annotate("plimsoll.dev/wake", "true")).await;
    env.until("the stream is open", async || env.sources.streams() == 1).await;
    let began = Instant::now();
    env.sources.push();
    env.until("it is woken", async || env.replicas("worker").await == 1).await;
    assert!(began.elapsed() <= Duration::from_secs(1), "{:?}", began.elapsed());

    env.patch(&objects("worker"), annotate("plimsoll.dev/wake", "false")).await;
    env.until("the stream is closed", async || env.sources.streams() == 0).await;
    env.stop().await;
}

#[tokio::test(start_paused = true)]
async fn source_cannot_cause_more_than_one_query_per_second() {
    let env = idle().await;
    env.patch(&objects("worker"), annotate("plimsoll.dev/wake", "true")).await;
    env.until("the stream is open", async || env.sources.streams() == 1).await;
    let (query_count, others) = (env.sources.queries("orders"), env.sources.queries("mails"));
    for _ in 0..500 {
        env.sources.push();
        sleep(Duration::from_millis(10)).await;
    }
    let few = env.sources.queries("orders") - query_count;
    assert!((3..=7).contains(&few), "{few} queries in five seconds");
    let others = env.sources.queries("mails") - others;
    assert!(others <= 1, "the source that woke no object was queried {others} times");
    // A wrong wake-up costs a query and nothing else; the last one is not lost.
    assert_eq!(env.replicas("worker").await, 0);
    env.sources.set("orders", SourceResponse::Value(5));
    env.sources.push();
    env.until("it is woken", async || env.replicas("worker").await == 1).await;
    env.stop().await;
}

#[tokio::test(start_paused = true)]
async fn failures_of_woken_polls_do_not_count_for_the_fallback() {
    let env = TestEnv::start().await;
    env.deployment("worker", 0).await;
    env.sources.set("orders", SourceResponse::Value(0));
    let triggers = json!([{"type": "scripted-wake", "metadata": {"source": "orders"}}]);
    let fallback = json!({"failureThreshold": 2, "replicas": 5});
    let spec = json!({"pollingInterval": 3600, "fallback": fallback, "triggers": triggers});
    env.scaled_object("worker", spec).await;
    env.until("it was polled", async || env.condition("worker", "Active").await.0 == "False").await;
    env.patch(&objects("worker"), annotate("plimsoll.dev/wake", "true")).await;
    env.until("the stream is open", async || env.sources.streams() == 1).await;
    env.sources.set("orders", SourceResponse::Fails("connection refused"));
    let query_count = env.sources.queries("orders");
    env.until("it is queried often", async || {
        env.sources.push();
        env.sources.queries("orders") >= query_count + 10
    })
    .await;
    // One poll of the schedule may be among them, because the object was edited.
    let failures = env.status("worker").await["health"]["s0-orders"]["numberOfFailures"].as_i64();
    assert!(failures.is_some_and(|failures| failures <= 1), "{failures:?}");
    assert_eq!(env.condition("worker", "Fallback").await.0, "False");
    env.stop().await;
}
