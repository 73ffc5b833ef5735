use super::query::{token, value};
use crate::test_support::{ServerAction, build, read, server, texts, trigger};

#[test]
fn responses_are_decoded_or_refused() {
    let of = |body: &str| value(200, body.as_bytes(), "/a");
    // 2.5
    assert_eq!(of(r#"{"kvs":[{"key":"L2E=","value":"Mi41"}],"count":"1"}"#), Ok(2.5));
    for (bad, why) in [
        (r#"{"header":{}}"#, "watchKey /a doesn't exist"),
        (r#"{"kvs":[{"key":"L2E="}]}"#, "not a number"),
        (r#"{"kvs":[{"value":"!!"}]}"#, "not a number"),
        (r#"{"kvs":[{"value":"TmFO"}]}"#, "not a number"),
        ("[]", "a list instead of an object"),
        ("<html>", "not JSON"),
    ] {
        let error = of(bad).unwrap_err().message;
        assert!(error.contains(why), "{bad}: {error}");
    }
    for field in ["error", "message"] {
        let body = format!(r#"{{"code":3,"{field}":"etcdserver: user name is empty"}}"#);
        let error = value(401, body.as_bytes(), "/a").unwrap_err().message;
        assert!(error.ends_with("user name is empty"), "{error}");
    }
    assert_eq!(token(200, br#"{"token":"t"}"#).unwrap(), "t");
    assert!(token(200, b"{}").is_err());
}

#[tokio::test]
async fn reads_with_token() {
    let url = server(|head| {
        if head.starts_with("POST /v3/auth/authenticate ") {
            assert!(head.ends_with(r#"{"name":"u","password":"p"}"#), "{head}");
            return ServerAction::Answer(200, r#"{"token":"t"}"#.to_owned());
        }
        assert!(head.starts_with("POST /v3/kv/range ") && head.contains("authorization: t\r\n"), "{head}");
        assert!(head.ends_with(r#"{"key":"L2E="}"#), "{head}");
        ServerAction::Answer(200, r#"{"kvs":[{"value":"Nw=="}]}"#.to_owned())
    })
    .await;
    let endpoints = format!("http://127.0.0.1:1,{url}");
    let mut trigger = trigger("etcd", &[("endpoints", &endpoints), ("watchKey", "/a"), ("value", "5")]);
    trigger.auth = texts(&[("username", "u"), ("password", "p")]);
    let reading = read(&trigger).await.unwrap();
    assert_eq!(reading.values.first().unwrap().value.canonical(), "7");
    assert!(reading.active);
}

#[tokio::test]
async fn changes_of_the_key_wake() {
    let url = server(|head| {
        assert!(head.starts_with("POST /v3/watch ") && head.ends_with(r#"{"key":"L2E="}}"#), "{head}");
        // The watch breaks off after its first piece.
        let answer = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{}\r\n";
        ServerAction::Raw(answer.as_bytes().to_vec())
    })
    .await;
    let trigger = trigger("etcd", &[("endpoints", &url), ("watchKey", "/a"), ("value", "5")]);
    let (sender, mut wakes) = tokio::sync::mpsc::channel(1);
    let waking = tokio::spawn(crate::test_support::build(&trigger).unwrap().wake(sender).unwrap());
    // It is opened again.
    for _ in 0..2 {
        let woken = tokio::time::timeout(std::time::Duration::from_mins(1), wakes.recv()).await;
        assert_eq!(woken.unwrap(), Some(()));
    }
    waking.abort();
}

#[test]
fn logins_and_certificates_are_complete() {
    let refused = |auth: &[(&str, &str)]| {
        let mut given = trigger("etcd", &[("endpoints", "e:2379"), ("watchKey", "k"), ("value", "5")]);
        given.auth = texts(auth);
        let error = build(&given).err().map(|error| error.message).unwrap_or_default();
        error.replace("error parsing kubernetes workload metadata: error parsing redis metadata: ", "")
    };
    assert_eq!(refused(&[]), "");
    assert_eq!(refused(&[("tls", "x")]), "incorrect value for TLS given: x");
    assert_eq!(refused(&[("tls", "enable"), ("key", "k")]), "cert must be provided with key");
    assert_eq!(refused(&[("username", "u")]), "password must be provided with username");
    assert_eq!(refused(&[("password", "p")]), "username must be provided with password");
}
