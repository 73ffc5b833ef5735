use super::query::{body, found};
use crate::test_support::{ServerAction, build, read, server, texts, trigger};

#[test]
fn request_bodies() {
    assert_eq!(
        body(r#"{"selector":{"a":1},"fields":["_id"],"x":1}"#, true).unwrap(),
        r#"{"selector":{"a":1},"fields":["_id"]}"#
    );
    assert_eq!(body("{}", false).unwrap(), r#"{"selector":{},"limit":10000}"#);
    assert_eq!(body(r#"{"limit":5}"#, false).unwrap(), r#"{"selector":{},"limit":5}"#);
    assert_eq!(body("7", true).unwrap(), r#"{"selector":{}}"#);
    assert!(body("{", true).is_err());
}

#[test]
fn responses_are_decoded_or_refused() {
    assert_eq!(found(200, br#"{"docs":[{"_id":"a"},{"_id":"b"}],"bookmark":"x"}"#), Ok(2.0));
    for (status, bad, why) in [
        (200, r#"{"docs":null}"#, "null at docs"),
        (200, "<html>", "not JSON"),
        (
            404,
            r#"{"error":"not_found","reason":"Database does not exist."}"#,
            "404: Database does not exist.",
        ),
    ] {
        let error = found(status, bad.as_bytes()).unwrap_err().message;
        assert!(error.contains(why), "{bad}: {error}");
    }
}

#[tokio::test]
async fn reads_value() {
    let url = server(|head| {
        let is_query = ["POST /animals/_find ", "POST /couch@shop/animals/_find "]
            .iter()
            .any(|start| head.starts_with(start));
        assert!(is_query && head.contains("authorization: Basic dTpw\r\n"), "{head}");
        ServerAction::Answer(200, r#"{"docs":[{}]}"#.to_owned())
    })
    .await;
    let (host, port) = url.strip_prefix("http://").unwrap().split_once(':').unwrap();
    let pairs = [
        ("host", host),
        ("port", port),
        ("dbName", "animals"),
        ("username", "u"),
        ("query", "{}"),
        ("queryValue", "2"),
    ];
    let mut trigger = trigger("couchdb", &pairs);
    trigger.auth = texts(&[("password", "p")]);
    assert_eq!(read(&trigger).await.unwrap().values.first().unwrap().value.canonical(), "1");
    // A connection string without a login is used with that of the other parameters.
    for connection in [format!("{url}/couch@shop"), url] {
        trigger.auth.insert("connectionString".to_owned(), connection);
        assert_eq!(read(&trigger).await.unwrap().values.first().unwrap().value.canonical(), "1");
    }
}

#[test]
fn errors_of_missing_parameters_are_those_of_keda() {
    let error = |given: &crate::Trigger| build(given).err().map(|error| error.message).unwrap_or_default();
    let mut given = trigger("couchdb", &[("connectionString", "http://u:p@h:5984"), ("query", "{}")]);
    assert_eq!(error(&given), "error parsing couchdb metadata: no queryValue given");
    given.feeds_formula = true;
    assert!(build(&given).is_ok());
    let parts = [("host", "h"), ("port", "5984"), ("username", "u"), ("password", "p"), ("dbName", "d")];
    let mut given = trigger("couchdb", &[("queryValue", "1")]);
    for (key, value) in parts {
        assert!(error(&given).ends_with(&format!(": no {key} given")), "{}", error(&given));
        given.metadata.insert(key.to_owned(), value.to_owned());
    }
    assert!(build(&given).is_ok());
}
