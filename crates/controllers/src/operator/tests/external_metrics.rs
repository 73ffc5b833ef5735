//! External metrics, pushes, exported metrics.

use std::time::Duration;

use api::provider::{ExternalMetricQuery, MetricsError};
use api::selector::Selector;
use cluster::lease::{self, Election};
use jiff::SignedDuration;
use serde_json::json;
use tokio::time::{Instant, sleep};

use super::env::{TestEnv, trigger};
use super::sources::SourceResponse;
use crate::operator::OperatorSettings;

fn metric_query(metric: &str, selector: &str) -> ExternalMetricQuery {
    ExternalMetricQuery {
        namespace: "shop".to_owned(),
        metric: metric.to_owned(),
        series: Selector::parse(selector).unwrap(),
        source: api::provider::SampleSource::default(),
    }
}

#[tokio::test(start_paused = true)]
async fn external_metric_request_uses_a_recent_sample() {
    let env = TestEnv::start().await;
    env.deployment("worker", 1).await;
    env.sources.set("orders", SourceResponse::Value(25));
    env.scaled_object("worker", json!({"pollingInterval": 60, "triggers": [trigger("orders")]})).await;
    env.until("it was polled", async || env.condition("worker", "Active").await.0 == "True").await;
    let metrics = env.handle.external_metrics();
    let selector = "scaledobject.keda.sh/name=worker";
    let query_count = env.sources.queries("orders");
    for name in ["s0-orders", "S0-Orders"] {
        let values = metrics.values(&metric_query(name, selector)).await.unwrap();
        assert_eq!((&*values[0].metric, &*values[0].value.to_string()), ("s0-orders", "25"));
    }
    assert_eq!(env.sources.queries("orders"), query_count, "no source was queried");
    sleep(Duration::from_secs(5)).await;
    let query = metric_query("s0-orders", selector);
    let first = metrics.values(&query).await.unwrap()[0].timestamp.unwrap();
    sleep(Duration::from_secs(1)).await;
    let second = metrics.values(&query).await.unwrap()[0].timestamp.unwrap();
    assert_eq!(env.sources.queries("orders"), query_count, "no source was queried");
    let moved = second.duration_since(first).abs();
    assert!(
        moved < SignedDuration::from_millis(100),
        "both state when the source was queried: {first}, {second}"
    );
    assert_eq!(query.source.stated().as_deref(), Some("trigger scripted of ScaledObject worker"));
    env.sources.set("orders", SourceResponse::Value(30));
    sleep(Duration::from_secs(20)).await;
    let values = metrics.values(&metric_query("s0-orders", selector)).await.unwrap();
    assert_eq!(values[0].value.to_string(), "30", "what is too old is queried again");

    let failure = metrics.values(&metric_query("s0-orders", "")).await.unwrap_err();
    assert_eq!(failure, MetricsError::Plain("scaledObject name is not specified".to_owned()));
    let failure = metrics.values(&metric_query("s0-other", selector)).await.unwrap_err();
    assert!(failure.to_string().contains("no matching metrics found for s0-other"), "{failure}");
    let failure = metrics.values(&metric_query("s0-x", "scaledobject.keda.sh/name=none")).await.unwrap_err();
    assert!(failure.to_string().contains("not found"), "{failure}");
    env.stop().await;
}

#[tokio::test(start_paused = true)]
async fn polls_and_hpa_requests_share_one_sample_per_interval() {
    let env = TestEnv::start().await;
    env.deployment("worker", 1).await;
    env.sources.set("orders", SourceResponse::Value(25));
    env.scaled_object("worker", json!({"pollingInterval": 30, "triggers": [trigger("orders")]})).await;
    env.until("it was polled", async || env.condition("worker", "Active").await.0 == "True").await;
    let query_count = env.sources.queries("orders");
    // The HPA's period is a little longer than the interval, so that its requests fall on every moment between two polls.
    let (period, begun) = (Duration::from_millis(15_200), Instant::now());
    while begun.elapsed() < Duration::from_mins(20) {
        sleep(period).await;
        assert!(env.handle.metric("shop", "worker", "s0-orders").await.is_ok());
    }
    let query_count = env.sources.queries("orders") - query_count;
    assert!((40..=42).contains(&query_count), "40 intervals, but {query_count} samples");
    env.stop().await;
}

