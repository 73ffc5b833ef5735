//! Subscribers of raw metrics receive every value as it is read.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::json;

use super::env::TestEnv;
use super::sources::SourceResponse;
use crate::operator::{MetricRequester, OperatorSettings, RawMetric, RawMetricsSubscriber};

#[derive(Default)]
struct ReceivedMetrics(Mutex<Vec<(MetricRequester, String)>>);

impl RawMetricsSubscriber for ReceivedMetrics {
    fn is_subscribed(&self) -> bool {
        true
    }

    fn publish(&self, reported: &RawMetric<'_>) {
        let RawMetric { namespace, object, trigger, values, active, .. } = reported;
        let values: Vec<f64> = values.iter().map(|value| value.value.as_f64()).collect();
        let text = format!("{namespace}/{object} {trigger}: {values:?} {active}");
        self.0.lock().unwrap().push((reported.by, text));
    }
}

#[tokio::test(start_paused = true)]
async fn raw_metrics_have_polls_and_hpa_requests_but_no_failures() {
    let env =
        TestEnv::with(OperatorSettings { sample_age: Duration::ZERO, ..OperatorSettings::default() }).await;
    let heard = Arc::new(ReceivedMetrics::default());
    env.handle.subscribe_raw_metrics(heard.clone());
    let count = |by: MetricRequester| heard.0.lock().unwrap().iter().filter(|(who, _)| *who == by).count();
    env.deployment("worker", 1).await;
    env.sources.set("orders", SourceResponse::Value(25));
    env.sources.set("mails", SourceResponse::Fails("connection refused"));
    let source =
        |name: &str, called: &str| json!({"type": "scripted", "name": called, "metadata": {"source": name}});
    let triggers = json!([source("orders", "queue"), source("mails", "")]);
    env.scaled_object("worker", json!({"pollingInterval": 60, "triggers": triggers})).await;
    env.until("it is polled", async || count(MetricRequester::Poll) > 0).await;
    assert_eq!(count(MetricRequester::Hpa), 0);
    env.handle.metric("shop", "worker", "s0-orders").await.unwrap();
    assert!(env.handle.metric("shop", "worker", "s1-mails").await.is_err());
    assert_eq!(count(MetricRequester::Hpa), 1);
    let all = heard.0.lock().unwrap().clone();
    assert!(all.iter().all(|(_, text)| text == "shop/worker queue: [25.0] true"), "{all:?}");
    env.sources.set("mails", SourceResponse::Value(0));
    env.handle.metric("shop", "worker", "s1-mails").await.unwrap();
    let last = heard.0.lock().unwrap().last().unwrap().1.clone();
    assert_eq!(last, "shop/worker scripted: [0.0] false", "without a name, what its type is called");
    env.stop().await;
}
