//! The listener, and misbehaving clients.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, missing_docs)]

use std::sync::Arc;
use std::time::Duration;

use http::{Method, Request};
use http_body_util::BodyExt;
use kube::client::Body;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use localkube::{Cluster, Options, Running, Server};
use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

async fn start() -> (Running, Server, Client) {
    let running = Cluster::start(Options { workloads: false, ..Options::default() }).await.unwrap();
    let server = running.serve().await.unwrap();
    let kubeconfig = Kubeconfig::from_yaml(&server.kubeconfig).unwrap();
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
    (running, server, Client::try_from(config).unwrap())
}

async fn ask(client: &Client, method: Method, path: &str, body: &Value) -> (u16, Value) {
    let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
    let request = Request::builder().method(method).uri(path).header("content-type", "application/json");
    let answer = client.send(request.body(Body::from(body)).unwrap()).await.unwrap();
    let code = answer.status().as_u16();
    let text = answer.into_body().collect().await.unwrap().to_bytes();
    (code, serde_json::from_slice(&text).unwrap_or_default())
}

/// An unauthenticated connection.
async fn connect(running: &Running, server: &Server) -> TlsStream<TcpStream> {
    let (_, found) =
        ask(&running.client(), Method::GET, &format!("{MAPS}/kube-root-ca.crt"), &Value::Null).await;
    let mut roots = RootCertStore::empty();
    let pem = found["data"]["ca.crt"].as_str().unwrap();
    roots.add(CertificateDer::from_pem_slice(pem.as_bytes()).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config =
        rustls::ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let config = config.with_root_certificates(roots).with_no_client_auth();
    let stream = TcpStream::connect(server.url.strip_prefix("https://").unwrap()).await.unwrap();
    let name = ServerName::try_from("127.0.0.1").unwrap();
    TlsConnector::from(Arc::new(config)).connect(name, stream).await.unwrap()
}

#[tokio::test]
async fn unauthenticated_clients_are_refused() {
    let (running, server, client) = start().await;
    assert_eq!(ask(&client, Method::GET, "/api/v1/nodes", &Value::Null).await.0, 200);
    let mut stranger = connect(&running, &server).await;
    stranger.write_all(b"GET /api/v1/nodes HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n").await.unwrap();
    let mut text = String::new();
    stranger.read_to_string(&mut text).await.unwrap();
    assert!(text.starts_with("HTTP/1.1 403"), "{text}");
    assert!(text.contains("User \\\"system:anonymous\\\" cannot list resource \\\"nodes\\\""), "{text}");
    let mut liar = connect(&running, &server).await;
    let head =
        "GET /api/v1/nodes HTTP/1.1\r\nhost: a\r\nconnection: close\r\nauthorization: Bearer nobody\r\n\r\n";
    liar.write_all(head.as_bytes()).await.unwrap();
    let mut text = String::new();
    liar.read_to_string(&mut text).await.unwrap();
    assert!(text.starts_with("HTTP/1.1 401"), "{text}");
}

#[tokio::test]
async fn truncated_body_stores_nothing() {
    let (running, server, client) = start().await;
    let token = token(&client).await;
    let mut cut = connect(&running, &server).await;
    let head = format!(
        "POST {MAPS} HTTP/1.1\r\nhost: a\r\nauthorization: Bearer {token}\r\ncontent-type: application/json\r\n\
         content-length: 1000\r\n\r\n{{\"metadata\": {{\"name\": \"half\"}}}}"
    );
    cut.write_all(head.as_bytes()).await.unwrap();
    cut.flush().await.unwrap();
    drop(cut);
    // The server continues, and nothing of the request is stored.
    for _ in 0..3 {
        let whole = json!({"metadata": {"generateName": "whole-"}});
        assert_eq!(ask(&client, Method::POST, MAPS, &whole).await.0, 201);
    }
    let (_, list) = ask(&client, Method::GET, MAPS, &Value::Null).await;
    let names: Vec<&str> =
        list["items"].as_array().unwrap().iter().filter_map(|m| m["metadata"]["name"].as_str()).collect();
    assert!(!names.contains(&"half") && names.len() == 4, "{names:?}");
}

#[tokio::test]
async fn dropped_watches_end() {
    let (_running, _server, client) = start().await;
    for round in 0..20 {
        let request = Request::builder().uri(format!("{MAPS}?watch=1")).body(Body::empty()).unwrap();
        let mut events = client.send(request).await.unwrap().into_body();
        assert!(events.frame().await.unwrap().is_ok(), "{round}");
        drop(events);
    }
    let made = json!({"metadata": {"name": "after"}});
    assert_eq!(ask(&client, Method::POST, MAPS, &made).await.0, 201);
}

#[tokio::test]
async fn watch_over_tls_sees_later_writes() {
    let (_running, _server, client) = start().await;
    let (_, list) = ask(&client, Method::GET, MAPS, &Value::Null).await;
    let since = list["metadata"]["resourceVersion"].as_str().unwrap();
    let uri = format!("{MAPS}?watch=1&resourceVersion={since}");
    let mut events =
        client.send(Request::builder().uri(uri).body(Body::empty()).unwrap()).await.unwrap().into_body();
    ask(&client, Method::POST, MAPS, &json!({"metadata": {"name": "seen"}})).await;
    let frame = tokio::time::timeout(Duration::from_mins(1), events.frame()).await.unwrap().unwrap().unwrap();
    let event: Value = serde_json::from_slice(&frame.into_data().unwrap()).unwrap();
    assert_eq!((&event["type"], &event["object"]["metadata"]["name"]), (&json!("ADDED"), &json!("seen")));
}

async fn token(client: &Client) -> String {
    let path = "/api/v1/namespaces/default/serviceaccounts/default/token";
    let (code, made) = ask(client, Method::POST, path, &json!({"spec": {}})).await;
    assert_eq!(code, 201, "{made}");
    made["status"]["token"].as_str().unwrap().to_owned()
}
