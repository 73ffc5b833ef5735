//! Decision records of polls.

use std::time::Duration;

use api::diagnosis::diagnose;
use http::Method;
use serde_json::json;
use tokio::time::sleep;

use super::env::{TestEnv, deployments, objects, trigger};
use super::sources::SourceResponse;
use crate::operator::{OperatorSettings, ScalingMode};

fn sentences(env: &TestEnv) -> Vec<String> {
    let records = env.handle.records().of("shop", "so.worker");
    let line = |record: &api::decisions::DecisionRecord| {
        let decision = &record.decision;
        format!("{} → {}: {}", decision.current(), decision.desired, record.sentence())
    };
    records.iter().map(line).collect()
}

#[tokio::test(start_paused = true)]
async fn activation_is_recorded_when_an_hpa_scales() {
    let env = TestEnv::start().await;
    env.deployment("worker", 0).await;
    let mut source = trigger("orders");
    source["name"] = json!("queue");
    source["metadata"]["activationTarget"] = json!("0");
    let spec = json!({"pollingInterval": 5, "cooldownPeriod": 60, "triggers": [source]});
    env.scaled_object("worker", spec).await;
    env.until("it sleeps, and says why", async || !sentences(&env).is_empty()).await;
    assert_eq!(sentences(&env), ["0 → 0: at rest: queue is 0 (activation 0)"]);
    sleep(Duration::from_mins(1)).await;
    let records = env.handle.records().of("shop", "so.worker");
    assert_eq!(records.len(), 1, "the same again and again is one record");
    assert!(records[0].times > 5 && records[0].period.as_secs() == 5, "{records:?}");
    let read = records[0].round.as_ref().unwrap().triggers[0].metrics[0].read.unwrap();
    assert!(read.at <= records[0].decision.at && read.took.as_millis() >= 2 && !read.shared, "{read:?}");

    env.sources.set("orders", SourceResponse::Value(25));
    env.until("it is woken", async || sentences(&env).len() == 2).await;
    assert_eq!(sentences(&env)[1], "0 → 1: queue is 25 (activation 0)");
    env.until("the HPA decides", async || sentences(&env).len() == 3).await;
    let through = "queue is 25 (activation 0); hpa/keda-hpa-worker decides";
    assert_eq!(sentences(&env)[2], format!("1 → 1: {through}"));
    env.patch(&deployments("worker"), json!({"spec": {"replicas": 7}})).await;
    env.until("who scales is seen", async || sentences(&env)[3..] == [format!("7 → 7: {through}")]).await;

    env.sources.set("orders", SourceResponse::Fails("connection refused"));
    env.until("an error is reported", async || sentences(&env).len() == 5).await;
    assert_eq!(sentences(&env)[4], "7 → 7: held: a trigger cannot be read, and an error never scales down");
    let words = env.handle.records().of("shop", "so.worker").pop().unwrap().explain("so").to_string();
    assert!(words.contains("queue (scripted) cannot be read: connection refused\n"), "{words}");

    env.sources.set("orders", SourceResponse::Value(0));
    env.until("it sleeps", async || env.replicas("worker").await == 0).await;
    env.until("that is reported", async || sentences(&env).iter().any(|line| line.starts_with("7 → 0")))
        .await;
    let lines = sentences(&env);
    assert!(lines.iter().any(|line| line.starts_with("7 → 7: nothing active; cooldown until ")), "{lines:?}");
    assert!(lines.iter().any(|line| line.starts_with("7 → 0: nothing active since ")), "{lines:?}");
    env.delete(&objects("worker")).await;
    env.until("it is forgotten", async || sentences(&env).is_empty()).await;
    env.stop().await;
}

#[tokio::test(start_paused = true)]
async fn one_record_holds_the_whole_decision_in_direct_mode() {
    let env =
        TestEnv::with(OperatorSettings { scaling_mode: ScalingMode::Direct, ..OperatorSettings::default() })
            .await;
    env.deployment("worker", 0).await;
    let spec = json!({"pollingInterval": 5, "cooldownPeriod": 60, "maxReplicaCount": 8, "triggers": [trigger("orders")]});
    env.scaled_object("worker", spec).await;
    env.until("it sleeps, and says why", async || !sentences(&env).is_empty()).await;
    env.sources.set("orders", SourceResponse::Value(45));
    env.until("it works", async || env.replicas("worker").await == 5).await;
    env.until("that is reported", async || sentences(&env).len() >= 2).await;
    assert_eq!(sentences(&env)[1], "0 → 4: scripted is 45; scripted wants 5; scale-up limit is 4 this time");
    env.sources.set("orders", SourceResponse::Fails("connection refused"));
    let failed = async || sentences(&env).last().is_some_and(|line| line.contains("cannot be read"));
    env.until("an error is reported", failed).await;
    let record = env.handle.records().of("shop", "so.worker").pop().unwrap();
    assert_eq!(record.round.as_ref().and_then(|round| round.hpa.clone()), None);
    let words = record.explain("so").to_string();
    assert!(words.contains("triggers   scripted cannot be read: connection refused\n"), "{words}");
    env.stop().await;
}

#[tokio::test(start_paused = true)]
async fn missing_target_is_recorded_with_its_cause() {
    let env = TestEnv::start().await;
    env.scaled_object("worker", json!({"pollingInterval": 5, "triggers": [trigger("orders")]})).await;
    let first_cause = || {
        let record = env.handle.records().of("shop", "so.worker").pop()?;
        diagnose(&record.facts(None)).into_iter().next()
    };
    let is_first = |id: &str| first_cause().is_some_and(|cause| cause.id == id);
    env.until("the cause is recorded", async || is_first("target-not-found")).await;
    assert_eq!(first_cause().unwrap().sentence, "Deployment shop/worker does not exist");
    let reported = async || env.has_event_with_cause("ScaledObjectCheckFailed", "target-not-found").await;
    env.until("its event names the cause", reported).await;
    env.deployment("worker", 0).await;
    env.until("triggers are polled", async || is_first("nothing-active")).await;
    env.stop().await;
}

#[tokio::test(start_paused = true)]
async fn event_of_a_refused_scale_write_names_the_cause() {
    let env = TestEnv::start().await;
    env.deployment("worker", 0).await;
    env.client_faults.refuse(Method::PUT, "/deployments/worker/scale", 403, u32::MAX);
    env.sources.set("orders", SourceResponse::Value(5));
    env.scaled_object("worker", json!({"pollingInterval": 5, "triggers": [trigger("orders")]})).await;
    let reason = "KEDAScaleTargetActivationFailed";
    let reported = async || env.has_event_with_cause(reason, "scale-not-written").await;
    env.until("the event names the cause", reported).await;
    env.stop().await;
}
