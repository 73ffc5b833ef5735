//! Who listens hears every value as it is read.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::json;

use super::bench::Bench;
use super::script::Says;
use crate::operator::{MetricRequester, OperatorSettings, RawMetric, RawMetricsSubscriber};

#[derive(Default)]
struct Heard(Mutex<Vec<(MetricRequester, String)>>);

impl RawMetricsSubscriber for Heard {
    fn is_subscribed(&self) -> bool {
        true
    }

    fn publish(&self, told: &RawMetric<'_>) {
        let RawMetric { namespace, object, trigger, values, active, .. } = told;
        let values: Vec<f64> = values.iter().map(|value| value.value.as_f64()).collect();
        let text = format!("{namespace}/{object} {trigger}: {values:?} {active}");
        self.0.lock().unwrap().push((told.by, text));
    }
}

#[tokio::test(start_paused = true)]
async fn polls_and_questions_of_hpas_are_heard_and_failures_are_no_values() {
    let bench =
        Bench::with(OperatorSettings { sample_age: Duration::ZERO, ..OperatorSettings::default() }).await;
    let heard = Arc::new(Heard::default());
    bench.handle.subscribe_raw_metrics(heard.clone());
    let count = |by: MetricRequester| heard.0.lock().unwrap().iter().filter(|(who, _)| *who == by).count();
    bench.deployment("worker", 1).await;
    bench.script.say("orders", Says::Value(25));
    bench.script.say("mails", Says::Fails("connection refused"));
    let source =
        |name: &str, called: &str| json!({"type": "scripted", "name": called, "metadata": {"source": name}});
    let triggers = json!([source("orders", "queue"), source("mails", "")]);
    bench.scaled_object("worker", json!({"pollingInterval": 60, "triggers": triggers})).await;
    bench.until("it is polled", async || count(MetricRequester::Poll) > 0).await;
    assert_eq!(count(MetricRequester::Hpa), 0);
    bench.handle.metric("shop", "worker", "s0-orders").await.unwrap();
    assert!(bench.handle.metric("shop", "worker", "s1-mails").await.is_err());
    assert_eq!(count(MetricRequester::Hpa), 1);
    let all = heard.0.lock().unwrap().clone();
    assert!(all.iter().all(|(_, text)| text == "shop/worker queue: [25.0] true"), "{all:?}");
    bench.script.say("mails", Says::Value(0));
    bench.handle.metric("shop", "worker", "s1-mails").await.unwrap();
    let last = heard.0.lock().unwrap().last().unwrap().1.clone();
    assert_eq!(last, "shop/worker scripted: [0.0] false", "without a name, what its type is called");
    bench.stop().await;
}
