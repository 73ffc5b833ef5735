//! The store may be outdated: no replicas are removed because of that, and no write is lost.

use std::time::Duration;

use http::Method;
use serde_json::{Value, json};
use tokio::time::sleep;

use super::env::{TestEnv, deployments, objects, trigger};
use super::sources::SourceResponse;
use crate::operator::{OperatorSettings, ScalingMode};

/// An operator with one object, whose target changes without a watch event.
async fn moved(spec: Value, seen: i32, real: i32) -> TestEnv {
    let env = TestEnv::start().await;
    env.deployment("worker", seen).await;
    let mut whole = json!({"pollingInterval": 5, "triggers": [trigger("orders")]});
    whole.as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
    env.scaled_object("worker", whole).await;
    env.until("it was polled", async || env.sources.queries("orders") > 2).await;
    // Targets are watched a moment after the first object was created.
    sleep(Duration::from_secs(5)).await;
    env.client_faults.hold_watch("/deployments");
    env.patch(&deployments("worker"), json!({"spec": {"replicas": real}})).await;
    env
}

async fn is_active(env: &TestEnv) -> bool {
    env.condition("worker", "Active").await.0 == "True"
}

#[tokio::test(start_paused = true)]
async fn activation_keeps_replicas_added_by_another_client() {
    let env = moved(json!({}), 0, 5).await;
    env.sources.set("orders", SourceResponse::Value(25));
    env.until("it is active", async || is_active(&env).await).await;
    sleep(Duration::from_secs(30)).await;
    assert_eq!(env.replicas("worker").await, 5);
    assert!(!env.has_event("worker", "KEDAScaleTargetActivationFailed").await, "nothing has failed");
    assert!(env.status("worker").await["lastActiveTime"].is_string(), "it was active");
    env.client_faults.release_watches();
    env.stop().await;
}

#[tokio::test(start_paused = true)]
async fn raising_to_the_minimum_keeps_replicas_added_by_another_client() {
    let env = moved(json!({}), 0, 0).await;
    env.client_faults.release_watches();
    env.sources.set("orders", SourceResponse::Value(1));
    env.until("it is active", async || is_active(&env).await).await;
    env.until("it is woken", async || env.replicas("worker").await == 1).await;
    sleep(Duration::from_secs(5)).await;
    // The count in the store is below the minimum, the real count is not.
    env.client_faults.hold_watch("/deployments");
    env.patch(&deployments("worker"), json!({"spec": {"replicas": 9}})).await;
    env.patch(&objects("worker"), json!({"spec": {"minReplicaCount": 4}})).await;
    env.sources.set("orders", SourceResponse::Value(0));
    env.until("it is not active", async || !is_active(&env).await).await;
    sleep(Duration::from_secs(30)).await;
    assert_eq!(env.replicas("worker").await, 9);
    env.client_faults.release_watches();
    env.stop().await;
}

#[tokio::test(start_paused = true)]
async fn activation_decides_again_when_the_count_has_changed() {
    let env = moved(json!({"minReplicaCount": 3, "idleReplicaCount": 0}), 0, 1).await;
    assert_eq!(env.replicas("worker").await, 1);
    env.sources.set("orders", SourceResponse::Value(25));
    env.until("it is woken, though the watch is late", async || env.replicas("worker").await == 3).await;
    let reported =
        async || env.events("worker").await.into_iter().any(|(_, note)| note.contains("from 1 to 3"));
    env.until("it is reported", reported).await;
    env.client_faults.release_watches();
    env.stop().await;
}

#[tokio::test(start_paused = true)]
async fn pause_reads_the_current_count() {
    let env = moved(json!({}), 0, 7).await;
    env.patch(&objects("worker"), super::env::annotate("autoscaling.keda.sh/paused-replicas", "0")).await;
    env.until("it says so", async || env.condition("worker", "Paused").await.0 == "True").await;
    assert_eq!(env.replicas("worker").await, 0);
    env.client_faults.release_watches();
    env.stop().await;
}

