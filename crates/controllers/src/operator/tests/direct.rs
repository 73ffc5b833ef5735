//! 0 ↔ N without an HPA.

use std::time::Duration;

use serde_json::json;
use tokio::time::{Instant, sleep};

use super::env::{TestEnv, deployments, objects, trigger};
use super::sources::SourceResponse;
use crate::operator::{OperatorSettings, ScalingMode};

#[tokio::test(start_paused = true)]
async fn direct_mode_scales_without_an_hpa() {
    let env =
        TestEnv::with(OperatorSettings { scaling_mode: ScalingMode::Direct, ..OperatorSettings::default() })
            .await;
    env.deployment("worker", 0).await;
    let spec = json!({"pollingInterval": 5, "cooldownPeriod": 60, "maxReplicaCount": 8, "triggers": [trigger("orders")]});
    env.scaled_object("worker", spec).await;
    env.until("it was polled", async || env.condition("worker", "Active").await.0 == "False").await;
    assert!(env.hpa("keda-hpa-worker").await.is_none());
    assert_eq!(env.status("worker").await["externalMetricNames"], json!(["s0-orders"]));

    env.sources.set("orders", SourceResponse::Value(45));
    env.until("as many as there is work for", async || env.replicas("worker").await == 5).await;
    env.sources.set("orders", SourceResponse::Value(1000));
    env.until("no more than allowed", async || env.replicas("worker").await == 8).await;
    let records = env.handle.records().of("shop", "so.worker");
    let last = records.last().unwrap();
    assert_eq!(last.decision.desired, 8);
    assert_eq!(last.api_version, "operator.plimsoll.dev/v1alpha1");
    let from = &last.decision.provenance[0];
    assert_eq!((&*from.api, from.source.as_deref(), from.samples), ("trigger", Some("scripted"), 1));
    assert!(from.age.is_some() && from.took.is_some(), "{from:?}");
    let words = last.explain("so").to_string();
    assert!(words.contains("1 series, taken ") && words.contains("from trigger (scripted), in "), "{words}");
    let sentences: Vec<String> = records.iter().map(api::decisions::DecisionRecord::sentence).collect();
    assert_eq!(sentences[0], "at rest: scripted is 0");
    assert_eq!(sentences[1], "scripted is 45; scripted wants 5; scale-up limit is 4 this time");

    env.sources.set("orders", SourceResponse::Fails("connection refused"));
    sleep(Duration::from_mins(10)).await;
    assert_eq!(env.replicas("worker").await, 8, "what is not known is not zero");
    env.sources.set("orders", SourceResponse::Value(15));
    env.until("it comes down by its window", async || env.replicas("worker").await == 2).await;
    env.sources.set("orders", SourceResponse::Value(0));
    env.until("it sleeps", async || env.replicas("worker").await == 0).await;
    env.stop().await;
}

#[tokio::test(start_paused = true)]
async fn annotation_selects_the_scaling_mode() {
    let env = TestEnv::start().await;
    env.deployment("worker", 1).await;
    env.sources.set("orders", SourceResponse::Value(35));
    env.scaled_object("worker", json!({"pollingInterval": 5, "triggers": [trigger("orders")]})).await;
    env.until("there is an HPA", async || env.hpa("keda-hpa-worker").await.is_some()).await;
    sleep(Duration::from_secs(30)).await;
    assert_eq!(env.replicas("worker").await, 1, "the HPA would do that");
    let direct = json!({"metadata": {"annotations": {"plimsoll.dev/act": "direct"}}});
    env.patch(&objects("worker"), direct).await;
    env.until("the HPA is gone", async || env.hpa("keda-hpa-worker").await.is_none()).await;
    env.until("we do it", async || env.replicas("worker").await == 4).await;
    env.patch(&objects("worker"), json!({"metadata": {"annotations": {"plimsoll.dev/act": null}}})).await;
    env.until("the HPA is back", async || env.hpa("keda-hpa-worker").await.is_some()).await;
    env.patch(&deployments("worker"), json!({"spec": {"replicas": 2}})).await;
    sleep(Duration::from_secs(30)).await;
    assert_eq!(env.replicas("worker").await, 2);
    env.stop().await;
}

fn pushed(interval: u32) -> serde_json::Value {
    let push = json!({"type": "scripted-push", "metadata": {"source": "orders"}});
    json!({"pollingInterval": interval, "maxReplicaCount": 20, "triggers": [push]})
}

