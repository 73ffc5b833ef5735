#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use tonic::Code;

use super::*;

fn of(trigger: &str) -> ScaledObjectRef {
    ScaledObjectRef { name: "so".into(), namespace: "ns".into(), metric_name: trigger.into() }
}

fn subscription(subscriber: &str, trigger: &str) -> Request<SubscriptionRequest> {
    Request::new(SubscriptionRequest { subscriber: subscriber.into(), metric_metadata: Some(of(trigger)) })
}

async fn subscribe(raw: &RawMetricsBroker, subscriber: &str, trigger: &str) -> bool {
    raw.subscribe_metric(subscription(subscriber, trigger)).await.unwrap().into_inner().was_subscribed
}

async fn unsubscribe(raw: &RawMetricsBroker, subscriber: &str, trigger: &str) -> bool {
    raw.unsubscribe_metric(subscription(subscriber, trigger)).await.unwrap().into_inner().was_subscribed
}

async fn listen(
    raw: &RawMetricsBroker,
    subscriber: &str,
) -> BoxStream<'static, Result<RawMetricsResponse, Status>> {
    let request = Request::new(RawMetricsRequest { subscriber: subscriber.into() });
    raw.get_raw_metrics_stream(request).await.unwrap().into_inner()
}

fn publish(raw: &RawMetricsBroker, trigger: &str, value: f64) {
    let reported = TriggerSample { namespace: "ns", object: "so", trigger, at: (5, 7), active: value > 0.0 };
    raw.publish(&reported, [value]);
}

#[tokio::test]
async fn only_subscribers_receive_values() {
    let raw = RawMetricsBroker::default();
    assert!(!raw.has_subscribers());
    assert_eq!(
        [
            unsubscribe(&raw, "a", "queue").await,
            subscribe(&raw, "a", "queue").await,
            subscribe(&raw, "a", "queue").await,
            subscribe(&raw, "b", "other").await,
        ],
        [false, false, true, false]
    );
    let (mut first, mut second) = (listen(&raw, "a").await, listen(&raw, "b").await);
    assert!(raw.has_subscribers());
    publish(&raw, "queue", 12.5);
    publish(&raw, "nobody's", 1.0);
    publish(&raw, "other", 0.0);
    let metric = |trigger, value, is_active| RawMetric {
        value,
        timestamp: Some(Timestamp { seconds: 5, nanos: 7 }),
        metadata: Some(of(trigger)),
        is_active,
    };
    assert_eq!(first.next().await.unwrap().unwrap().metrics, [metric("queue", 12.5, true)]);
    assert_eq!(second.next().await.unwrap().unwrap().metrics, [metric("other", 0.0, false)]);
    assert!(unsubscribe(&raw, "a", "queue").await && unsubscribe(&raw, "b", "other").await);
    assert!(!raw.has_subscribers());
    publish(&raw, "queue", 1.0);
    assert!(futures::poll!(first.next()).is_pending());
}

#[tokio::test(start_paused = true)]
async fn slow_subscriber_misses_values_and_expires() {
    let raw = RawMetricsBroker::default();
    subscribe(&raw, "slow", "queue").await;
    let mut slow = listen(&raw, "slow").await;
    for value in 0..10 {
        publish(&raw, "queue", f64::from(value));
    }
    for value in 0..4 {
        assert_eq!(slow.next().await.unwrap().unwrap().metrics[0].value, f64::from(value));
    }
    assert!(futures::poll!(slow.next()).is_pending(), "what did not fit is gone");
    publish(&raw, "queue", 5.0);
    assert!(slow.next().await.is_some(), "it listens again");
    for _ in 0..5 {
        publish(&raw, "queue", 1.0);
    }
    tokio::time::advance(STALLED_SUBSCRIBER_TIMEOUT).await;
    publish(&raw, "queue", 1.0);
    assert_eq!(slow.count().await, SUBSCRIBER_BUFFER_RESPONSES, "the stream ends with what was waiting");
    assert!(!raw.has_subscribers());
    assert!(!subscribe(&raw, "slow", "queue").await, "all its subscriptions are lost");
}

#[tokio::test]
async fn subscriber_reconnects_after_its_stream_broke() {
    let raw = RawMetricsBroker::default();
    subscribe(&raw, "a", "queue").await;
    drop(listen(&raw, "a").await);
    publish(&raw, "queue", 1.0);
    let mut first = listen(&raw, "a").await;
    publish(&raw, "queue", 2.0);
    assert_eq!(first.next().await.unwrap().unwrap().metrics[0].value, 2.0);
    let mut second = listen(&raw, "a").await;
    assert!(first.next().await.is_none(), "there is one stream for each subscriber");
    publish(&raw, "queue", 3.0);
    assert_eq!(second.next().await.unwrap().unwrap().metrics[0].value, 3.0);
}

#[tokio::test]
async fn subscribers_and_subscriptions_are_bounded() {
    let raw = RawMetricsBroker::default();
    for (subscriber, trigger) in [("", "queue"), ("a", ""), ("a", &*"x".repeat(MAX_NAME_BYTES + 1))] {
        let refused = raw.subscribe_metric(subscription(subscriber, trigger)).await.unwrap_err();
        assert_eq!(refused.code(), Code::InvalidArgument);
    }
    // A subscriber that disconnects without a subscription does not count against the limit.
    for number in 0..2 * MAX_SUBSCRIBERS {
        drop(listen(&raw, &format!("gone {number}")).await);
    }
    for number in 0..MAX_SUBSCRIBERS {
        subscribe(&raw, &format!("stays {number}"), "queue").await;
    }
    let refused = raw.subscribe_metric(subscription("one more", "queue")).await.unwrap_err();
    assert_eq!(refused.code(), Code::ResourceExhausted);
    assert!(subscribe(&raw, "stays 0", "queue").await);
    for number in 1..MAX_SUBSCRIPTIONS_PER_SUBSCRIBER {
        subscribe(&raw, "stays 0", &format!("queue {number}")).await;
    }
    let refused = raw.subscribe_metric(subscription("stays 0", "one more")).await.unwrap_err();
    assert_eq!(refused.code(), Code::ResourceExhausted);
}
