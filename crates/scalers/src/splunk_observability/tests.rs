use super::*;
use crate::test_support::{read_answered, texts, trigger};

const STREAM: &str = "event: control-message\n\
data: {\n\
data:   \"event\" : \"STREAM_START\", \"timestampMs\" : 1\n\
data: }\n\
\n\
event: metadata\n\
id: AAAA\n\
data: {\"tsId\": \"AAAA\", \"properties\": {}}\n\
\n\
event: data\n\
data: {\"data\": [{\"tsId\": \"AAAA\", \"value\": 4.5}, {\"tsId\": \"BBBB\", \"value\": null}], \"logicalTimestampMs\": 1}\n\
\n\
event: data\n\
data: {\"data\": [{\"tsId\": \"AAAA\", \"value\": 1}], \"logicalTimestampMs\": 2}\n\
\n\
event: control-message\n\
data: {\"event\": \"END_OF_CHANNEL\", \"timestampMs\": 3}\n\
\n";

fn splunk(aggregator: &str) -> Trigger {
    let mut given = trigger(
        "splunk-observability",
        &[
            ("query", "data('x').publish()"),
            ("duration", "10"),
            ("targetValue", "5"),
            ("queryAggregator", aggregator),
            ("activationTargetValue", "3"),
        ],
    );
    given.auth = texts(&[("accessToken", "hunter2"), ("realm", "us1")]);
    given
}

#[tokio::test]
async fn reads_the_points_of_the_duration() {
    for (aggregator, expected) in
        [("max", Ok("4500m")), ("min", Ok("1")), ("avg", Ok("2750m")), ("foo", Err(()))]
    {
        let reading = read_answered(&splunk(aggregator), |call| {
            let span = call
                .url
                .strip_prefix("https://stream.us1.signalfx.com/v2/signalflow/execute?start=")
                .and_then(|rest| rest.strip_suffix("&immediate=true"))
                .unwrap();
            let (start, stop) = span.split_once("&stop=").unwrap();
            assert_eq!(stop.parse::<i64>().unwrap() - start.parse::<i64>().unwrap(), 70_000);
            assert_eq!(call.headers.get("x-sf-token").unwrap(), "hunter2");
            assert_eq!(call.headers.get("content-type").unwrap(), "text/plain");
            assert_eq!(&*call.body, b"data('x').publish()");
            (200, STREAM.to_owned())
        })
        .await;
        match expected {
            Ok(value) => {
                let reading = reading.unwrap();
                assert_eq!(
                    (&*reading.values[0].value.canonical(), reading.active),
                    (value, value == "4500m")
                );
            }
            Err(()) => assert!(reading.unwrap_err().message.ends_with("invalid queryAggregator: \"foo\"")),
        }
    }
}

#[test]
fn streams_without_an_end_or_a_number_are_errors() {
    assert_eq!(query::points(200, STREAM.as_bytes()), Ok(vec![(1, 4.5), (2, 1.0)]));
    let end = STREAM.find("event: control-message\ndata: {\"event\": \"END").unwrap();
    for (status, body, reported) in [
        (200, &STREAM[..end], "the stream ended before the program did"),
        (200, "", "the stream ended before the program did"),
        (200, "<html>", "the stream ended before the program did"),
        (401, r#"{"message": "bad token"}"#, "returned 401: bad token"),
        (
            200,
            "event: data\ndata: {\"logicalTimestampMs\": 1, \"data\": [{\"value\": \"5\"}]}\n\n",
            "a string instead of a number",
        ),
        (
            200,
            "event: data\ndata: {\"logicalTimestampMs\": 1, \"data\": {}}\n\n",
            "an object instead of a list",
        ),
        (200, "event: data\ndata: {\"data\": []}\n\n", "nothing instead of a whole number"),
        (
            200,
            "event: error\ndata: {\"errors\": [{\"code\": \"ANALYTICS_PROGRAM\"}]}\n\n",
            "refused: ANALYTICS_PROGRAM",
        ),
        (
            200,
            "event: control-message\r\ndata: {\"event\": \"CHANNEL_ABORT\", \"abortInfo\": {\"sf_job_abortReason\": \"late\"}}\r\n\r\n",
            "the program was aborted: late",
        ),
    ] {
        let error = query::points(status, body.as_bytes()).unwrap_err().message;
        assert!(error.contains(reported), "{error}");
    }
}

#[test]
fn values_are_aggregated_or_refused() {
    let of = |aggregator| query::aggregated(&[2.0, 6.0, 4.0], aggregator).ok();
    assert_eq!((of("sum"), of("count"), of("latest"), of("")), (Some(12.0), Some(3.0), Some(4.0), None));
    assert_eq!(query::aggregated(&[2.0], ""), Ok(2.0));
    assert_eq!(query::aggregated(&[], "avg").unwrap_err().message, "query returned no data points");
}

#[test]
fn realms_are_one_label() {
    assert!(query::url("us1", 1, 2).starts_with("https://stream.us1.signalfx.com/"));
    assert!(query::url("evil.example/", 1, 2).starts_with("https://stream.evilexample%2F.signalfx.com/"));
}

#[test]
fn late_points_move_the_duration() {
    let minute = [(0, 1.0), (45_000, 2.0), (50_000, 3.0), (50_000, 4.0)];
    assert_eq!(query::latest(&minute, 10_000), [2.0, 3.0, 4.0]);
    assert_eq!(query::latest(&minute, 5_000), [3.0, 4.0]);
    assert_eq!(query::latest(&minute, i64::MAX), [1.0, 2.0, 3.0, 4.0]);
    assert_eq!(query::latest(&[], 10_000), [] as [f64; 0]);
}
