use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use super::Parameters;
use super::query::cloud;
use crate::search::{SearchParameters, SearchRequest, value};
use crate::test_support::{FakeCluster, ServerAction, backends, read, server, texts, trigger};
use crate::web::with_max_age_after;

#[test]
fn searches_have_path_and_body() {
    let plain = SearchParameters {
        indexes: vec!["a".into(), "b*".into()],
        query: "{}".into(),
        ..SearchParameters::default()
    };
    let plain = SearchRequest::new(&plain);
    assert_eq!((&*plain.path, &*plain.body), ("/a,b%2A/_search", "{}"));
    let template = SearchParameters {
        indexes: vec!["a".into()],
        template: "t".into(),
        parameters: vec!["x:1".into(), "y: a:b".into(), "z".into()],
        ..SearchParameters::default()
    };
    let template = SearchRequest::new(&template);
    assert_eq!(template.path, "/a/_search/template");
    assert_eq!(template.body, r#"{"id":"t","params":{"x":"1","y":"a:b"}}"#);
}

#[test]
fn cloud_ids_are_decoded_or_refused() {
    // eu.aws.elastic-cloud.com:9243$abc$def
    let id = "mine:ZXUuYXdzLmVsYXN0aWMtY2xvdWQuY29tOjkyNDMkYWJjJGRlZg==";
    assert_eq!(cloud(id).unwrap(), "https://abc.eu.aws.elastic-cloud.com:9243");
    for bad in ["", "cl", "x:!!", "x:YQ=="] {
        assert!(cloud(bad).is_err(), "{bad}");
    }
}

#[test]
fn cloud_id_and_key_belong_together() {
    let error = |given: &[(&str, &str)]| {
        let common = [("index", "i"), ("query", "{}"), ("valueLocation", "v"), ("targetValue", "1")];
        let read = Parameters::read(&trigger("elasticsearch", &[&common[..], given].concat()));
        read.err().map(|error| error.to_string()).unwrap_or_default()
    };
    let (id, key, address) = (("cloudID", "c"), ("apiKey", "k"), ("addresses", "http://es:9200"));
    let both = "both cloudID and apiKey must be provided when cloudID or apiKey is used";
    assert!(error(&[id]).contains(both), "{}", error(&[id]));
    assert!(error(&[key]).contains(both), "{}", error(&[key]));
    for mixed in [&[id, address][..], &[key, address], &[id, key, ("username", "u")]] {
        assert!(error(mixed).contains("can't provide both cloud config and endpoint addresses"), "{mixed:?}");
    }
    assert!(error(&[]).contains("must provide either cloud config or endpoint addresses"));
    let login = [address, ("username", "u"), ("password", "p")];
    assert_eq!((error(&[id, key]), error(&login)), (String::new(), String::new()));
}

#[test]
fn responses_are_decoded_or_refused() {
    let of = |status, body: &str, ignore| {
        value("elasticsearch", status, body.as_bytes(), "hits.total.value", ignore)
    };
    assert_eq!(of(200, r#"{"hits":{"total":{"value":5}}}"#, false), Ok(5.0));
    assert_eq!(of(200, r#"{"hits":{"total":{"value":"5.5"}}}"#, false), Ok(5.5));
    assert_eq!(of(200, r#"{"hits":{"total":{"value":null}}}"#, true), Ok(0.0));
    for (status, bad, why) in [
        (200, r#"{"hits":{"total":{"value":null}}}"#, "'Null'"),
        (200, "{}", "'Null'"),
        (200, r#"{"hits":{"total":{"value":"x"}}}"#, "'String'"),
        (200, r#"{"hits":{"total":{"value":[]}}}"#, "'JSON'"),
        (200, "<html>", "not JSON"),
        (401, "{}", "check username and password"),
        (403, "{}", "insufficient permissions"),
        (500, r#"{"hits":{"total":{"value":5}}}"#, "returned 500"),
    ] {
        let error = of(status, bad, false).unwrap_err().message;
        assert!(error.contains(why), "{bad}: {error}");
    }
}

#[tokio::test]
async fn uses_first_reachable_address() {
    let url = server(|head| {
        assert!(
            head.starts_with("POST /i/_search ") && head.contains("authorization: Basic dTpw\r\n"),
            "{head}"
        );
        ServerAction::Answer(200, r#"{"v":3}"#.to_owned())
    })
    .await;
    let addresses = format!("http://127.0.0.1:1,{url}");
    let pairs = [
        ("addresses", &*addresses),
        ("index", "i"),
        ("query", "{}"),
        ("valueLocation", "v"),
        ("targetValue", "1"),
        ("username", "u"),
    ];
    let mut trigger = trigger("elasticsearch", &pairs);
    trigger.auth = texts(&[("password", "p")]);
    assert_eq!(read(&trigger).await.unwrap().values.first().unwrap().value.canonical(), "3");
}

#[tokio::test]
async fn equal_searches_share_a_response() {
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    let url = server(move |_| {
        counted.fetch_add(1, Ordering::SeqCst);
        ServerAction::Answer(200, r#"{"hits":{"total":{"value":5}}}"#.to_owned())
    })
    .await;
    let backends = backends(FakeCluster::default());
    let search = async |query: &str| {
        let mut given = trigger(
            "elasticsearch",
            &[("addresses", &*url), ("index", "i"), ("valueLocation", "hits.total.value"), ("query", query)],
        );
        given.metadata.extend(texts(&[("targetValue", "5"), ("username", "u"), ("password", "p")]));
        let scaler = crate::table::build(&given, &backends).unwrap();
        with_max_age_after(Duration::from_mins(1), None, scaler.read("m")).await.0.unwrap()
    };
    let first = search("{}").await;
    assert_eq!((search("{}").await, count.load(Ordering::SeqCst)), (first, 1));
    search(r#"{"query": {}}"#).await;
    assert_eq!(count.load(Ordering::SeqCst), 2);
}
