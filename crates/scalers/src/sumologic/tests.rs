use std::sync::atomic::{AtomicUsize, Ordering};

use super::query::{SearchJob, aggregated, job, job_body, job_id, metrics_body, points, records};
use super::*;
use crate::parameters::{KedaProfile, unknown};
use crate::test_support::{ServerAction, build, read, server, texts, trigger};

fn metrics(changed: &[(&str, &str)]) -> Trigger {
    let metadata = [
        ("host", "h"),
        ("queryType", "metrics"),
        ("quantization", "15s"),
        ("timerange", "15m"),
        ("threshold", "2"),
    ];
    let mut given = trigger("sumologic", &metadata);
    given.metadata.extend(texts(changed));
    given.auth = texts(&[("accessID", "i"), ("accessKey", "k")]);
    given
}

fn error(trigger: &Trigger) -> String {
    build(trigger).err().map(|error| error.message).unwrap_or_default()
}

#[test]
fn rows_of_queries_have_ids() {
    let rows = [("query.A", "a"), ("query.B", "b")];
    let given = metrics(&[rows[0], rows[1], ("resultQueryRowID", "B")]);
    assert_eq!(error(&given), "");
    assert_eq!(unknown(TYPE.parameters, &given).next(), None);
    assert!(error(&metrics(&[rows[0], ("resultQueryRowID", "Z")])).ends_with("'Z' not found in queries"));
    assert!(error(&metrics(&[("query.", "a")])).ends_with("unable to parse rowID from key: query."));
}

fn range() -> QueryRange {
    let now = "2030-05-06T07:08:09.5Z".parse().unwrap();
    QueryRange::new(now, Duration::from_mins(15), "Europe/Berlin").unwrap()
}

