use std::time::Duration;

use super::query::{PubSubResource, mql, resource};
use crate::test_support::{google_metadata, read_answered, trigger};

#[test]
fn names_of_resources() {
    assert_eq!(resource("mysub"), ("", "mysub"));
    assert_eq!(resource("projects/shop/subscriptions/s"), ("shop", "s"));
    assert_eq!(resource("projects/shop/topics/t"), ("shop", "t"));
    assert_eq!(resource("projects/shop/queues/t"), ("", "projects/shop/queues/t"));
}

#[test]
fn queries_have_resource_metric_and_horizon() {
    let build = |id, mode, aggregation, horizon| {
        mql(PubSubResource::Subscription, ("p", id), mode, aggregation, horizon)
            .map_err(|error| error.message)
    };
    assert_eq!(
        build("mysub", "SubscriptionSize", "", None).unwrap(),
        "fetch pubsub_subscription | metric 'pubsub.googleapis.com/subscription/num_undelivered_messages' | filter \
         (resource.project_id == 'p' && resource.subscription_id == 'mysub') | within 120s"
    );
    assert_eq!(
        mql(PubSubResource::Topic, ("p", "top"), "MessageSizes", "percentile99", None).unwrap(),
        "fetch pubsub_topic | metric 'pubsub.googleapis.com/topic/message_sizes' | filter (resource.project_id == 'p' && \
         resource.topic_id == 'top') | within 300s | align delta(3m) | every 3m | group_by [], percentile(value, 99)"
    );
    let horizon = |time| build("mysub", "m", "", Some(time)).unwrap().rsplit(' ').next().unwrap().to_owned();
    assert_eq!(horizon(Duration::from_mins(1)), "60s");
    assert_eq!(horizon(Duration::from_millis(1500)), "1500ms");
    assert_eq!(horizon(Duration::ZERO), "120s");
    for (mode, metric) in [
        ("OldestUnackedMessageAge", "oldest_unacked_message_age"),
        ("SendMessageOperationCount", "send_message_operation_count"),
        ("AckHTTPCount", "ack_http_count"),
        ("num_undelivered_messages", "num_undelivered_messages"),
    ] {
        assert!(build("mysub", mode, "", None).unwrap().contains(&format!("/{metric}' |")), "{mode}");
    }
}

/// Triggers write the parts of a query that may be sent with the identity of the operator.
#[test]
fn queries_cannot_be_extended() {
    let error = |id, mode, aggregation| {
        mql(PubSubResource::Topic, ("p", id), mode, aggregation, None).unwrap_err().message
    };
    assert!(error("x' || true", "m", "").contains("invalid Pub/Sub resource name"));
    assert!(error("ab", "m", "").contains("invalid Pub/Sub resource name"));
    assert!(error("google", "m", "").contains("cannot start with"));
    assert!(error("top", "m' | x", "").contains("is not the name of a metric"));
    assert!(error("top", "", "").contains("is not the name of a metric"));
    assert_eq!(error("top", "m", "max"), "unsupported aggregation function: max");
    assert_eq!(error("top", "m", "percentile101"), "invalid percentile value: 101");
}

const TIME_SERIES_OF_FIVE: &str =
    r#"{"timeSeriesData": [{"pointData": [{"values": [{"int64Value": "5"}]}]}]}"#;

#[tokio::test]
async fn reads_the_newest_point_with_a_token() {
    let mut trigger = trigger("gcp-pubsub", &[("subscriptionName", "mysub"), ("activationValue", "5")]);
    trigger.identity.provider = "gcp".into();
    let answer = |call: &crate::web::HttpCall| {
        google_metadata(call).unwrap_or_else(|| {
            assert_eq!(call.url, "https://monitoring.googleapis.com/v3/projects/p/timeSeries:query");
            assert_eq!(call.headers.get("authorization").unwrap(), "Bearer t");
            let body = std::str::from_utf8(&call.body).unwrap();
            assert!(
                body.contains("(resource.project_id == 'p' && resource.subscription_id == 'mysub')"),
                "{body}"
            );
            (200, TIME_SERIES_OF_FIVE.to_owned())
        })
    };
    let reading = read_answered(&trigger, answer).await.unwrap();
    assert_eq!((reading.values.first().unwrap().value.canonical(), reading.active), ("5".to_owned(), false));
    trigger.metadata.insert("subscriptionName".into(), "projects/other/subscriptions/mysub".into());
    let answer = |call: &crate::web::HttpCall| {
        google_metadata(call).unwrap_or_else(|| {
            assert_eq!(call.url, "https://monitoring.googleapis.com/v3/projects/other/timeSeries:query");
            (403, r#"{"error": {"message": "no right to read"}}"#.to_owned())
        })
    };
    let error = read_answered(&trigger, answer).await.unwrap_err().message;
    assert_eq!(error, "Cloud Monitoring returned 403: no right to read");
}

#[tokio::test]
async fn missing_data_is_an_error_without_value_if_null() {
    let mut trigger = trigger("gcp-pubsub", &[("topicName", "mytopic"), ("mode", "MessageSizes")]);
    trigger.identity.provider = "gcp".into();
    let answer = |call: &crate::web::HttpCall| google_metadata(call).unwrap_or((200, "{}".to_owned()));
    let error = read_answered(&trigger, answer).await.unwrap_err().message;
    assert!(error.starts_with("could not find stackdriver metric with query fetch pubsub_topic"), "{error}");
    trigger.metadata.insert("valueIfNull".into(), "1.5".into());
    let reading = read_answered(&trigger, answer).await.unwrap();
    assert_eq!(reading.values.first().unwrap().value.canonical(), "1500m");
    let broken = |call: &crate::web::HttpCall| google_metadata(call).unwrap_or((200, "<html>".to_owned()));
    assert!(read_answered(&trigger, broken).await.unwrap_err().message.contains("not JSON"));
}
