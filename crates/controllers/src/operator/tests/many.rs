//! Many objects, some of them with sources that hang.

use std::time::Duration;

use serde_json::json;
use tokio::time::{Instant, sleep};

use super::bench::{Bench, trigger};
use super::script::Says;
use crate::operator::OperatorSettings;

#[tokio::test(start_paused = true)]
async fn sources_that_hang_do_not_make_others_late() {
    // Fewer places than objects that hang.
    let bench = Bench::with(OperatorSettings {
        concurrency: 16,
        slow_concurrency: 16,
        ..OperatorSettings::default()
    })
    .await;
    bench.script.say("hung", Says::Hangs);
    for number in 0..200 {
        let name = format!("w{number}");
        let source = if number % 2 == 0 { "hung".to_owned() } else { name.clone() };
        bench.deployment(&name, 0).await;
        bench.scaled_object(&name, json!({"pollingInterval": 10, "triggers": [trigger(&source)]})).await;
    }
    let ready = async || {
        let mut count = 0;
        for number in (1..200).step_by(2) {
            let (_, reason, _) = bench.condition(&format!("w{number}"), "Active").await;
            count += usize::from(reason == "ScalerNotActive");
        }
        count
    };
    bench.until("all that do not hang were polled", async || ready().await == 100).await;
    let asked = |number: usize| bench.script.asked(&format!("w{number}"));
    sleep(Duration::from_mins(1)).await;
    let before: Vec<u64> = (1..200).step_by(2).map(asked).collect();
    sleep(Duration::from_secs(100)).await;
    let after: Vec<u64> = (1..200).step_by(2).map(asked).collect();
    let polls: Vec<u64> = after.iter().zip(&before).map(|(after, before)| after - before).collect();
    assert!(polls.iter().all(|polls| (9..=11).contains(polls)), "{polls:?}");

    for number in (1..200).step_by(2) {
        bench.script.say(&format!("w{number}"), Says::Value(5));
    }
    let began = Instant::now();
    let awake = async || {
        let mut count = 0;
        for number in (1..200).step_by(2) {
            count += usize::from(bench.replicas(&format!("w{number}")).await == 1);
        }
        count
    };
    bench.until("all are awake", async || awake().await == 100).await;
    assert!(began.elapsed() <= Duration::from_secs(12), "{:?}", began.elapsed());
    let (_, reason, message) = bench.condition("w0", "Ready").await;
    assert_eq!(reason, "TriggerError");
    assert!(message.contains("no answer within 10 s"), "{message}");
    bench.stop().await;
}

#[tokio::test(start_paused = true)]
async fn those_who_ask_the_same_wake_together() {
    let bench = Bench::start().await;
    let names: Vec<String> = (0..20).map(|number| format!("w{number}")).collect();
    for name in &names {
        bench.deployment(name, 0).await;
        bench.scaled_object(name, json!({"pollingInterval": 60, "triggers": [trigger("same")]})).await;
    }
    let rest = async |name: &String| bench.condition(name, "Active").await.1 == "ScalerNotActive";
    for name in &names {
        bench.until("it was polled", async || rest(name).await).await;
    }
    bench.script.say("same", Says::Value(5));
    let awake = async || {
        let mut count = 0;
        for name in &names {
            count += usize::from(bench.replicas(name).await == 1);
        }
        count
    };
    bench.until("one is awake", async || awake().await > 0).await;
    let first = Instant::now();
    bench.until("all are awake", async || awake().await == names.len()).await;
    assert!(first.elapsed() < Duration::from_secs(1), "{:?}", first.elapsed());
    bench.stop().await;
}
