//! Many objects, some of them with sources that hang.

use std::time::Duration;

use http::Method;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::env::{TestEnv, trigger};
use super::sources::SourceResponse;
use crate::operator::OperatorSettings;

#[tokio::test(start_paused = true)]
async fn hanging_sources_do_not_delay_others() {
    // Fewer places than objects whose source hangs.
    let env = TestEnv::with(OperatorSettings {
        concurrency: 16,
        slow_concurrency: 16,
        ..OperatorSettings::default()
    })
    .await;
    env.sources.set("hung", SourceResponse::Hangs);
    for number in 0..200 {
        let name = format!("w{number}");
        let source = if number % 2 == 0 { "hung".to_owned() } else { name.clone() };
        env.deployment(&name, 0).await;
        env.scaled_object(&name, json!({"pollingInterval": 10, "triggers": [trigger(&source)]})).await;
    }
    let ready = async || {
        let mut count = 0;
        for number in (1..200).step_by(2) {
            let (_, reason, _) = env.condition(&format!("w{number}"), "Active").await;
            count += usize::from(reason == "ScalerNotActive");
        }
        count
    };
    env.until("all that do not hang were polled", async || ready().await == 100).await;
    let query_count = |number: usize| env.sources.queries(&format!("w{number}"));
    sleep(Duration::from_mins(1)).await;
    let before: Vec<u64> = (1..200).step_by(2).map(query_count).collect();
    sleep(Duration::from_secs(100)).await;
    let after: Vec<u64> = (1..200).step_by(2).map(query_count).collect();
    let polls: Vec<u64> = after.iter().zip(&before).map(|(after, before)| after - before).collect();
    assert!(polls.iter().all(|polls| (9..=11).contains(polls)), "{polls:?}");

    for number in (1..200).step_by(2) {
        env.sources.set(&format!("w{number}"), SourceResponse::Value(5));
    }
    let began = Instant::now();
    let awake = async || {
        let mut count = 0;
        for number in (1..200).step_by(2) {
            count += usize::from(env.replicas(&format!("w{number}")).await == 1);
        }
        count
    };
    env.until("all are awake", async || awake().await == 100).await;
    assert!(began.elapsed() <= Duration::from_secs(12), "{:?}", began.elapsed());
    let (_, reason, message) = env.condition("w0", "Ready").await;
    assert_eq!(reason, "TriggerError");
    assert!(message.contains("no answer within 10 s"), "{message}");
    env.stop().await;
}

#[tokio::test(start_paused = true)]
async fn objects_with_the_same_query_are_activated_together() {
    let env = TestEnv::start().await;
    let names: Vec<String> = (0..20).map(|number| format!("w{number}")).collect();
    for name in &names {
        env.deployment(name, 0).await;
        env.scaled_object(name, json!({"pollingInterval": 60, "triggers": [trigger("same")]})).await;
    }
    let rest = async |name: &String| env.condition(name, "Active").await.1 == "ScalerNotActive";
    for name in &names {
        env.until("it was polled", async || rest(name).await).await;
    }
    env.sources.set("same", SourceResponse::Value(5));
    let awake = async || {
        let mut count = 0;
        for name in &names {
            count += usize::from(env.replicas(name).await == 1);
        }
        count
    };
    env.until("one is awake", async || awake().await > 0).await;
    let first = Instant::now();
    env.until("all are awake", async || awake().await == names.len()).await;
    assert!(first.elapsed() < Duration::from_secs(1), "{:?}", first.elapsed());
    env.stop().await;
}

/// A tenant names many Secrets, and each read takes long.
#[tokio::test(start_paused = true)]
async fn scaler_that_is_not_built_in_time_is_an_error() {
    let env = TestEnv::start().await;
    let sources: Vec<Value> =
        (0..10).map(|number| json!({"secretRef": {"name": format!("s{number}")}})).collect();
    let labels = json!({"app": "worker"});
    let containers = json!([{"name": "c", "image": "i", "envFrom": sources}]);
    let template = json!({"metadata": {"labels": labels}, "spec": {"containers": containers}});
    let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "worker"},
        "spec": {"replicas": 0, "selector": {"matchLabels": labels}, "template": template}});
    env.create("/apis/apps/v1/namespaces/shop/deployments", deployment).await;
    env.client_faults.slow(Method::GET, "/secrets/", Duration::from_secs(9));
    let trigger =
        json!({"type": "scripted", "metadata": {"source": "orders", "passwordFromEnv": "PASSWORD"}});
    env.scaled_object("worker", json!({"pollingInterval": 10, "triggers": [trigger]})).await;
    let message = async || env.condition("worker", "Ready").await.2;
    let words = "the scaler was not built within 30s";
    env.until("it is an error", async || message().await.contains(words)).await;
    env.stop().await;
}
