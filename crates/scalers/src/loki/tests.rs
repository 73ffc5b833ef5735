use std::sync::{Arc, Mutex};

use super::query::{url, value};
use crate::test_support::{ServerAction, read, server, texts, trigger};

const VECTOR: &str =
    r#"{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[1,"2.5"]}]}}"#;

#[test]
fn missing_path_is_appended() {
    for server in
        ["http://l", "http://l/", "http://l/loki", "http://l/loki/api/v1", "http://l/loki/api/v1/query"]
    {
        assert_eq!(url(server, "a b"), "http://l/loki/api/v1/query?query=a+b", "{server}");
    }
    assert_eq!(url("http://l/x", "q"), "http://l/x/loki/api/v1/query?query=q");
}

#[test]
fn responses_are_decoded_or_refused() {
    let read = |body: &str| value(200, body.as_bytes(), "q");
    let result = |result: &str| format!(r#"{{"data":{{"result":{result}}}}}"#);
    assert_eq!(read(VECTOR), Ok(Some(2.5)));
    for nothing in [
        "[]",
        r#"[{"value":[]}]"#,
        r#"[{"value":[1,null]}]"#,
        r#"[{"value":[1,"NaN"]}]"#,
        r#"[{"value":[1,"+Inf"]}]"#,
    ] {
        assert_eq!(read(&result(nothing)), Ok(None), "{nothing}");
    }
    for (bad, why) in [
        (r#"[{"value":[1,"1"]},{"value":[1,"2"]}]"#, "multiple elements"),
        (r#"[{"value":[1]}]"#, "enough values"),
        (r#"[{"value":[1,"x"]}]"#, "not a number"),
        (r#"[{"value":[1,7]}]"#, "a number instead of a text"),
        (r#"[{"values":[[1,"1"]]}]"#, "nothing instead of a sample"),
        ("null", "null at data.result"),
        (r#"{"a":1}"#, "an object at data.result"),
    ] {
        let error = read(&result(bad)).unwrap_err().message;
        assert!(error.contains(why), "{bad}: {error}");
    }
    assert!(read("<html>").unwrap_err().message.contains("not JSON"));
    assert!(read("").unwrap_err().message.contains("(nothing)"));
    let error = value(400, b"parse error at line 1", "q").unwrap_err().message;
    assert_eq!(error, "loki query api returned error. status: 400 response: (21 bytes, not shown)");
    let error = value(400, br#"{"message": "parse error at line 1"}"#, "q").unwrap_err().message;
    assert_eq!(error, "loki query api returned error. status: 400 response: parse error at line 1");
}

#[tokio::test]
async fn sends_tenant_header() {
    let heads: Arc<Mutex<Vec<String>>> = Arc::default();
    let seen = Arc::clone(&heads);
    let url = server(move |head| {
        seen.lock().unwrap().push(head.to_owned());
        ServerAction::Answer(200, VECTOR.to_owned())
    })
    .await;
    let mut trigger = trigger(
        "loki",
        &[
            ("serverAddress", &url),
            ("query", "sum(x)"),
            ("threshold", "1"),
            ("tenantName", "t"),
            ("authModes", "basic"),
        ],
    );
    trigger.auth = texts(&[("username", "u"), ("password", "p")]);
    trigger.metadata.insert("activationThreshold".into(), "2.5".into());
    let reading = read(&trigger).await.unwrap();
    assert_eq!(reading.values.first().unwrap().value.canonical(), "2500m");
    assert!(!reading.active);
    let head = heads.lock().unwrap().pop().unwrap();
    assert!(head.starts_with("GET /loki/api/v1/query?query=sum%28x%29 "), "{head}");
    assert!(
        head.contains("x-scope-orgid: t\r\n") && head.contains("authorization: Basic dTpw\r\n"),
        "{head}"
    );
}

#[tokio::test]
async fn empty_result_is_an_error_if_configured() {
    let url = server(|_| ServerAction::Answer(200, r#"{"data":{"result":[]}}"#.to_owned())).await;
    let mut trigger = trigger("loki", &[("serverAddress", &url), ("query", "q"), ("threshold", "1")]);
    assert!(!read(&trigger).await.unwrap().active);
    trigger.metadata.insert("ignoreNullValues".into(), "false".into());
    assert!(read(&trigger).await.unwrap_err().message.contains("may be lost"));
}
