use super::query::found;
use crate::test_support::{ServerAction, read, server, texts, trigger};

#[test]
fn responses_are_decoded_or_refused() {
    assert_eq!(found(200, br#"{"response":{"numFound":7,"docs":[]}}"#), Ok(7.0));
    for (status, bad) in
        [(200, "{}"), (200, "<html>"), (200, r#"{"response":{"numFound":"7"}}"#), (404, "{}"), (200, "null")]
    {
        assert!(found(status, bad.as_bytes()).is_err(), "{bad}");
    }
}

#[tokio::test]
async fn reads_value() {
    let url = server(|head| {
        assert!(head.starts_with("GET /solr/c/select?q=a%3Ab&wt=json&rows=0 "), "{head}");
        assert!(head.contains("authorization: Basic dTpw\r\n"), "{head}");
        ServerAction::Answer(200, r#"{"response":{"numFound":7}}"#.to_owned())
    })
    .await;
    let pairs = [("host", &*url), ("collection", "c"), ("query", "a:b"), ("targetQueryValue", "2")];
    let mut trigger = trigger("solr", &pairs);
    trigger.auth = texts(&[("username", "u"), ("password", "p")]);
    assert_eq!(read(&trigger).await.unwrap().values.first().unwrap().value.canonical(), "7");
}
