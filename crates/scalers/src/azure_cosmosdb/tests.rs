use http::{HeaderMap, HeaderValue, Method, StatusCode};
use serde_json::{Value, json};
use sources::http::HttpResponse;

use super::*;
use crate::test_support::{FakeCluster, backends, build, texts, trigger};

const METADATA: [(&str, &str); 5] = [
    ("databaseId", "d"),
    ("containerId", "c"),
    ("leaseDatabaseId", "d"),
    ("leaseContainerId", "l"),
    ("processorName", "p"),
];

fn error(auth: &[(&str, &str)]) -> String {
    let mut given = trigger("azure-cosmosdb", &METADATA);
    given.auth = texts(auth);
    build(&given).err().map(|error| error.message).unwrap_or_default()
}

#[test]
fn connection_strings_have_endpoint_and_key() {
    assert!(is_account("AccountEndpoint=https://a;AccountKey=a2V5;"));
    assert!(!is_account("AccountEndpoint=https://a") && !is_account("bad") && !is_account(""));
}

#[test]
fn both_accounts_need_credentials() {
    assert_eq!(error(&[("endpoint", "https://a"), ("cosmosDBKey", "k")]), "");
    let lease = [("endpoint", "https://a"), ("cosmosDBKey", "k"), ("leaseEndpoint", "https://l")];
    assert!(error(&lease).contains("are required for both data and lease accounts"));
    assert!(error(&[("endpoint", "https://a"), ("tenantId", "t")]).contains("must all be provided"));
    assert!(error(&[]).ends_with("connection string or endpoint is required for the data account"));
    let principal =
        [("endpoint", "https://a"), ("tenantId", "a/b"), ("clientId", "c"), ("clientSecret", "s")];
    let refused =
        "error creating cosmos db client: error creating service-principal credential: invalid tenantID.";
    assert!(error(&principal).starts_with(refused), "{}", error(&principal));
}

/// A change feed with these leases; each range has an answer: status, session token, number of the first change.
async fn read(
    leases: Value,
    ranges: &'static [(&'static str, u16, &'static str, i64)],
) -> Result<(String, bool), String> {
    let mut given = trigger("azure-cosmosdb", &METADATA);
    given.profile = KedaProfile::V2_21;
    given.metadata.insert("changeFeedLagThreshold".to_owned(), "10".to_owned());
    given.auth = texts(&[(
        "connection",
        "AccountEndpoint=https://acc.documents.azure.com:443/;AccountKey=aHVudGVyMg==;",
    )]);
    let web = SharedHttpClient::answered_by(move |call| {
        let header =
            |name: &str| call.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
        assert!(header("authorization").starts_with("type%3Dmaster%26ver%3D1.0%26sig%3D"));
        assert_eq!(header("x-ms-version"), "2018-12-31");
        let mut headers = HeaderMap::new();
        let (status, body) = if call.method == Method::POST {
            assert_eq!(call.url, "https://acc.documents.azure.com:443/dbs/d/colls/l/docs");
            let requested: Value = serde_json::from_slice(&call.body).unwrap();
            assert_eq!(requested.pointer("/parameters/0/value").unwrap(), "pacc.");
            assert_eq!(header("content-type"), "application/query+json");
            (200, json!({"Documents": leases}).to_string())
        } else {
            assert_eq!(call.url, "https://acc.documents.azure.com:443/dbs/d/colls/c/docs");
            assert_eq!((header("a-im"), header("x-ms-max-item-count")), ("Incremental feed", "1"));
            let range = header("x-ms-documentdb-partitionkeyrangeid");
            let expected = if range == "new" { "" } else { "\"7\"" };
            assert_eq!(header("if-none-match"), expected);
            let (_, status, session, number) = ranges.iter().find(|(name, ..)| *name == range).unwrap();
            let name = if *status == 410 { "x-ms-substatus" } else { "x-ms-session-token" };
            headers.insert(name, HeaderValue::from_static(session));
            (*status, json!({"Documents": [{"id": "x", "_lsn": number}]}).to_string())
        };
        HttpResponse { status: StatusCode::from_u16(status).unwrap(), headers, body: body.into() }
    });
    let mut backends = backends(FakeCluster::default());
    backends.web = Arc::new(web);
    let scaler = crate::table::build(&given, &backends).unwrap();
    let reading = scaler.read("m").await.map_err(|error| error.message)?;
    Ok((reading.values[0].value.canonical(), reading.active))
}

