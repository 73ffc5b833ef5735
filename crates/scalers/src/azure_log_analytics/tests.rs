use super::query::{path, request_body, value};
use crate::Trigger;
use crate::test_support::{azure_token, read_answered, texts, trigger};

fn table(type_: &str, rows: &str) -> String {
    format!(
        r#"{{"tables": [{{"name": "PrimaryResult", "columns": [{{"name": "n", "type": "{type_}"}}], "rows": {rows}}}]}}"#
    )
}

#[test]
fn requests_have_path_and_body() {
    assert_eq!(path("w"), "/v1/workspaces/w/query");
    assert_eq!(path("../x"), "/v1/workspaces/..%2Fx/query");
    assert_eq!(request_body("T | count \"x\""), r#"{"query":"T | count \"x\""}"#);
}

#[test]
fn responses_are_decoded_or_refused() {
    let read = |body: &str| value(200, body.as_bytes()).map_err(|error| error.message);
    for type_ in ["real", "int", "long"] {
        assert_eq!(read(&table(type_, "[[7.5, \"x\"]]")), Ok(7.5));
    }
    assert_eq!(read(&table("long", "[[0]]")), Ok(0.0));
    let two = r#"{"tables": [{"columns": [{"type": "int"}], "rows": [[1]]}, {}]}"#.to_owned();
    for (bad, why) in [
        ("{}".to_owned(), "there is no results"),
        (r#"{"tables": []}"#.to_owned(), "there is no results"),
        (r#"{"tables": [{"columns": [], "rows": [[1]]}]}"#.to_owned(), "there is no results"),
        (table("int", "[]"), "there is no results"),
        (two, "too many tables in query result: 2, expected: 1"),
        (table("int", "[[1], [2]]"), "too many rows in query result: 2, expected: 1"),
        (table("int", "[[]]"), "value is empty"),
        (table("int", "[[null]]"), "value is empty"),
        (table("string", "[[\"7\"]]"), "should be real, int or long, but received string"),
        (table("real", "[[\"NaN\"]]"), "cannot convert result"),
        (table("int", "[[-1]]"), "value should be >=0, but received -1.000000"),
        (
            r#"{"error": {"message": "partly"}, "tables": [{"columns": [{"type": "int"}], "rows": [[1]]}]}"#
                .to_owned(),
            "incomplete: partly",
        ),
        ("[]".to_owned(), "is not an object"),
    ] {
        let error = read(&bad).unwrap_err();
        assert!(error.contains(why), "{bad}: {error}");
    }
    let error = value(400, br#"{"error": {"message": "Semantic error", "code": "BadArgumentError"}}"#);
    assert_eq!(error.unwrap_err().message, "Log Analytics returned 400: Semantic error");
}

fn query(changed: &[(&str, &str)]) -> Trigger {
    let mut given = trigger(
        "azure-log-analytics",
        &[
            ("workspaceId", "w"),
            ("query", "T | count"),
            ("threshold", "5"),
            ("tenantId", "t"),
            ("clientId", "c"),
        ],
    );
    given.metadata.extend(texts(changed));
    given.auth = texts(&[("clientSecret", "hunter2")]);
    given
}

#[tokio::test]
async fn requests_carry_the_token_of_the_principal() {
    let reply = |call: &crate::web::HttpCall| {
        azure_token(call, "https://api.loganalytics.io/.default").unwrap_or_else(|| {
            assert_eq!(call.url, "https://api.loganalytics.io/v1/workspaces/w/query");
            assert_eq!(call.headers.get("authorization").unwrap(), "Bearer token");
            assert_eq!(call.body, r#"{"query":"T | count"}"#);
            assert_eq!((call.access.insecure, call.within.as_secs()), (true, 7));
            (200, table("long", "[[9]]"))
        })
    };
    let given = query(&[("unsafeSsl", "true"), ("timeout", "7000"), ("activationThreshold", "9")]);
    let reading = read_answered(&given, reply).await.unwrap();
    assert_eq!((reading.values.first().unwrap().value.canonical(), reading.active), ("9".to_owned(), false));
}

#[tokio::test]
async fn errors_name_the_object() {
    let reply = |call: &crate::web::HttpCall| {
        azure_token(call, "https://api.loganalytics.io/.default").unwrap_or((200, "{}".to_owned()))
    };
    let error = read_answered(&query(&[]), reply).await.unwrap_err().message;
    let prefix = "failed to get metrics. Scaled object: so. Namespace: ns. Inner Error: error validating";
    assert!(error.starts_with(prefix), "{error}");
    // A private cloud of the tenant gets the token of the tenant's own principal.
    let private = query(&[("cloud", "Private"), ("logAnalyticsResourceURL", "https://logs.example/")]);
    let reply = |call: &crate::web::HttpCall| {
        azure_token(call, "https://logs.example/.default").unwrap_or_else(|| {
            assert_eq!(call.url, "https://logs.example/v1/workspaces/w/query");
            (200, table("long", "[[1]]"))
        })
    };
    assert!(read_answered(&private, reply).await.is_ok());
    let nowhere = |call: &crate::web::HttpCall| -> (u16, String) { panic!("{call:?} must not be sent") };
    let mut workload = private;
    workload.identity.provider = "azure-workload".into();
    let error = read_answered(&workload, nowhere).await.unwrap_err().message;
    assert!(error.contains("in Azure's own clouds only"), "{error}");
}
