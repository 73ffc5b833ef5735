use super::filter;
use crate::test_support::{google_metadata, read_answered, trigger};
use crate::web::HttpCall;

#[test]
fn filters_cannot_be_extended() {
    assert_eq!(
        filter("q"),
        r#"metric.type="cloudtasks.googleapis.com/queue/depth" AND resource.labels.queue_id="q""#
    );
    assert!(filter(r#"q" OR "\"#).ends_with(r#"resource.labels.queue_id="q\" OR \"\\""#));
}

#[tokio::test]
async fn reads_the_depth_of_the_queue() {
    let mut given = trigger("gcp-cloudtasks", &[("projectID", "shop"), ("queueName", "q")]);
    given.identity.provider = "gcp".into();
    let reply = |call: &HttpCall| {
        google_metadata(call).unwrap_or_else(|| {
            let base = "https://monitoring.googleapis.com/v3/projects/shop/timeSeries?filter=metric.type%3D%22\
                        cloudtasks.googleapis.com%2Fqueue%2Fdepth%22+AND+resource.labels.queue_id%3D%22q%22+AND+";
            assert!(call.url.starts_with(base), "{}", call.url);
            assert_eq!(call.headers.get("authorization").unwrap(), "Bearer t");
            (200, r#"{"timeSeries": [{"points": [{"value": {"int64Value": "7"}}]}]}"#.to_owned())
        })
    };
    let reading = read_answered(&given, reply).await.unwrap();
    assert_eq!((reading.values.first().unwrap().value.canonical(), reading.active), ("7".to_owned(), true));
    let nothing = |call: &HttpCall| google_metadata(call).unwrap_or((200, "{}".to_owned()));
    let error = read_answered(&given, nothing).await.unwrap_err().message;
    assert!(error.starts_with("could not find stackdriver metric with filter metric.type="), "{error}");
    let refused = |call: &HttpCall| google_metadata(call).unwrap_or((500, String::new()));
    let error = read_answered(&given, refused).await.unwrap_err().message;
    assert_eq!(error, "Cloud Monitoring returned 500: (nothing)");
}
