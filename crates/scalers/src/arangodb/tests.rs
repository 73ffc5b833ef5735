use super::query::value;
use crate::test_support::{ServerAction, read, server, texts, trigger};

#[test]
fn responses_are_decoded_or_refused() {
    let of = |body: &str| value(201, body.as_bytes());
    assert_eq!(of(r#"{"result":[5],"hasMore":false}"#), Ok(5.0));
    assert_eq!(of(r#"{"result":[{"value":2.5}]}"#), Ok(2.5));
    for bad in [
        r#"{"result":[]}"#,
        r#"{"result":[5,6]}"#,
        r#"{"result":[5],"hasMore":true}"#,
        r#"{"result":null}"#,
        r#"{"result":["5"]}"#,
        r#"{"result":[{"value":null}]}"#,
        "<html>",
    ] {
        assert!(of(bad).is_err(), "{bad}");
    }
    let error = value(404, br#"{"error":true,"errorMessage":"database not found"}"#).unwrap_err().message;
    assert_eq!(error, "ArangoDB returned 404: database not found");
}

#[tokio::test]
async fn reads_value() {
    let url = server(|head| {
        assert!(
            head.starts_with("POST /_db/d/_api/cursor ") && head.contains("authorization: Basic dTpw\r\n"),
            "{head}"
        );
        ServerAction::Answer(201, r#"{"result":[5]}"#.to_owned())
    })
    .await;
    let pairs = [
        ("endpoints", &*url),
        ("collection", "c"),
        ("dbName", "d"),
        ("query", "RETURN 5"),
        ("queryValue", "3"),
    ];
    let mut trigger = trigger("arangodb", &pairs);
    trigger.auth = texts(&[("authModes", "basic"), ("username", "u"), ("password", "p")]);
    assert_eq!(read(&trigger).await.unwrap().values.first().unwrap().value.canonical(), "5");
}