#[tokio::test(start_paused = true)]
async fn push_scales_to_the_load_at_once_in_direct_mode() {
    let env =
        TestEnv::with(OperatorSettings { scaling_mode: ScalingMode::Direct, ..OperatorSettings::default() })
            .await;
    env.deployment("worker", 0).await;
    env.scaled_object("worker", pushed(3600)).await;
    env.until("it was polled", async || env.condition("worker", "Active").await.0 == "False").await;
    for (work, replicas) in [(35, 4), (75, 8)] {
        env.sources.set("orders", SourceResponse::Value(work));
        let began = Instant::now();
        env.sources.push();
        env.until("as many as there is work for", async || env.replicas("worker").await == replicas).await;
        assert!(began.elapsed() <= Duration::from_millis(100), "{:?}", began.elapsed());
        sleep(Duration::from_secs(20)).await;
    }
    assert_eq!(env.condition("worker", "Active").await.0, "True");
    env.stop().await;
}

#[tokio::test(start_paused = true)]
async fn slow_source_does_not_delay_the_activation_by_a_push() {
    let env =
        TestEnv::with(OperatorSettings { scaling_mode: ScalingMode::Direct, ..OperatorSettings::default() })
            .await;
    env.deployment("worker", 0).await;
    env.scaled_object("worker", pushed(3600)).await;
    env.until("it was polled", async || env.condition("worker", "Active").await.0 == "False").await;
    env.sources.set("orders", SourceResponse::Hangs);
    let began = Instant::now();
    env.sources.push();
    env.until("it is woken", async || env.replicas("worker").await == 1).await;
    assert!(began.elapsed() <= Duration::from_millis(200), "{:?}", began.elapsed());
    sleep(Duration::from_mins(1)).await;
    assert_eq!(env.replicas("worker").await, 1, "a source that hangs is no idle one");
    env.stop().await;
}

#[tokio::test(start_paused = true)]
async fn many_pushes_query_the_source_once_per_second() {
    let env =
        TestEnv::with(OperatorSettings { scaling_mode: ScalingMode::Direct, ..OperatorSettings::default() })
            .await;
    env.deployment("worker", 0).await;
    env.scaled_object("worker", pushed(3600)).await;
    env.until("it was polled", async || env.condition("worker", "Active").await.0 == "False").await;
    let query_count = env.sources.queries("orders");
    env.sources.set("orders", SourceResponse::Value(5));
    for _ in 0..500 {
        env.sources.push();
        sleep(Duration::from_millis(10)).await;
    }
    env.sources.set("orders", SourceResponse::Value(25));
    env.sources.push();
    env.until("the last is heard", async || env.replicas("worker").await == 3).await;
    let query_count = env.sources.queries("orders") - query_count;
    assert!((3..=9).contains(&query_count), "{query_count} queries in five seconds");
    env.stop().await;
}

#[tokio::test(start_paused = true)]
async fn trigger_broken_by_an_edit_does_not_scale_in() {
    let env =
        TestEnv::with(OperatorSettings { scaling_mode: ScalingMode::Direct, ..OperatorSettings::default() })
            .await;
    env.deployment("worker", 1).await;
    env.sources.set("orders", SourceResponse::Value(20));
    env.sources.set("mails", SourceResponse::Value(80));
    let triggers = json!([trigger("orders"), trigger("mails")]);
    env.scaled_object("worker", json!({"pollingInterval": 5, "triggers": triggers})).await;
    env.until("as many as there is work for", async || env.replicas("worker").await == 8).await;
    let broken = json!({"type": "scripted", "metadata": {"source": "mails", "needs-password": "yes"}});
    env.patch(&objects("worker"), json!({"spec": {"triggers": [trigger("orders"), broken]}})).await;
    env.until("it says so", async || env.condition("worker", "Ready").await.2.contains("password")).await;
    sleep(Duration::from_mins(15)).await;
    assert_eq!(env.replicas("worker").await, 8, "what is not known is not zero");
    env.patch(&objects("worker"), json!({"spec": {"triggers": triggers}})).await;
    env.sources.set("mails", SourceResponse::Value(10));
    env.until("what is known decides", async || env.replicas("worker").await == 2).await;
    env.stop().await;
}
