//! 0 ↔ N without an HPA.

use std::time::Duration;

use serde_json::json;
use tokio::time::sleep;

use super::bench::{Bench, deployments, objects, trigger};
use super::script::Says;
use crate::operator::{Act, Settings};

#[tokio::test(start_paused = true)]
async fn our_own_engine_does_all_of_it() {
    let bench = Bench::with(Settings { act: Act::Direct, ..Settings::default() }).await;
    bench.deployment("worker", 0).await;
    let spec = json!({"pollingInterval": 5, "cooldownPeriod": 60, "maxReplicaCount": 8, "triggers": [trigger("orders")]});
    bench.scaled_object("worker", spec).await;
    bench.until("it was polled", async || bench.condition("worker", "Active").await.0 == "False").await;
    assert!(bench.hpa("keda-hpa-worker").await.is_none());
    assert_eq!(bench.status("worker").await["externalMetricNames"], json!(["s0-orders"]));

    bench.script.say("orders", Says::Value(45));
    bench.until("as many as there is work for", async || bench.replicas("worker").await == 5).await;
    bench.script.say("orders", Says::Value(1000));
    bench.until("no more than allowed", async || bench.replicas("worker").await == 8).await;
    let decision = bench.handle.decision("shop", "worker").unwrap();
    assert_eq!(decision.desired, 8);

    bench.script.say("orders", Says::Fails("connection refused"));
    sleep(Duration::from_mins(10)).await;
    assert_eq!(bench.replicas("worker").await, 8, "what is not known is not zero");
    bench.script.say("orders", Says::Value(15));
    bench.until("it comes down by its window", async || bench.replicas("worker").await == 2).await;
    bench.script.say("orders", Says::Value(0));
    bench.until("it sleeps", async || bench.replicas("worker").await == 0).await;
    bench.stop().await;
}

#[tokio::test(start_paused = true)]
async fn an_object_says_itself_how_it_acts() {
    let bench = Bench::start().await;
    bench.deployment("worker", 1).await;
    bench.script.say("orders", Says::Value(35));
    bench.scaled_object("worker", json!({"pollingInterval": 5, "triggers": [trigger("orders")]})).await;
    bench.until("there is an HPA", async || bench.hpa("keda-hpa-worker").await.is_some()).await;
    sleep(Duration::from_secs(30)).await;
    assert_eq!(bench.replicas("worker").await, 1, "the HPA would do that");
    let direct = json!({"metadata": {"annotations": {"plimsoll.dev/act": "direct"}}});
    bench.patch(&objects("worker"), direct).await;
    bench.until("the HPA is gone", async || bench.hpa("keda-hpa-worker").await.is_none()).await;
    bench.until("we do it", async || bench.replicas("worker").await == 4).await;
    bench.patch(&objects("worker"), json!({"metadata": {"annotations": {"plimsoll.dev/act": null}}})).await;
    bench.until("the HPA is back", async || bench.hpa("keda-hpa-worker").await.is_some()).await;
    bench.patch(&deployments("worker"), json!({"spec": {"replicas": 2}})).await;
    sleep(Duration::from_secs(30)).await;
    assert_eq!(bench.replicas("worker").await, 2);
    bench.stop().await;
}
