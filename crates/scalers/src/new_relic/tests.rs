use std::sync::Arc;
use std::time::Duration;

use super::query::value;
use super::{NewRelic, Parameters};
use crate::single::ValueSource as _;
use crate::test_support::{FakeCluster, ServerAction, backends, server, texts, trigger};

fn results(results: &str) -> String {
    format!(r#"{{"data":{{"actor":{{"account":{{"nrql":{{"results":{results}}}}}}}}}}}"#)
}

#[test]
fn responses_are_decoded_or_refused() {
    let of = |body: &str| value(200, body.as_bytes());
    assert_eq!(of(&results(r#"[{"facet":"x","average.duration":2.5}]"#)), Ok(Some(2.5)));
    assert_eq!(of(&results("[]")), Ok(None));
    assert_eq!(of(&results(r#"[{"average.duration":null}]"#)), Ok(None));
    for (bad, why) in [
        (results(r#"[{"x":"y"}]"#), "no number"),
        (results("null"), "null instead of a list"),
        (r#"{"errors":[{"message":"Invalid NRQL"}]}"#.to_owned(), "Invalid NRQL"),
        ("<html>".to_owned(), "not JSON"),
    ] {
        let error = of(&bad).unwrap_err().message;
        assert!(error.contains(why), "{bad}: {error}");
    }
    assert!(value(403, b"no").is_err());
}

#[tokio::test]
async fn reads_value() {
    let url = server(|head| {
        assert!(head.starts_with("POST /graphql ") && head.contains("api-key: k\r\n"), "{head}");
        assert!(head.contains(r#""variables":{"account":12,"nrql":"SELECT \"x\""}"#), "{head}");
        ServerAction::Answer(200, results("[]"))
    })
    .await;
    let mut trigger =
        trigger("new-relic", &[("account", "12"), ("nrql", "SELECT \"x\""), ("threshold", "1")]);
    trigger.auth = texts(&[("queryKey", "k")]);
    let source = |parameters| {
        let web = Arc::clone(&backends(FakeCluster::default()).web);
        NewRelic { parameters, url: format!("{url}/graphql"), within: Duration::from_secs(10), web }
    };
    assert_eq!(source(Parameters::read(&trigger).unwrap()).value().await, Ok(0.0));
    trigger.metadata.insert("noDataError".into(), "true".into());
    assert!(source(Parameters::read(&trigger).unwrap()).value().await.is_err());
}
