//! Query URLs and decoding of responses.
use std::sync::{Arc, Mutex};

use proptest::prelude::*;

use super::{Parameters, query};
use crate::Trigger;
use crate::test_support::{ServerAction, read as read_trigger, server, texts, trigger};

fn one(value: &str) -> String {
    format!(
        r#"{{"status":"success","data":{{"resultType":"vector","result":[{{"metric":{{}},"value":[1,{value}]}}]}}}}"#
    )
}

fn read(body: &str, ignore: bool) -> Result<f64, String> {
    query::read(200, body.as_bytes(), "up", ignore).map_err(|error| error.message)
}

#[test]
fn one_element_is_a_number() {
    assert_eq!(read(&one("\"2.5\""), true), Ok(2.5));
    assert_eq!(read(&one("\"-1e3\""), true), Ok(-1000.0));
    assert_eq!(read(&one("null"), true), Ok(-1.0));
}

#[test]
fn empty_result_is_zero_only_if_configured() {
    let empty = r#"{"data":{"resultType":"vector","result":[]}}"#;
    assert_eq!(read(empty, true), Ok(0.0));
    assert_eq!(
        read(empty, false).unwrap_err(),
        "prometheus metrics 'prometheus' target may be lost, the result is empty"
    );
    let bare = r#"{"data":{"result":[{"value":[]}]}}"#;
    assert_eq!(
        read(bare, false).unwrap_err(),
        "prometheus metrics 'prometheus' target may be lost, the value list is empty"
    );
    for number in ["NaN", "+Inf", "-Inf"] {
        assert_eq!(read(&one(&format!("\"{number}\"")), true), Ok(0.0));
        assert!(
            read(&one(&format!("\"{number}\"")), false).unwrap_err().starts_with("prometheus query returns ")
        );
    }
}

#[test]
fn other_responses_are_errors() {
    let two = r#"{"data":{"result":[{"value":[1,"1"]},{"value":[1,"2"]}]}}"#;
    assert_eq!(read(two, true).unwrap_err(), "prometheus query up returned multiple elements");
    let short = r#"{"data":{"result":[{"value":[1]}]}}"#;
    assert_eq!(read(short, true).unwrap_err(), "prometheus query up didn't return enough values");
    let scalar = r#"{"data":{"resultType":"scalar","result":[1,"2"]}}"#;
    for bad in ["", "<html>", "{}", "[]", scalar, &one("7"), &one("\"seven\"")] {
        assert!(read(bad, true).is_err(), "{bad}");
    }
    assert_eq!(
        query::read(503, b"", "up", true).unwrap_err().message,
        "prometheus query api returned error. status: 503 response: (nothing)"
    );
    let refused =
        br#"{"status": "error", "errorType": "bad_data", "error": "parse error: unclosed left parenthesis"}"#;
    assert_eq!(
        query::read(400, refused, "sum(", true).unwrap_err().message,
        "prometheus query api returned error. status: 400 response: parse error: unclosed left parenthesis"
    );
}

fn given(url: &str, more: &[(&str, &str)]) -> Trigger {
    let mut trigger =
        trigger("prometheus", &[("serverAddress", url), ("query", "sum(x{a=\"b\"})"), ("threshold", "5")]);
    trigger.metadata.extend(texts(more));
    trigger
}

#[test]
fn url_of_query_api() {
    let more = [("namespace", "n"), ("queryParameters", "k=a b,c=d")];
    let parameters = Parameters::read(&given("http://p:9090/prefix/", &more)).unwrap();
    let now = "2025-06-03T12:00:00.75Z".parse().unwrap();
    assert_eq!(
        query::PrometheusAddress::of(&parameters).at(now),
        "http://p:9090/prefix/api/v1/query?query=sum%28x%7Ba%3D%22b%22%7D%29&time=2025-06-03T12:00:00Z&namespace=n&c=d&k=a+b"
    );
    assert!(!query::PrometheusAddress::of(&parameters).whenever().contains("time="));
}

#[tokio::test]
async fn request_has_headers_and_credentials() {
    let heads = Arc::new(Mutex::new(String::new()));
    let reported = Arc::clone(&heads);
    let url = server(move |head| {
        reported.lock().unwrap().push_str(head);
        ServerAction::Answer(200, one("\"7\""))
    })
    .await;
    let mut given = given(
        &url,
        &[("authModes", "basic"), ("customHeaders", "X-Scope-OrgID=shop"), ("activationThreshold", "7")],
    );
    given.auth = texts(&[("username", "me"), ("password", "hush")]);
    let read = read_trigger(&given).await.unwrap();
    assert_eq!((read.values.first().unwrap().value.to_string(), read.active), ("7".to_owned(), false));
    let head = heads.lock().unwrap().to_lowercase();
    assert!(head.starts_with("get /api/v1/query?query=sum"), "{head}");
    assert!(head.contains("x-scope-orgid: shop\r\n"), "{head}");
    assert!(head.contains("authorization: basic bwu6ahvzaa==\r\n"), "{head}");
}

#[tokio::test]
async fn broken_servers_are_errors() {
    type Case = (&'static str, fn(&str) -> ServerAction);
    let cases: [Case; 6] = [
        ("status: 401", |_| ServerAction::Answer(401, "<html>who are you?</html>".into())),
        ("no vector", |_| ServerAction::Answer(200, "<html>welcome</html>".into())),
        ("redirected", |_| {
            ServerAction::Raw(
                b"HTTP/1.1 302 X\r\nlocation: http://elsewhere/\r\ncontent-length: 0\r\n\r\n".to_vec(),
            )
        }),
        ("too large", |_| {
            ServerAction::Raw(b"HTTP/1.1 200 X\r\ncontent-length: 99999999999\r\n\r\n".to_vec())
        }),
        ("broke off", |_| ServerAction::Raw(b"HTTP/1.1 200 X\r\ncontent-length: 9\r\n\r\nx".to_vec())),
        ("timed out", |_| ServerAction::Hang),
    ];
    for (text, act) in cases {
        let error =
            read_trigger(&given(&server(act).await, &[("timeout", "300")])).await.unwrap_err().message;
        assert!(error.contains(text), "{text}: {error}");
    }
    let error = read_trigger(&given("http://127.0.0.1:1", &[])).await.unwrap_err().message;
    assert!(error.contains("connection refused"), "{error}");
    assert!(read_trigger(&given("p:9090", &[])).await.is_err());
}

#[tokio::test]
async fn secrets_are_not_in_errors() {
    let mut given = given("http://user:hunter1@127.0.0.1:1", &[("authModes", "bearer")]);
    given.auth = texts(&[("bearerToken", "hunter2")]);
    let error = read_trigger(&given).await.unwrap_err().message;
    assert!(!error.contains("hunter"), "{error}");
}

proptest! {
    #[test]
    fn arbitrary_input_does_not_panic(body in prop::collection::vec(any::<u8>(), 0..200), status in 0_u16..1000) {
        let _ = query::read(status, &body, "q", true);
    }
}
