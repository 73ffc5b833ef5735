use super::query::value;
use crate::test_support::{ServerAction, read, server, texts, trigger};

const LINES: &str = "{\"preview\":true,\"result\":{\"count\":\"1\"}}\n{\"preview\":false,\"offset\":0,\"lastrow\":true,\"result\":{\"count\":\"7\"}}\n";

#[test]
fn responses_are_decoded_or_refused() {
    let of = |body: &str| value(200, body.as_bytes(), "count");
    assert_eq!(of(LINES), Ok(7.0));
    assert_eq!(of(r#"{"preview":false,"result":{"count":2.5}}"#), Ok(2.5));
    for (bad, why) in [
        ("", "no result"),
        (r#"{"preview":false,"lastrow":true}"#, "no result"),
        (r#"{"preview":false,"result":{}}"#, "nothing at count"),
        (r#"{"preview":false,"result":{"count":"x"}}"#, "a string at count"),
        (r#"{"preview":false,"result":{"count":null}}"#, "null at count"),
        ("<html>", "not JSON"),
    ] {
        let error = of(bad).unwrap_err().message;
        assert!(error.contains(why), "{bad}: {error}");
    }
    assert!(value(401, b"call not properly authenticated", "count").unwrap_err().message.contains("401"));
}

#[tokio::test]
async fn reads_value() {
    let url = server(|head| {
        let path =
            "GET /servicesNS/u/search/search/jobs/export?search=%7C+savedsearch+%22a+b%22&output_mode=json ";
        assert!(head.starts_with(path) && head.contains("authorization: Bearer t\r\n"), "{head}");
        ServerAction::Answer(200, LINES.to_owned())
    })
    .await;
    let pairs = [
        ("host", &*url),
        ("savedSearchName", "a b"),
        ("valueField", "count"),
        ("targetValue", "1"),
        ("activationValue", "7"),
    ];
    let mut trigger = trigger("splunk", &pairs);
    trigger.auth = texts(&[("username", "u"), ("apiToken", "t")]);
    let reading = read(&trigger).await.unwrap();
    assert_eq!(reading.values.first().unwrap().value.canonical(), "7");
    assert!(!reading.active);
}
