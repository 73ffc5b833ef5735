//! 0 ↔ N without an HPA.

use std::time::Duration;

use serde_json::json;
use tokio::time::{Instant, sleep};

use super::bench::{Bench, deployments, objects, trigger};
use super::script::Says;
use crate::operator::{OperatorSettings, ScalingMode};

#[tokio::test(start_paused = true)]
async fn our_own_engine_does_all_of_it() {
    let bench =
        Bench::with(OperatorSettings { scaling_mode: ScalingMode::Direct, ..OperatorSettings::default() })
            .await;
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
    let records = bench.handle.records().of("shop", "so.worker");
    let last = records.last().unwrap();
    assert_eq!(last.decision.desired, 8);
    assert_eq!(last.api_version, "operator.plimsoll.dev/v1alpha1");
    let said: Vec<String> = records.iter().map(api::decisions::DecisionRecord::sentence).collect();
    assert_eq!(said[0], "at rest: scripted is 0");
    assert_eq!(said[1], "scripted is 45; scripted wants 5; scale-up limit is 4 this time");

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

fn pushed(interval: u32) -> serde_json::Value {
    let push = json!({"type": "scripted-push", "metadata": {"source": "orders"}});
    json!({"pollingInterval": interval, "maxReplicaCount": 20, "triggers": [push]})
}

#[tokio::test(start_paused = true)]
async fn what_is_pushed_is_sized_at_once() {
    let bench =
        Bench::with(OperatorSettings { scaling_mode: ScalingMode::Direct, ..OperatorSettings::default() })
            .await;
    bench.deployment("worker", 0).await;
    bench.scaled_object("worker", pushed(3600)).await;
    bench.until("it was polled", async || bench.condition("worker", "Active").await.0 == "False").await;
    for (work, replicas) in [(35, 4), (75, 8)] {
        bench.script.say("orders", Says::Value(work));
        let began = Instant::now();
        bench.script.push();
        bench
            .until("as many as there is work for", async || bench.replicas("worker").await == replicas)
            .await;
        assert!(began.elapsed() <= Duration::from_millis(100), "{:?}", began.elapsed());
        sleep(Duration::from_secs(20)).await;
    }
    assert_eq!(bench.condition("worker", "Active").await.0, "True");
    bench.stop().await;
}

#[tokio::test(start_paused = true)]
async fn who_is_slow_to_say_how_much_there_is_does_not_delay_the_waking() {
    let bench =
        Bench::with(OperatorSettings { scaling_mode: ScalingMode::Direct, ..OperatorSettings::default() })
            .await;
    bench.deployment("worker", 0).await;
    bench.scaled_object("worker", pushed(3600)).await;
    bench.until("it was polled", async || bench.condition("worker", "Active").await.0 == "False").await;
    bench.script.say("orders", Says::Hangs);
    let began = Instant::now();
    bench.script.push();
    bench.until("it is woken", async || bench.replicas("worker").await == 1).await;
    assert!(began.elapsed() <= Duration::from_millis(200), "{:?}", began.elapsed());
    sleep(Duration::from_mins(1)).await;
    assert_eq!(bench.replicas("worker").await, 1, "a source that hangs is no idle one");
    bench.stop().await;
}

#[tokio::test(start_paused = true)]
async fn however_often_it_is_pushed_a_source_is_not_flooded() {
    let bench =
        Bench::with(OperatorSettings { scaling_mode: ScalingMode::Direct, ..OperatorSettings::default() })
            .await;
    bench.deployment("worker", 0).await;
    bench.scaled_object("worker", pushed(3600)).await;
    bench.until("it was polled", async || bench.condition("worker", "Active").await.0 == "False").await;
    let asked = bench.script.asked("orders");
    bench.script.say("orders", Says::Value(5));
    for _ in 0..500 {
        bench.script.push();
        sleep(Duration::from_millis(10)).await;
    }
    bench.script.say("orders", Says::Value(25));
    bench.script.push();
    bench.until("the last is heard", async || bench.replicas("worker").await == 3).await;
    let asked = bench.script.asked("orders") - asked;
    assert!((3..=9).contains(&asked), "{asked} questions in five seconds");
    bench.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_trigger_that_is_broken_by_an_edit_scales_nothing_in() {
    let bench =
        Bench::with(OperatorSettings { scaling_mode: ScalingMode::Direct, ..OperatorSettings::default() })
            .await;
    bench.deployment("worker", 1).await;
    bench.script.say("orders", Says::Value(20));
    bench.script.say("mails", Says::Value(80));
    let triggers = json!([trigger("orders"), trigger("mails")]);
    bench.scaled_object("worker", json!({"pollingInterval": 5, "triggers": triggers})).await;
    bench.until("as many as there is work for", async || bench.replicas("worker").await == 8).await;
    let broken = json!({"type": "scripted", "metadata": {"source": "mails", "needs-password": "yes"}});
    bench.patch(&objects("worker"), json!({"spec": {"triggers": [trigger("orders"), broken]}})).await;
    bench.until("it says so", async || bench.condition("worker", "Ready").await.2.contains("password")).await;
    sleep(Duration::from_mins(15)).await;
    assert_eq!(bench.replicas("worker").await, 8, "what is not known is not zero");
    bench.patch(&objects("worker"), json!({"spec": {"triggers": triggers}})).await;
    bench.script.say("mails", Says::Value(10));
    bench.until("what is known decides", async || bench.replicas("worker").await == 2).await;
    bench.stop().await;
}
