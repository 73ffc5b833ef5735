use std::sync::atomic::{AtomicUsize, Ordering};

use super::query::{QueryProgress, progress, selected, selector_url};
use crate::test_support::{ServerAction, build, read, server, texts, trigger};

#[test]
fn metric_selectors_are_requested_and_decoded() {
    let url = selector_url("https://dt/", "builtin:x:fold", "now-2h");
    assert_eq!(url, "https://dt/api/v2/metrics/query?metricSelector=builtin%3Ax%3Afold&from=now-2h");
    let of = |status, body: &str| selected(status, body.as_bytes());
    assert_eq!(
        of(200, r#"{"result":[{"metricId":"x","data":[{"timestamps":[1],"values":[2.5]}]}]}"#),
        Ok(2.5)
    );
    for (status, bad, why) in [
        (200, r#"{"result":[]}"#, "nothing instead of a value"),
        (200, r#"{"result":[{"data":[{"values":[null]}]}]}"#, "null instead of a value"),
        (200, r#"{"result":[{"data":[{"values":["1"]}]}]}"#, "a string instead of a value"),
        (200, "<html>", "not JSON"),
        (
            403,
            r#"{"error":{"code":403,"message":"Token is missing required scope"}}"#,
            "403: Token is missing",
        ),
    ] {
        let error = of(status, bad).unwrap_err().message;
        assert!(error.contains(why), "{bad}: {error}");
    }
}

#[test]
fn states_of_queries_are_decoded_or_refused() {
    let of = |body: &str| progress(200, body.as_bytes());
    let done = |records: &str| of(&format!(r#"{{"state":"SUCCEEDED","result":{{"records":{records}}}}}"#));
    assert_eq!(done(r#"[{"r":5,"x":1}]"#), Ok(QueryProgress::Done(5.0)));
    assert_eq!(done(r#"[{"r":1},{"r":2}]"#), Ok(QueryProgress::Done(1.0)));
    assert_eq!(done(r#"[{"r":"5"}]"#), Ok(QueryProgress::Done(5.0)));
    assert_eq!(done(r#"[{"count":5,"name":"x"}]"#), Ok(QueryProgress::Done(5.0)));
    assert_eq!(of(r#"{"state":"RUNNING","requestToken":"t"}"#), Ok(QueryProgress::Running(Some("t".into()))));
    for (bad, why) in [
        (done("[]"), "no record"),
        (done(r#"[{"r":null}]"#), "null as r"),
        (done(r#"[{"a":1,"b":2}]"#), "no field r"),
        (of(r#"{"state":"FAILED"}"#), "FAILED"),
        (of("{}"), "nothing at state"),
        (of("null"), "nothing at state"),
    ] {
        let error = bad.unwrap_err().message;
        assert!(error.contains(why), "{why}: {error}");
    }
}

#[tokio::test]
async fn reads_metric_selector() {
    let url = server(|head| {
        assert!(head.contains("authorization: Api-Token t\r\n"), "{head}");
        ServerAction::Answer(200, r#"{"result":[{"data":[{"values":[9]}]}]}"#.to_owned())
    })
    .await;
    let mut trigger = trigger("dynatrace", &[("host", &url), ("metricSelector", "x"), ("threshold", "3")]);
    trigger.auth = texts(&[("token", "t")]);
    assert_eq!(read(&trigger).await.unwrap().values.first().unwrap().value.canonical(), "9");
    trigger.metadata.insert("query".into(), "fetch logs".into());
    assert!(
        build(&trigger).err().unwrap().message.contains("are mutually exclusive; only one can be provided")
    );
}

#[tokio::test]
async fn polls_until_query_is_done() {
    let polls = AtomicUsize::new(0);
    let url = server(move |head| {
        assert!(head.contains("authorization: Bearer t\r\n"), "{head}");
        if head.starts_with("POST /platform/storage/query/v1/query:execute ") {
            assert!(head.ends_with(r#"{"query":"fetch logs","fetchTimeoutSeconds":10}"#), "{head}");
            return ServerAction::Answer(202, r#"{"state":"RUNNING","requestToken":"a b"}"#.to_owned());
        }
        assert!(head.starts_with("GET /platform/storage/query/v1/query:poll?request-token=a+b "), "{head}");
        ServerAction::Answer(
            200,
            match polls.fetch_add(1, Ordering::SeqCst) {
                0 => r#"{"state":"RUNNING"}"#.to_owned(),
                _ => r#"{"state":"SUCCEEDED","result":{"records":[{"r":4}]}}"#.to_owned(),
            },
        )
    })
    .await;
    let mut trigger = trigger(
        "dynatrace",
        &[("host", &url), ("query", "fetch logs"), ("threshold", "3"), ("queryPollingWait", "1ms")],
    );
    trigger.auth = texts(&[("token", "t")]);
    assert_eq!(read(&trigger).await.unwrap().values.first().unwrap().value.canonical(), "4");
    trigger.metadata.insert("queryPollingTries".into(), "0".into());
    assert!(read(&trigger).await.unwrap_err().message.contains("no result after 0 tries"));
}