/// A response with these values in row B.
fn series(values: &str) -> String {
    let one = |row: &str, values: &str| {
        format!(
            r#"{{"rowId":"{row}","timeSeriesList":{{"timeSeries":[{{"points":{{"timestamps":[1],"values":{values}}}}}]}}}}"#
        )
    };
    format!(r#"{{"queryResult":[{},{}]}}"#, one("A", "[9]"), one("B", values))
}

#[test]
fn request_bodies() {
    let rows = [("A".to_owned(), "metric=a".to_owned()), ("B".to_owned(), "#A * 2".to_owned())];
    let request_body = metrics_body(&rows, (Duration::from_secs(15), "Max"), &range());
    let read: serde_json::Value = serde_json::from_str(&request_body).unwrap();
    let boundary = |time: &str| serde_json::json!({"type": "Iso8601TimeRangeBoundary", "iso8601Time": time});
    let expected = serde_json::json!({
        "queries": [
            {"rowId": "A", "query": "metric=a", "quantization": 15_000, "rollup": "Max"},
            {"rowId": "B", "query": "#A * 2", "quantization": 15_000, "rollup": "Max"},
        ],
        "timeRange": {
            "type": "BeginBoundedTimeRange",
            "from": boundary("2030-05-06T08:53:09+02:00"),
            "to": boundary("2030-05-06T09:08:09+02:00"),
        },
    });
    assert_eq!(read, expected);
    let read: serde_json::Value = serde_json::from_str(&job_body("* | count", &range(), "UTC")).unwrap();
    let (from, to) = ("2030-05-06T08:53:09+02:00", "2030-05-06T09:08:09+02:00");
    assert_eq!(read, serde_json::json!({"query": "* | count", "from": from, "to": to, "timeZone": "UTC"}));
    let now = "2030-05-06T07:08:09Z".parse().unwrap();
    assert!(QueryRange::new(now, Duration::from_mins(1), "Mars/Olympus").is_err());
    assert!(QueryRange::new(now, Duration::MAX, "UTC").is_err());
}

#[test]
fn points_of_a_row() {
    assert_eq!(points(200, series("[1,null,2.5]").as_bytes(), "B"), Ok(Some(vec![1.0, 2.5])));
    for empty in [series("[]"), series("[null]"), r#"{"queryResult":[]}"#.to_owned()] {
        assert_eq!(points(200, empty.as_bytes(), "B"), Ok(None), "{empty}");
    }
    let none = r#"{"queryResult":[{"rowId":"B","timeSeriesList":{"timeSeries":[]}}]}"#;
    assert_eq!(points(200, none.as_bytes(), "B"), Ok(None));
    let two = none.replace("[]}", r#"[{"points":{"values":[1]}},{"points":{"values":[2]}}]}"#);
    for (status, bad, why) in [
        (200, two, "multiple time series"),
        (200, series(r#"["1"]"#), "a string instead of a number"),
        (200, series("null"), "null at points.values"),
        (200, series("[1]").replace(r#""B""#, r#""C""#), "matching resultQueryRowID B"),
        (200, r#"{"errors":{"errors":[{"code":"x","message":"bad query"}]}}"#.to_owned(), "bad query"),
        (200, "{}".to_owned(), "nothing at queryResult"),
        (200, "<html>".to_owned(), "not JSON"),
        (401, series("[1]"), "check accessID and accessKey"),
        (400, r#"{"errors":[{"message":"no such metric"}]}"#.to_owned(), "400: no such metric"),
        (503, "<html>".to_owned(), "503: (6 bytes, not shown)"),
    ] {
        let error = points(status, bad.as_bytes(), "B").unwrap_err().message;
        assert!(error.contains(why), "{bad}: {error}");
    }
}

#[test]
fn search_jobs() {
    assert_eq!(job_id(202, br#"{"id":"4F"}"#).as_deref(), Ok("4F"));
    assert!(job_id(202, b"{}").is_err() && job_id(403, br#"{"id":"4F"}"#).is_err());
    let of = |state: &str, records: u32, messages: u32| {
        let body = format!(r#"{{"state":"{state}","recordCount":{records},"messageCount":{messages}}}"#);
        job(200, body.as_bytes())
    };
    assert_eq!(of("GATHERING RESULTS", 0, 7), Ok(SearchJob::Gathering));
    assert_eq!(of("DONE GATHERING RESULTS", 2, 7), Ok(SearchJob::Done(2)));
    assert_eq!(of("DONE GATHERING RESULTS", 0, 0), Ok(SearchJob::Done(0)));
    assert!(of("DONE GATHERING RESULTS", 0, 7).unwrap_err().message.contains("only agg queries"));
    assert!(of("CANCELLED", 1, 1).unwrap_err().message.contains("state: CANCELLED"));
    for bad in ["{}", "null", r#"{"state":7}"#, r#"{"state":"DONE GATHERING RESULTS"}"#] {
        assert!(job(200, bad.as_bytes()).is_err(), "{bad}");
    }
    let found = br#"{"records":[{"map":{"_count":"3"}},{"map":{"other":"x"}},{"map":{"_count":" 4.5"}}]}"#;
    assert_eq!(records(200, found, "_count"), Ok(vec![3.0, 4.5]));
    for bad in [r#"{"records":[{"map":{"_count":"x"}}]}"#, "{}", r#"{"records":null}"#, "<html>"] {
        assert!(records(200, bad.as_bytes(), "_count").is_err(), "{bad}");
    }
}

#[test]
fn values_are_aggregated_or_refused() {
    let values = [4.0, 1.0, 7.0];
    for (aggregator, expected) in
        [("Latest", 7.0), ("Sum", 12.0), ("Count", 3.0), ("Avg", 4.0), ("Min", 1.0), ("Max", 7.0)]
    {
        assert_eq!(aggregated(&values, aggregator), Ok(expected), "{aggregator}");
        assert!(aggregated(&[], aggregator).is_err());
    }
    assert!(aggregated(&values, "other").is_err());
}

#[tokio::test]
async fn reads_metrics_again_after_a_failure() {
    let requested = AtomicUsize::new(0);
    let url = server(move |head| {
        assert!(head.starts_with("POST /api/v1/metricsQueries "), "{head}");
        assert!(head.contains("authorization: Basic aTpr\r\n") && head.contains(r#""rowId":"A""#), "{head}");
        match requested.fetch_add(1, Ordering::SeqCst) {
            0 => ServerAction::Answer(503, "<html>".to_owned()),
            1 => ServerAction::Answer(200, series("[1,4]")),
            _ => ServerAction::Answer(200, r#"{"queryResult":[]}"#.to_owned()),
        }
    })
    .await;
    let rows = [("query.A", "a"), ("query.B", "b"), ("resultQueryRowID", "B")];
    let mut given = metrics(&rows);
    given.metadata.insert("host".into(), url);
    assert_eq!(read(&given).await.unwrap().values.first().unwrap().value.canonical(), "2500m");
    let error = read(&given).await.unwrap_err().message;
    assert!(error.starts_with("error getting metrics from sumologic: no time series data"), "{error}");
    given.profile = KedaProfile::V2_21;
    given.metadata.insert("ignoreNullValues".into(), "true".into());
    assert_eq!(read(&given).await.unwrap().values.first().unwrap().value.canonical(), "0");
}

#[tokio::test]
async fn follows_and_deletes_search_jobs() {
    let (states, deleted) = (AtomicUsize::new(0), Arc::new(AtomicUsize::new(0)));
    let deletions = Arc::clone(&deleted);
    let url = server(move |head| {
        let line = head.lines().next().unwrap_or_default();
        if line.starts_with("POST /api/v1/search/jobs ") {
            let head = "HTTP/1.1 202 Accepted\r\nset-cookie: node=n1; Path=/; Secure\r\nset-cookie: x=y\r\n";
            let body = r#"{"id":"4F"}"#;
            let answer = format!("{head}connection: close\r\ncontent-length: {}\r\n\r\n{body}", body.len());
            return ServerAction::Raw(answer.into_bytes());
        }
        assert!(head.contains("cookie: node=n1; x=y\r\n"), "{head}");
        let body = match line {
            "GET /api/v1/search/jobs/4F HTTP/1.1" => match states.fetch_add(1, Ordering::SeqCst) {
                0 => r#"{"state":"GATHERING RESULTS","recordCount":0,"messageCount":0}"#,
                _ => r#"{"state":"DONE GATHERING RESULTS","recordCount":2,"messageCount":9}"#,
            },
            "GET /api/v1/search/jobs/4F/records?offset=0&limit=2 HTTP/1.1" => {
                r#"{"records":[{"map":{"_count":"3"}},{"map":{"_count":"5"}}]}"#
            }
            "DELETE /api/v1/search/jobs/4F HTTP/1.1" => {
                deletions.fetch_add(1, Ordering::SeqCst);
                "{}"
            }
            other => panic!("{other}"),
        };
        ServerAction::Answer(200, body.to_owned())
    })
    .await;
    let pairs = [
        ("host", &*url),
        ("queryType", "logs"),
        ("query", "* | count"),
        ("resultField", "_count"),
        ("logsPollingInterval", "100ms"),
        ("queryAggregator", "Max"),
    ];
    let reading = read(&metrics(&pairs)).await.unwrap();
    assert_eq!(reading.values.first().unwrap().value.canonical(), "5");
    assert!(reading.active);
    assert_eq!(deleted.load(Ordering::SeqCst), 1);
}
