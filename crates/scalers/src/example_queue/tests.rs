use super::TYPE;
use super::query::{length, url};
use crate::Reading;
use crate::metric::milli;
use crate::test_support::{ServerAction, read, server, texts, trigger};

#[test]
fn names_of_queues_are_escaped() {
    assert_eq!(url("http://server/", "a b/c"), "http://server/queues/a%20b%2Fc");
}

#[test]
fn responses_without_a_number_are_errors() {
    assert_eq!(length(200, br#"{"messages": 7}"#), Ok(7.0));
    for (status, body) in
        [(200, "{}"), (200, r#"{"messages": "7"}"#), (200, "<html>"), (404, "no such queue")]
    {
        assert!(length(status, body.as_bytes()).is_err(), "{status} {body}");
    }
}

#[tokio::test]
async fn length_is_read_with_the_token() {
    let address = server(|request| {
        assert!(request.starts_with("GET /queues/q HTTP/1.1\r\n"), "{request}");
        assert!(request.contains("\r\nauthorization: Bearer t\r\n"), "{request}");
        ServerAction::Answer(200, r#"{"messages": 7}"#.to_owned())
    })
    .await;
    let metadata = [("serverAddress", &*address), ("queueName", "q"), ("activationQueueLength", "7")];
    let mut given = trigger(TYPE.name, &metadata);
    given.auth = texts(&[("token", "t")]);
    assert_eq!(read(&given).await.unwrap(), Reading::one("m", milli(7.0), false));
}
