use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use super::query::{backlog, url};
use crate::oauth::answer;
use crate::test_support::{ServerAction, build, read, server, texts, trigger};

const STATS: &str = r#"{"subscriptions":{"s":{"msgBacklog":12}}}"#;

#[test]
fn url_has_kind_and_name_of_the_topic() {
    let of = |topic, partitioned| url("http://p/", topic, partitioned);
    assert_eq!(of("persistent://a/b/c", false), "http://p/admin/v2/persistent/a/b/c/stats");
    assert_eq!(of("a/b/c", true), "http://p/admin/v2/persistent/a/b/c/partitioned-stats");
    assert_eq!(of("non-persistent://a/b/c", false), "http://p/admin/v2/non-persistent/a/b/c/stats");
}

#[test]
fn responses_are_decoded_or_refused() {
    assert_eq!(backlog(200, STATS.as_bytes(), "s"), Ok(12.0));
    for (status, bad, why) in [
        (200, r#"{"subscriptions":{}}"#, "no subscription \"s\""),
        (200, r#"{"subscriptions":null}"#, "null at subscriptions"),
        (200, r#"{"subscriptions":{"s":{}}}"#, "nothing at msgBacklog"),
        (200, r#"{"subscriptions":{"s":{"msgBacklog":"1"}}}"#, "a string at msgBacklog"),
        (200, "<html>", "not JSON"),
        (404, r#"{"reason":"Topic not found"}"#, "returned 404: Topic not found"),
    ] {
        let error = backlog(status, bad.as_bytes(), "s").unwrap_err().message;
        assert!(error.contains(why), "{bad}: {error}");
    }
}

#[tokio::test]
async fn sends_bearer_token() {
    let url = server(|head| {
        assert!(head.contains("authorization: Bearer t\r\n"), "{head}");
        assert!(head.contains("x-pulsar-auth-method-name: token\r\n"), "{head}");
        ServerAction::Answer(200, STATS.to_owned())
    })
    .await;
    let mut trigger = trigger(
        "pulsar",
        &[("adminURL", &url), ("topic", "a/b/c"), ("subscription", "s"), ("authModes", "bearer")],
    );
    trigger.auth = texts(&[("bearerToken", "t")]);
    assert_eq!(read(&trigger).await.unwrap().values.first().unwrap().value.canonical(), "12");
    trigger.auth.clear();
    let error = build(&trigger).err().unwrap().message;
    assert!(error.ends_with(": bearer token=<empty> is required when bearer auth is enabled"), "{error}");
}

#[tokio::test]
async fn tls_enable_with_a_certificate_means_auth_mode_tls() {
    let url = server(|head| {
        assert!(!head.contains("x-pulsar-auth-method-name"), "{head}");
        ServerAction::Answer(200, STATS.to_owned())
    })
    .await;
    let mut trigger = trigger(
        "pulsar",
        &[("adminURL", &url), ("topic", "a/b/c"), ("subscription", "s"), ("tls", "enable")],
    );
    // Without a certificate it has no effect.
    assert_eq!(read(&trigger).await.unwrap().values.first().unwrap().value.canonical(), "12");
    trigger.auth = texts(&[("cert", "c")]);
    let error = build(&trigger).err().unwrap().message;
    let incomplete = ": cert=<present> and key=<empty> are required when tls auth is enabled";
    assert!(error.ends_with(incomplete), "{error}");
}

#[tokio::test]
async fn requests_token_once() {
    let tokens = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&tokens);
    let url = server(move |head| {
        if head.starts_with("POST /token ") {
            count.fetch_add(1, Ordering::SeqCst);
            assert!(head.contains("authorization: Basic Yzpz\r\n"), "{head}");
            assert!(head.ends_with("grant_type=client_credentials&scope=a+b&x=y"), "{head}");
            return ServerAction::Answer(200, r#"{"access_token":"secret","expires_in":3600}"#.to_owned());
        }
        assert!(head.contains("authorization: Bearer secret\r\n"), "{head}");
        ServerAction::Answer(200, STATS.to_owned())
    })
    .await;
    let mut trigger = trigger(
        "pulsar",
        &[("adminURL", &url), ("topic", "a/b/c"), ("subscription", "s"), ("authModes", "oauth")],
    );
    let uri = format!("{url}/token");
    trigger.auth = texts(&[
        ("oauthTokenURI", &uri),
        ("clientID", "c"),
        ("clientSecret", "s"),
        ("scopes", "a,b"),
        ("endpointParams", "x=y"),
    ]);
    let scaler = build(&trigger).unwrap();
    for _ in 0..2 {
        assert!(scaler.read("m").await.unwrap().active);
    }
    assert_eq!(tokens.load(Ordering::SeqCst), 1);
}

#[test]
fn tokens_are_decoded_or_refused() {
    let (token, good) = answer(200, br#"{"access_token":"t","expires_in":100}"#).unwrap();
    assert_eq!((token.reveal(), good), ("t", Duration::from_secs(100)));
    for bad in [&b"{}"[..], b"<html>", br#"{"access_token":""}"#, br#"{"access_token":7}"#] {
        assert!(answer(200, bad).is_err());
    }
    assert!(answer(401, br#"{"error":"invalid_client"}"#).unwrap_err().message.contains("invalid_client"));
}
