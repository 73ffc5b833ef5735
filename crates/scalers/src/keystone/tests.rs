use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::test_support::{FakeCluster, ServerAction, backends, server};

const BODY: &str = r#"{"token":{"expires_at":"2035-11-07T01:58:43.578929Z","catalog":[
    {"type":"identity","endpoints":[{"interface":"public","region_id":"one","url":"http://keystone"}]},
    {"type":"object-store","endpoints":[
        {"interface":"admin","region_id":"one","url":"http://admin"},
        {"interface":"public","region_id":"one","url":"http://one/v1/AUTH_p"},
        {"interface":"public","region":"two","url":"http://two/v1/AUTH_p"}]}]}}"#;

fn session(region: &str) -> Result<(KeystoneSession, Option<Timestamp>), ScalerError> {
    answered(201, Some("t"), BODY.as_bytes(), ("object-store", region))
}

/// An answer of Keystone with this token.
fn granted(token: &str) -> ServerAction {
    let head = format!("HTTP/1.1 201 Created\r\nx-subject-token: {token}\r\nconnection: close\r\n");
    ServerAction::Raw(format!("{head}content-length: {}\r\n\r\n{BODY}", BODY.len()).into_bytes())
}

#[test]
fn logins_have_method_and_scope() {
    let (password, secret) = (Secret::new("p"), Secret::new("s"));
    let user = KeystoneLogin::Password { user_id: "u", password: &password, project_id: "" };
    let body: Value = serde_json::from_str(&user.body()).unwrap();
    let identity = json!({"methods": ["password"], "password": {"user": {"id": "u", "password": "p"}}});
    assert_eq!(body, json!({"auth": {"identity": identity}}));
    let user = KeystoneLogin::Password { user_id: "u", password: &password, project_id: "x" };
    let body: Value = serde_json::from_str(&user.body()).unwrap();
    assert_eq!(body, json!({"auth": {"identity": identity, "scope": {"project": {"id": "x"}}}}));
    let credential = KeystoneLogin::ApplicationCredential { id: "i", secret: &secret };
    let body: Value = serde_json::from_str(&credential.body()).unwrap();
    let expected =
        json!({"methods": ["application_credential"], "application_credential": {"id": "i", "secret": "s"}});
    assert_eq!(body, json!({"auth": {"identity": expected}}));
}

#[test]
fn token_url_and_timeout_are_normalized() {
    let login = KeystoneLogin::ApplicationCredential { id: "i", secret: &Secret::new("s") };
    for base in ["http://k:5000", "http://k:5000/", "http://k:5000/v3", "http://k:5000/v3/"] {
        let client = KeystoneClient::new(base, login, ("", ""), timeout(0));
        assert_eq!(client.url, "http://k:5000/v3/auth/tokens");
    }
    assert_eq!((timeout(0), timeout(-1)), (Duration::from_secs(30), Duration::from_secs(30)));
    assert_eq!((timeout(7), timeout(isize::MAX)), (Duration::from_secs(7), Duration::from_mins(5)));
}

#[test]
fn service_url_is_that_of_the_region() {
    for (region, url) in [
        ("", Some("http://one/v1/AUTH_p")),
        ("one", Some("http://one/v1/AUTH_p")),
        ("two", Some("http://two/v1/AUTH_p")),
        ("three", None),
    ] {
        let (session, expires) = session(region).unwrap();
        assert_eq!(session.service_url.as_deref(), url, "{region}");
        assert_eq!(expires, Some("2035-11-07T01:58:43.578929Z".parse().unwrap()));
    }
    let (bare, expires) = answered(201, Some("t"), b"{}", ("object-store", "")).unwrap();
    assert_eq!((bare.service_url, expires), (None, None));
}

#[test]
fn errors_of_keystone() {
    let denied = r#"{"error":{"code":401,"message":"The request requires authentication.","title":"x"}}"#;
    for (status, token, body, why) in [
        (401, None, denied, "401: The request requires authentication."),
        (503, None, "<html>", "503: (6 bytes, not shown)"),
        (300, Some("t"), "{}", "300"),
        (201, None, "{}", "without the header X-Subject-Token"),
        (201, Some(""), "{}", "without the header X-Subject-Token"),
        (200, Some("t"), "<html>", "not JSON"),
    ] {
        let error = answered(status, token, body.as_bytes(), ("", "")).unwrap_err().message;
        assert!(error.contains(why), "{body}: {error}");
    }
}

#[test]
fn lifetime_of_tokens_has_a_margin_and_bounds() {
    let now: Timestamp = "2035-01-01T00:00:00Z".parse().unwrap();
    let of = |text: &str| lifetime(Some(text.parse().unwrap()), now);
    assert_eq!(of("2035-01-01T01:00:00Z"), Duration::from_mins(59));
    assert_eq!(of("2035-01-01T00:00:30Z"), Duration::ZERO);
    assert_eq!(of("2034-01-01T00:00:00Z"), Duration::ZERO);
    assert_eq!(of("2036-01-01T00:00:00Z"), MAX_TOKEN_LIFETIME);
    assert_eq!(lifetime(None, now), DEFAULT_TOKEN_LIFETIME);
}

#[tokio::test]
async fn tokens_are_cached_and_replaced_when_refused() {
    let logins = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&logins);
    let url = server(move |head| {
        if head.starts_with("POST /v3/auth/tokens ") {
            assert!(head.contains("content-type: application/json\r\n"), "{head}");
            return granted(&format!("t{}", counted.fetch_add(1, Ordering::SeqCst)));
        }
        // The first token is good for one path only, the second for all but one.
        let first = head.starts_with("GET /first ") && head.contains("x-auth-token: t0\r\n");
        let second = !head.starts_with("GET /never ") && head.contains("x-auth-token: t1\r\n");
        let status = if first || second { 200 } else { 401 };
        ServerAction::Answer(status, "{}".to_owned())
    })
    .await;
    let login = KeystoneLogin::Password { user_id: "u", password: &Secret::new("p"), project_id: "" };
    let client = KeystoneClient::new(&url, login, ("object-store", ""), Duration::from_secs(10));
    let backends = backends(FakeCluster::default());
    let requested = async |path: &str| {
        let request = |session: &KeystoneSession| {
            let call = HttpCall::get(format!("{url}{path}"), Duration::from_secs(10));
            call.header("x-auth-token", session.token.reveal())
        };
        client.send(&backends.web, request).await.unwrap().status.as_u16()
    };
    assert_eq!(requested("/first").await, 200);
    assert_eq!(requested("/first").await, 200);
    assert_eq!(logins.load(Ordering::SeqCst), 1);
    assert_eq!(requested("/second").await, 200);
    assert_eq!(logins.load(Ordering::SeqCst), 2);
    // A service that refuses every token costs one more login, and not an endless number.
    assert_eq!(requested("/never").await, 401);
    assert_eq!(logins.load(Ordering::SeqCst), 3);
}
