use std::sync::Mutex;

use api::keda::KedaProfile;

use super::Parameters;
use super::query::{query_url, request_body, session, sessions_url, value};
use crate::Trigger;
use crate::test_support::{google_metadata, read_answered, texts, trigger};
use crate::web::HttpCall;

fn query(changed: &[(&str, &str)]) -> Trigger {
    let mut given = trigger(
        "gcp-spanner",
        &[("projectId", "shop"), ("instanceId", "i"), ("databaseId", "d"), ("query", "SELECT 1")],
    );
    given.metadata.extend(texts(changed));
    given.identity.provider = "gcp".into();
    given.profile = KedaProfile::V2_21;
    given
}

const SESSIONS: &str = "https://spanner.googleapis.com/v1/projects/shop/instances/i/databases/d/sessions";

#[test]
fn requests_have_url_and_body() {
    let parameters = Parameters::read(&query(&[])).unwrap();
    assert_eq!(sessions_url(&parameters), SESSIONS);
    assert_eq!(query_url(&parameters, "s1"), format!("{SESSIONS}/s1:executeSql"));
    assert_eq!(
        request_body("SELECT 1"),
        r#"{"sql":"SELECT 1","transaction":{"singleUse":{"readOnly":{"strong":true}}}}"#
    );
    let evil = sessions_url(&Parameters::read(&query(&[("databaseId", "../x?")])).unwrap());
    assert!(evil.ends_with("/databases/..%2Fx%3F/sessions"), "{evil}");
}

#[test]
fn names_of_sessions_are_decoded_or_refused() {
    let read = |body: &str| session(200, body.as_bytes()).map_err(|error| error.message);
    assert_eq!(
        read(r#"{"name": "projects/1/instances/i/databases/d/sessions/Ab-_1"}"#),
        Ok("Ab-_1".to_owned())
    );
    for bad in ["{}", r#"{"name": "x"}"#, r#"{"name": "a/sessions/b:c"}"#, r#"{"name": "a/sessions/"}"#] {
        assert!(read(bad).unwrap_err().contains("without the name of a session"), "{bad}");
    }
    let error = session(403, br#"{"error": {"message": "denied"}}"#).unwrap_err().message;
    assert_eq!(error, "Cloud Spanner returned 403: denied");
}

fn rows(type_: &str, rows: &str) -> String {
    format!(r#"{{"metadata": {{"rowType": {{"fields": [{{"type": {{"code": "{type_}"}}}}]}}}}{rows}}}"#)
}

#[test]
fn responses_are_decoded_or_refused() {
    let read = |body: &str| value(200, body.as_bytes()).map_err(|error| error.message);
    assert_eq!(read(&rows("INT64", r#", "rows": [["7", "x"], ["8"]]"#)), Ok(7.0));
    assert_eq!(read(&rows("INT64", "")), Ok(0.0));
    assert_eq!(read(&rows("INT64", r#", "rows": []"#)), Ok(0.0));
    for (bad, why) in [
        ("{}".to_owned(), "has no columns"),
        (r#"{"rows": []}"#.to_owned(), "has no columns"),
        (rows("STRING", r#", "rows": [["7"]]"#), "the column is STRING"),
        (rows("INT64", r#", "rows": [[null]]"#), "the value is null"),
        (rows("INT64", r#", "rows": [[]]"#), "the value is nothing"),
        (rows("INT64", r#", "rows": {}"#), "has an object as rows"),
        ("[]".to_owned(), "is not an object"),
    ] {
        let error = read(&bad).unwrap_err();
        assert!(error.contains(why), "{bad}: {error}");
    }
    let error = value(400, br#"{"error": {"message": "Syntax error"}}"#).unwrap_err().message;
    assert_eq!(error, "Cloud Spanner returned 400: Syntax error");
}

#[tokio::test]
async fn a_session_that_has_ended_is_replaced() {
    let made = Mutex::new(0);
    let reply = move |call: &HttpCall| {
        google_metadata(call).unwrap_or_else(|| {
            assert_eq!(call.headers.get("authorization").unwrap(), "Bearer t");
            if call.url == SESSIONS {
                let mut made = made.lock().unwrap();
                *made += 1;
                return (
                    200,
                    format!(r#"{{"name": "projects/shop/instances/i/databases/d/sessions/s{made}"}}"#),
                );
            }
            if call.url == format!("{SESSIONS}/s1:executeSql") {
                return (404, r#"{"error": {"message": "Session not found"}}"#.to_owned());
            }
            assert_eq!(call.url, format!("{SESSIONS}/s2:executeSql"));
            (200, rows("INT64", r#", "rows": [["7"]]"#))
        })
    };
    let reading = read_answered(&query(&[("activationValue", "7")]), reply).await.unwrap();
    assert_eq!((reading.values.first().unwrap().value.canonical(), reading.active), ("7".to_owned(), false));
}

#[tokio::test]
async fn errors_are_those_of_the_query() {
    let reply = |call: &HttpCall| {
        google_metadata(call).unwrap_or((404, r#"{"error": {"message": "Database not found"}}"#.to_owned()))
    };
    let error = read_answered(&query(&[]), reply).await.unwrap_err().message;
    assert_eq!(error, "querying Spanner: Cloud Spanner returned 404: Database not found");
}
