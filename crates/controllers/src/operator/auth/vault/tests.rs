#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

mod operator_identity;

use api::keda::VaultSecret;
use api::provider::Compat;
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

use super::super::tests::{auth, reference};
use super::super::{AuthError, AuthQuery, ResolvedAuth};
use super::query::{VaultRequest, decode, groups};

/// A request to a fake Vault: method, path, token, body.
type Question = (String, String, String, String);

/// Serves responses by path until the test ends.
async fn vault(
    answers: &'static [(&'static str, u16, &'static str)],
) -> (String, mpsc::UnboundedReceiver<Question>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let (sender, requests) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let sender = sender.clone();
            tokio::spawn(async move { while serve(&stream, answers, &sender).await.is_some() {} });
        }
    });
    (address, requests)
}

/// Serves one request of a connection; none when it ends.
async fn serve(
    stream: &TcpStream,
    answers: &[(&str, u16, &str)],
    sender: &mpsc::UnboundedSender<Question>,
) -> Option<()> {
    let mut text = String::new();
    let (head, mut body) = loop {
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            break (head.to_owned(), body.to_owned());
        }
        text.push_str(&receive(stream).await?);
    };
    let header = |name: &str| {
        let lines = head.lines().filter_map(|line| line.split_once(": "));
        lines.filter(|(own, _)| own.eq_ignore_ascii_case(name)).map(|(_, value)| value.to_owned()).next()
    };
    let length: usize = header("content-length").map_or(0, |length| length.parse().unwrap());
    while body.len() < length {
        body.push_str(&receive(stream).await?);
    }
    let mut words = head.split_whitespace();
    let (method, path) = (words.next()?.to_owned(), words.next()?.to_owned());
    let (status, answer) = answers
        .iter()
        .find(|(own, ..)| *own == path)
        .map_or((404, r#"{"errors": []}"#), |(_, status, answer)| (*status, *answer));
    sender.send((method, path, header("x-vault-token").unwrap_or_default(), body)).ok()?;
    let answer = format!("HTTP/1.1 {status} X\r\ncontent-length: {}\r\n\r\n{answer}", answer.len());
    let mut rest = answer.as_bytes();
    while !rest.is_empty() {
        stream.writable().await.ok()?;
        match stream.try_write(rest) {
            Ok(count) => rest = &rest[count..],
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            Err(_) => return None,
        }
    }
    Some(())
}

async fn receive(stream: &TcpStream) -> Option<String> {
    loop {
        stream.readable().await.ok()?;
        let mut buffer = [0; 4096];
        match stream.try_read(&mut buffer) {
            Ok(0) => return None,
            Ok(count) => return Some(String::from_utf8_lossy(&buffer[..count]).into_owned()),
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            Err(_) => return None,
        }
    }
}

async fn resolve(vault: Value, compat: Compat) -> Result<ResolvedAuth, AuthError> {
    let object = json!({
        "kind": "TriggerAuthentication", "metadata": {"name": "ta", "namespace": "ns"}, "spec": {"hashiCorpVault": vault},
    });
    let auth = auth(&[object], compat);
    let reference = reference("");
    auth.resolve(AuthQuery {
        namespace: "ns",
        authentication: Some(&reference),
        template: None,
        container: "",
    })
    .await
}

fn drain(mut requests: mpsc::UnboundedReceiver<Question>) -> Vec<Question> {
    std::iter::from_fn(|| requests.try_recv().ok()).collect()
}

const LOOKUP: (&str, u16, &str) =
    ("/v1/auth/token/lookup-self", 200, r#"{"data": {"renewable": true, "ttl": 60}}"#);

#[tokio::test]
async fn token_is_renewed_and_each_path_is_read_once() {
    let (address, requests) = vault(&[
        LOOKUP,
        ("/v1/auth/token/renew-self", 200, "{}"),
        ("/v1/secret/data/db", 200, r#"{"data": {"data": {"user": "u", "port": 5432}, "metadata": {}}}"#),
        ("/v1/kv/old", 200, r#"{"data": {"key": "v1"}}"#),
        ("/v1/pki/issue/web", 200, r#"{"data": {"certificate": "C", "ca_chain": ["A", "B"]}}"#),
    ])
    .await;
    let given = json!({
        "address": address, "authentication": "token", "credential": {"token": "t0"},
        "secrets": [
            {"parameter": "user", "path": "secret/data/db", "key": "user"},
            {"parameter": "port", "path": "secret/data/db", "key": "port"},
            {"parameter": "old", "path": "kv/old", "key": "key", "type": "secret"},
            {"parameter": "ca", "path": "pki/issue/web", "key": "ca_chain", "type": "pki", "pkiData": {"commonName": "x"}},
            {"parameter": "cert", "path": "pki/issue/web", "key": "certificate", "type": "pki", "pkiData": {"commonName": "x"}},
        ],
    });
    let resolved = resolve(given, Compat::Better).await.unwrap();
    let wanted = [("ca", "A\nB"), ("cert", "C"), ("old", "v1"), ("port", "5432"), ("user", "u")];
    assert_eq!(resolved.parameters, wanted.map(|(name, value)| (name.to_owned(), value.to_owned())).into());
    let sent = drain(requests);
    assert!(sent.iter().all(|(_, _, token, _)| token == "t0"));
    let lines: Vec<String> =
        sent.iter().map(|(method, path, _, body)| format!("{method} {path} {body}")).collect();
    assert_eq!(
        lines,
        [
            "GET /v1/auth/token/lookup-self ",
            "POST /v1/auth/token/renew-self {}",
            "GET /v1/secret/data/db ",
            "POST /v1/pki/issue/web {\"common_name\":\"x\"}",
            "GET /v1/kv/old ",
        ]
    );
}

#[tokio::test]
async fn missing_vault_secret_is_named_without_the_token() {
    let (address, _reported) = vault(&[
        LOOKUP,
        ("/v1/kv/a", 200, r#"{"data": {"k": "v"}}"#),
        ("/v1/kv/b", 403, r#"{"errors": ["1 error occurred: permission denied"]}"#),
    ])
    .await;
    let resolve_path = async |path: &str, key: &str, compat| {
        let secrets = json!([{"parameter": "p", "path": path, "key": key}]);
        let credential = json!({"token": "hunter2"});
        let given = json!({"address": address, "authentication": "token", "credential": credential, "secrets": secrets});
        resolve(given, compat).await
    };
    for (path, key, words) in [
        ("kv/a", "none", "vault secret \"kv/a\" has no key \"none\""),
        ("kv/b", "k", "permission denied"),
        ("kv/c", "k", "does not exist"),
    ] {
        let error = resolve_path(path, key, Compat::Better).await.unwrap_err().to_string();
        assert!(error.contains(words) && !error.contains("hunter2"), "{error}");
        assert_eq!(resolve_path(path, key, Compat::Strict).await.unwrap().parameters["p"], "");
    }
}

#[tokio::test]
async fn unreachable_vault_is_an_error_in_both_modes() {
    for compat in [Compat::Better, Compat::Strict] {
        let credential = json!({"token": "t"});
        let secrets = json!([{"parameter": "p", "path": "kv/a", "key": "k"}]);
        let given = json!({"address": "http://127.0.0.1:1", "authentication": "token", "credential": credential, "secrets": secrets});
        assert!(resolve(given, compat).await.is_err());
    }
}

#[test]
fn vault_responses_are_decoded() {
    assert_eq!(decode(200, b"").unwrap(), json!({}));
    assert!(decode(200, b"<html>").is_err());
    assert_eq!(decode(404, b"{\"errors\": []}").unwrap_err().to_string(), "it does not exist");
    assert_eq!(decode(500, b"garbage").unwrap_err().to_string(), "answered 500");
    let long = format!("{{\"errors\": [\"{}\"]}}", "x".repeat(10_000));
    assert!(decode(500, long.as_bytes()).unwrap_err().to_string().len() < 300);
}

#[test]
fn operator_reads_secrets_and_issues_certificates() {
    let is_allowed =
        |type_, path, namespace| VaultRequest { type_, path, pki: None }.is_allowed_for_operator(namespace);
    for path in ["pki/issue/web", "pki/sign/web", "team/pki/int/issue/web", "pki/issuer/own/issue/web"] {
        assert!(is_allowed("pki", path, ""), "{path}");
    }
    for path in ["secret/data/auth/token", "secret/data/sys", "database/creds/role", "kv/identity/oidc"] {
        assert!(is_allowed("", path, "team"), "{path}");
    }
    assert!(!is_allowed("", "token/lookup-self", "auth"));
}

#[test]
fn secrets_at_one_path_are_one_request() {
    let secret = |path: &str, key: &str| VaultSecret {
        path: path.to_owned(),
        key: key.to_owned(),
        ..VaultSecret::default()
    };
    let secrets = [secret("a", "1"), secret("b", "1"), secret("a", "2")];
    let counts: Vec<usize> = groups(&secrets).into_values().map(|group| group.len()).collect();
    assert_eq!(counts, [2, 1]);
}