fn lease(range: &str) -> Value {
    let continuation = if range == "new" { Value::Null } else { json!("\"7\"") };
    json!({"id": "pacc.x", "LeaseToken": range, "ContinuationToken": continuation})
}

#[tokio::test]
async fn lags_of_all_ranges_are_added_up() {
    let ranges: &[_] = &[("0", 200, "0:-1#12#3=4", 8), ("1", 304, "", 0), ("new", 200, "2:30", 1)];
    // A document without a range is the processor's own.
    let leases = json!([lease("0"), lease("1"), lease("new"), {"id": "pacc.info"}]);
    // 5 and 30 changes, but two ranges have something to do for replicas of 10.
    assert_eq!(read(leases, ranges).await, Ok(("20".to_owned(), true)));
    assert_eq!(read(json!([lease("0")]), ranges).await, Ok(("5".to_owned(), true)));
    assert_eq!(read(json!([lease("1")]), ranges).await, Ok(("0".to_owned(), false)));
    assert_eq!(read(json!([]), ranges).await, Ok(("0".to_owned(), false)));
}

#[tokio::test]
async fn splits_activate_and_other_failures_are_errors() {
    let ranges: &[_] = &[
        ("0", 410, "1002", 0),
        ("1", 410, "1008", 0),
        ("2", 200, "bad", 1),
        ("3", 200, "0:5", 9),
        ("4", 500, "", 0),
    ];
    assert_eq!(read(json!([lease("0")]), ranges).await, Ok(("1".to_owned(), true)));
    let reported = async |range: &str| read(json!([lease(range)]), ranges).await.unwrap_err();
    assert!(reported("1").await.starts_with("range 1: Cosmos DB returned 410"));
    assert!(reported("2").await.contains("no valid session token"));
    assert!(reported("3").await.contains("is newer than the session (5)"));
    assert!(reported("4").await.contains("returned 500"));
}

#[test]
fn requests_are_signed_as_documented() {
    let access = CosmosAccess::Key(Secret::new("aHVudGVyMg=="));
    // Computed with Python.
    assert_eq!(
        access.authorization("POST", "dbs/d/colls/l", "Tue, 01 Nov 1994 08:12:31 GMT").unwrap(),
        "type%3Dmaster%26ver%3D1.0%26sig%3DrHVjTHnf94P48NAZPZL1qfn2eEwxWhXhfZ2L5ERwuYQ%3D"
    );
    let token = CosmosAccess::Token(Secret::new("t"));
    assert_eq!(token.authorization("GET", "x", "y").unwrap(), "type%3Daad%26ver%3D1.0%26sig%3Dt");
    assert!(CosmosAccess::Key(Secret::new("hunter2!")).authorization("GET", "x", "y").is_err());
}

/// A token of the operator is sent to hosts of Azure only.
#[test]
fn hosts_of_accounts() {
    let operators = |endpoint| query::token_scope(endpoint, true, "https://evil.example").ok();
    let scope = Some("https://acc.documents.azure.com/.default".to_owned());
    assert_eq!(operators("https://acc.documents.azure.com"), scope);
    assert_eq!(operators("https://acc.documents.azure.com:443"), scope);
    for bad in [
        "http://acc.documents.azure.com",
        "https://evil.example",
        "https://acc.documents.azure.com@evil.example",
        "https://evil.example\\@acc.documents.azure.com",
        "https://acc.documents.azure.com.evil.example",
        "https://evil.example/.documents.azure.com",
    ] {
        assert_eq!(operators(bad), None, "{bad}");
    }
    let own = query::token_scope("https://db.private", false, "https://cosmos.private/");
    assert_eq!(own.unwrap(), "https://cosmos.private/.default");
}