#[tokio::test(start_paused = true)]
async fn push_activates_the_target_at_once() {
    let env = TestEnv::start().await;
    env.deployment("worker", 0).await;
    let push = json!({"type": "scripted-push", "metadata": {"source": "orders"}});
    env.scaled_object("worker", json!({"pollingInterval": 3600, "triggers": [push]})).await;
    env.until("it was polled", async || env.condition("worker", "Active").await.0 == "False").await;
    let began = Instant::now();
    env.sources.push();
    env.until("it is woken", async || env.replicas("worker").await == 1).await;
    assert!(began.elapsed() <= Duration::from_millis(100), "{:?}", began.elapsed());
    env.until("it says so", async || env.condition("worker", "Active").await.0 == "True").await;
    env.stop().await;
}

#[tokio::test(start_paused = true)]
async fn exported_metrics_are_those_of_keda() {
    let env = TestEnv::start().await;
    env.deployment("worker", 1).await;
    env.sources.set("orders", SourceResponse::Value(25));
    env.scaled_object("worker", json!({"triggers": [trigger("orders")]})).await;
    env.until("it was polled", async || env.condition("worker", "Active").await.0 == "True").await;
    let page = env.handle.exported_metrics();
    let labels = r#"namespace="shop",metric="s0-orders",scaledObject="worker",scaler="scripted",triggerIndex="0",type="scaledobject""#;
    for line in [
        format!("keda_scaler_metrics_value{{{labels}}} 25"),
        format!("keda_scaler_active{{{labels}}} 1"),
        format!("keda_scaler_detail_errors_total{{{labels}}} 0"),
        r#"keda_scaled_object_errors_total{namespace="shop",scaledObject="worker"} 0"#.to_owned(),
        r#"keda_scaled_object_paused{namespace="shop",scaledObject="worker"} 0"#.to_owned(),
        r#"keda_trigger_registered_total{type="scripted"} 1"#.to_owned(),
        r#"keda_resource_registered_total{type="scaled_object",namespace="shop"} 1"#.to_owned(),
    ] {
        assert!(page.lines().any(|own| own == line), "{line}\nis not in\n{page}");
    }
    env.stop().await;
}

#[tokio::test(start_paused = true)]
async fn follower_serves_metrics_but_writes_nothing() {
    let mut kept = None;
    let env = TestEnv::led(OperatorSettings::default(), |client, clock| {
        // Another process holds the lease for the whole test.
        let lease = lease::LeaseSettings {
            lease_duration: Duration::from_hours(10),
            renew_deadline: Duration::from_hours(5),
            ..lease::LeaseSettings::new("shop", "operator.keda.sh", "other")
        };
        let own = lease::LeaseSettings { identity: "own".to_owned(), ..lease.clone() };
        let (other, _) = Election::start(client.clone(), lease, clock.clone());
        let (election, leadership) = Election::start(client, own, clock);
        kept = Some((other, election));
        leadership
    })
    .await;
    env.deployment("worker", 0).await;
    env.sources.set("orders", SourceResponse::Value(25));
    env.scaled_object("worker", json!({"pollingInterval": 1, "triggers": [trigger("orders")]})).await;
    let read_metric = async || env.handle.metric("shop", "worker", "s0-orders").await;
    env.until("it is known", async || read_metric().await.is_ok()).await;
    assert_eq!(read_metric().await.unwrap()[0].value.to_string(), "25");
    sleep(Duration::from_mins(1)).await;
    assert_eq!(env.status("worker").await, json!(null));
    assert_eq!(env.replicas("worker").await, 0);
    env.stop().await;
}