#[tokio::test(start_paused = true)]
async fn pause_deletes_an_hpa_that_the_watch_has_not_delivered() {
    let env = TestEnv::start().await;
    env.deployment("worker", 1).await;
    env.client_faults.hold_watch("/horizontalpodautoscalers");
    env.client_faults.refuse(Method::PATCH, "/scaledobjects/worker/status", 500, u32::MAX);
    env.scaled_object("worker", json!({"triggers": [trigger("orders")]})).await;
    env.until("there is an HPA", async || env.hpa("keda-hpa-worker").await.is_some()).await;
    assert!(env.status("worker").await.get("hpaName").is_none());
    env.patch(&objects("worker"), super::env::annotate("autoscaling.keda.sh/paused", "true")).await;
    sleep(Duration::from_secs(1)).await;
    env.client_faults.clear_refusals();
    env.until("it says so", async || env.condition("worker", "Paused").await.0 == "True").await;
    assert!(env.hpa("keda-hpa-worker").await.is_none(), "it would scale what is paused");
    env.client_faults.release_watches();
    env.stop().await;
}

#[tokio::test(start_paused = true)]
async fn samples_from_before_a_push_do_not_deactivate() {
    let env = TestEnv::start().await;
    env.deployment("worker", 0).await;
    let trigger = json!({"type": "scripted-push", "metadata": {"source": "orders"}});
    let spec = json!({"pollingInterval": 20, "cooldownPeriod": 0, "triggers": [trigger]});
    env.scaled_object("worker", spec).await;
    env.until("it was polled", async || env.condition("worker", "Active").await.0 == "False").await;
    env.sources.set("orders", SourceResponse::Delayed(Duration::from_secs(4), 0));
    let query_count = env.sources.queries("orders");
    env.until("it is queried", async || env.sources.queries("orders") > query_count).await;
    sleep(Duration::from_secs(1)).await;
    env.sources.push();
    env.until("it is woken", async || env.replicas("worker").await == 1).await;
    // By now the source has reported no load.
    sleep(Duration::from_secs(6)).await;
    assert_eq!(env.replicas("worker").await, 1);
    env.until("the next answer counts", async || env.replicas("worker").await == 0).await;
    env.stop().await;
}

/// A poll soon after a write finds the old count in the store: `plimsoll up` printed such a decision a second time.
#[tokio::test(start_paused = true)]
async fn direct_mode_records_a_change_once_while_the_watch_is_late() {
    let settings = OperatorSettings { scaling_mode: ScalingMode::Direct, ..OperatorSettings::default() };
    let env = TestEnv::with(settings).await;
    env.deployment("worker", 1).await;
    env.sources.set("orders", SourceResponse::Value(45));
    env.scaled_object("worker", json!({"pollingInterval": 5, "triggers": [trigger("orders")]})).await;
    env.until("there is a replica per ten orders", async || env.replicas("worker").await == 5).await;
    // Targets are watched a moment after the first object was created.
    sleep(Duration::from_secs(10)).await;
    env.client_faults.hold_watch("/deployments");
    env.sources.set("orders", SourceResponse::Value(55));
    env.until("there is one more", async || env.replicas("worker").await == 6).await;
    let query_count = env.sources.queries("orders");
    env.until("it was polled again", async || env.sources.queries("orders") > query_count + 2).await;
    let records = env.handle.records().of("shop", "so.worker");
    let counts: Vec<(i32, i32)> =
        records.iter().map(|run| (run.decision.current().get(), run.decision.desired.get())).collect();
    assert_eq!(counts.iter().filter(|counts| **counts == (5, 6)).count(), 1, "{counts:?}");
    assert_eq!(records.last().unwrap().decision.outcome, engine::ScaleOutcome::Kept, "{counts:?}");
    env.client_faults.release_watches();
    env.stop().await;
}
