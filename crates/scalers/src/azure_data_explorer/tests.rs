use super::query::{endpoint, request_body, value};
use crate::Trigger;
use crate::test_support::{azure_token, read_answered, texts, trigger};
use crate::web::HttpCall;

/// Tokens of the operator are sent to clusters of Azure only.
#[test]
fn endpoints_are_urls_and_with_workload_identity_of_azure() {
    let check = |given: &str, is_workload| endpoint(given, is_workload).map_err(|error| error.message);
    let cluster = "https://shop.westeurope.kusto.windows.net";
    for is_workload in [false, true] {
        assert_eq!(check(&format!("{cluster}/"), is_workload), Ok(cluster.to_owned()));
    }
    for other in ["https://kusto.example", "http://127.0.0.1:8080", "http://shop.kusto.windows.net"] {
        assert_eq!(check(other, false), Ok(other.to_owned()));
        assert!(check(other, true).unwrap_err().contains("with clusters of Azure"), "{other}");
    }
    for evil in [
        "https://evilkusto.windows.net",
        "https://x.kusto.windows.net:8443",
        "https://x.kusto.windows.net.evil",
    ] {
        assert!(check(evil, true).is_err(), "{evil}");
    }
    for bad in [
        "",
        "shop",
        "https://",
        "https://a@b.kusto.windows.net",
        "https://h/path",
        "https://h;Fed=true",
        "https://h?x",
    ] {
        assert!(check(bad, false).unwrap_err().starts_with("endpoint must be the URL"), "{bad}");
    }
}

fn frames(tables: &str, end: &str) -> String {
    format!(
        r#"[{{"FrameType": "DataSetHeader", "IsProgressive": false}},
            {{"FrameType": "DataTable", "TableKind": "QueryProperties", "Columns": [], "Rows": [[1], [2]]}}
            {tables},
            {{"FrameType": "DataSetCompletion", {end}}}]"#
    )
}

fn table(type_: &str, rows: &str) -> String {
    let table = format!(
        r#", {{"FrameType": "DataTable", "TableKind": "PrimaryResult", "Columns": [{{"ColumnType": "{type_}"}}], "Rows": {rows}}}"#
    );
    frames(&table, r#""HasErrors": false, "Cancelled": false"#)
}

#[test]
fn responses_are_decoded_or_refused() {
    let read = |body: &str| value(200, body.as_bytes()).map_err(|error| error.message);
    for type_ in ["real", "int", "long"] {
        assert_eq!(read(&table(type_, r#"[[7.5, "x"]]"#)), Ok(7.5));
    }
    assert_eq!(read(&table("long", "[[0]]")), Ok(0.0));
    let failed = r#""HasErrors": true, "Cancelled": false, "OneApiErrors": [{"error": {"@message": "too much memory"}}]"#;
    for (bad, why) in [
        (frames("", r#""HasErrors": false, "Cancelled": false"#), "has no results"),
        (table("long", "[]"), "has no results"),
        (table("long", "[[1], [2]]"), "more than a single result row"),
        (table("string", r#"[["7"]]"#), "data type string is not valid"),
        (table("long", "[[null]]"), "is null instead of a number"),
        (table("long", "[[]]"), "is nothing instead of a number"),
        (table("real", r#"[["NaN"]]"#), "is a string instead of a number"),
        (table("long", "[[-1]]"), "must be >= 0 but received: -1.000000"),
        (frames("", failed), "the query failed: too much memory"),
        (frames("", r#""HasErrors": false, "Cancelled": true"#), "the query failed"),
        (r#"[{"FrameType": "DataTable", "TableKind": "PrimaryResult"}]"#.to_owned(), "is incomplete"),
        ("[]".to_owned(), "is incomplete"),
        ("{}".to_owned(), "is not a list of frames"),
        ("<html>".to_owned(), "not JSON"),
    ] {
        let error = read(&bad).unwrap_err();
        assert!(error.contains(why), "{bad}: {error}");
    }
    let error = value(400, br#"{"error": {"code": "x", "message": "Request is invalid"}}"#).unwrap_err();
    assert_eq!(error.message, "Azure Data Explorer returned 400: Request is invalid");
}

fn query() -> Trigger {
    let mut given = trigger(
        "azure-data-explorer",
        &[
            ("databaseName", "d"),
            ("endpoint", "https://shop.westeurope.kusto.windows.net/"),
            ("query", "T | count"),
            ("threshold", "5"),
            ("tenantId", "t"),
            ("clientId", "c"),
        ],
    );
    given.auth = texts(&[("clientSecret", "hunter2")]);
    given
}

const SCOPE: &str = "https://shop.westeurope.kusto.windows.net/.default";

#[tokio::test]
async fn requests_carry_the_token_of_the_principal() {
    let reply = |call: &HttpCall| {
        azure_token(call, SCOPE).unwrap_or_else(|| {
            assert_eq!(call.url, "https://shop.westeurope.kusto.windows.net/v2/rest/query");
            assert_eq!(call.headers.get("authorization").unwrap(), "Bearer token");
            assert_eq!(call.body, request_body("d", "T | count"));
            (200, table("long", "[[9]]"))
        })
    };
    for endpoint in [
        "https://shop.westeurope.kusto.windows.net/",
        "HTTPS://shop.westeurope.kusto.windows.net",
        "https://shop.westeurope.kusto.windows.net/; ;",
    ] {
        let mut given = query();
        given.metadata.insert("endpoint".into(), endpoint.into());
        let reading = read_answered(&given, reply).await.unwrap();
        let value = reading.values.first().unwrap().value.canonical();
        assert_eq!((&*value, reading.active), ("9", true), "{endpoint}");
    }
    let refused = |call: &HttpCall| azure_token(call, SCOPE).unwrap_or((403, String::new()));
    let error = read_answered(&query(), refused).await.unwrap_err().message;
    assert_eq!(
        error,
        "failed to get metrics for scaled object so in namespace ns: Azure Data Explorer returned 403: (nothing)"
    );
}

#[tokio::test]
async fn pod_identity_is_for_clusters_of_azure() {
    let nowhere = |call: &HttpCall| -> (u16, String) { panic!("{call:?} must not be sent") };
    let mut given = query();
    given.identity.provider = "azure-workload".into();
    let error = read_answered(&given, nowhere).await.unwrap_err().message;
    assert!(error.contains("the operator's pod has no federated token"), "{error}");
    given.metadata.insert("endpoint".into(), "https://evil.example".into());
    let error = read_answered(&given, nowhere).await.unwrap_err().message;
    assert!(error.contains("with clusters of Azure (*.kusto.windows.net) only"), "{error}");
}
