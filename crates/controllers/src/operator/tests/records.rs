//! What is kept of each round, for people who ask why.

use std::time::Duration;

use serde_json::json;
use tokio::time::sleep;

use super::bench::{Bench, deployments, objects, trigger};
use super::script::Says;
use crate::operator::{OperatorSettings, ScalingMode};

fn said(bench: &Bench) -> Vec<String> {
    let records = bench.handle.records().of("shop", "so.worker");
    let line = |record: &api::decisions::DecisionRecord| {
        let decision = &record.decision;
        format!("{} → {}: {}", decision.current(), decision.desired, record.sentence())
    };
    records.iter().map(line).collect()
}

#[tokio::test(start_paused = true)]
async fn rest_and_work_are_kept_where_an_hpa_does_the_rest() {
    let bench = Bench::start().await;
    bench.deployment("worker", 0).await;
    let mut source = trigger("orders");
    source["name"] = json!("queue");
    source["metadata"]["activationTarget"] = json!("0");
    let spec = json!({"pollingInterval": 5, "cooldownPeriod": 60, "triggers": [source]});
    bench.scaled_object("worker", spec).await;
    bench.until("it sleeps, and says why", async || !said(&bench).is_empty()).await;
    assert_eq!(said(&bench), ["0 → 0: at rest: queue is 0 (activation 0)"]);
    sleep(Duration::from_mins(1)).await;
    let records = bench.handle.records().of("shop", "so.worker");
    assert_eq!(records.len(), 1, "the same again and again is one record");
    assert!(records[0].times > 5 && records[0].period.as_secs() == 5, "{records:?}");

    bench.script.say("orders", Says::Value(25));
    bench.until("it is woken", async || said(&bench).len() == 2).await;
    assert_eq!(said(&bench)[1], "0 → 1: queue is 25 (activation 0)");
    bench.until("the HPA decides", async || said(&bench).len() == 3).await;
    let through = "queue is 25 (activation 0); hpa/keda-hpa-worker decides";
    assert_eq!(said(&bench)[2], format!("1 → 1: {through}"));
    bench.patch(&deployments("worker"), json!({"spec": {"replicas": 7}})).await;
    bench.until("who scales is seen", async || said(&bench)[3..] == [format!("7 → 7: {through}")]).await;

    bench.script.say("orders", Says::Fails("connection refused"));
    bench.until("an error is told", async || said(&bench).len() == 5).await;
    assert_eq!(said(&bench)[4], "7 → 7: held: a trigger cannot be read, and an error never scales down");
    let words = bench.handle.records().of("shop", "so.worker").pop().unwrap().explain("so").to_string();
    assert!(words.contains("queue (scripted) cannot be read: connection refused\n"), "{words}");

    bench.script.say("orders", Says::Value(0));
    bench.until("it sleeps", async || bench.replicas("worker").await == 0).await;
    bench.until("that is told", async || said(&bench).iter().any(|line| line.starts_with("7 → 0"))).await;
    let lines = said(&bench);
    assert!(lines.iter().any(|line| line.starts_with("7 → 7: nothing active; cooldown until ")), "{lines:?}");
    assert!(lines.iter().any(|line| line.starts_with("7 → 0: nothing active since ")), "{lines:?}");
    bench.delete(&objects("worker")).await;
    bench.until("it is forgotten", async || said(&bench).is_empty()).await;
    bench.stop().await;
}

#[tokio::test(start_paused = true)]
async fn one_record_tells_of_all_of_it_where_no_hpa_does() {
    let bench =
        Bench::with(OperatorSettings { scaling_mode: ScalingMode::Direct, ..OperatorSettings::default() })
            .await;
    bench.deployment("worker", 0).await;
    let spec = json!({"pollingInterval": 5, "cooldownPeriod": 60, "maxReplicaCount": 8, "triggers": [trigger("orders")]});
    bench.scaled_object("worker", spec).await;
    bench.until("it sleeps, and says why", async || !said(&bench).is_empty()).await;
    bench.script.say("orders", Says::Value(45));
    bench.until("it works", async || bench.replicas("worker").await == 5).await;
    bench.until("that is told", async || said(&bench).len() >= 2).await;
    assert_eq!(said(&bench)[1], "0 → 4: scripted is 45; scripted wants 5; scale-up limit is 4 this time");
    bench.script.say("orders", Says::Fails("connection refused"));
    let failed = async || said(&bench).last().is_some_and(|line| line.contains("cannot be read"));
    bench.until("an error is told", failed).await;
    let record = bench.handle.records().of("shop", "so.worker").pop().unwrap();
    assert_eq!(record.round.as_ref().and_then(|round| round.hpa.clone()), None);
    let words = record.explain("so").to_string();
    assert!(words.contains("triggers   scripted cannot be read: connection refused\n"), "{words}");
    bench.stop().await;
}
