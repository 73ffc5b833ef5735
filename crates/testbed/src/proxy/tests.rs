//! Tests each fault between a client and localkube.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

use std::time::Duration;

use http::{Method, Request};
use http_body_util::BodyExt as _;
use kube::Client;
use kube::client::Body;
use localkube::{Cluster, Options, Running, Server};
use serde_json::{Value, json};

use super::*;
use crate::harness::connect;

/// The timeout of a wait, which is far longer than any wait here takes.
const WAIT_TIMEOUT: Duration = Duration::from_secs(20);
/// How long to wait before an absent response counts as absent.
const SHORT_WAIT: Duration = Duration::from_millis(200);

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

struct ProxyEnv {
    #[allow(dead_code, reason = "held for their end")]
    cluster: (Running, Server),
    /// A client that does not use the proxy.
    direct: Client,
    /// A client that uses the proxy.
    client: Client,
    proxy: Proxy,
    rules: Rules,
}

async fn env() -> ProxyEnv {
    let cluster = Cluster::start(Options { workloads: false, ..Options::default() }).await.unwrap();
    let server = cluster.serve().await.unwrap();
    let proxy = Proxy::start(&server.kubeconfig).await.unwrap();
    let client = connect(&proxy.kubeconfig()).await.unwrap();
    let (direct, rules) = (cluster.client(), proxy.rules());
    ProxyEnv { cluster: (cluster, server), direct, client, proxy, rules }
}

/// Sends a request, and returns the status code and the body; an error if the connection broke.
async fn request(client: &Client, method: Method, path: &str, body: Value) -> Result<(u16, String), String> {
    let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
    let request = Request::builder().method(method).uri(path).header("content-type", "application/json");
    let request = request.body(Body::from(body)).unwrap();
    let response = client.send(request).await.map_err(|error| error.to_string())?;
    let code = response.status().as_u16();
    let body = response.into_body().collect().await.map_err(|error| error.to_string())?.to_bytes();
    Ok((code, String::from_utf8_lossy(&body).into_owned()))
}

async fn get(client: &Client, path: &str) -> Result<(u16, String), String> {
    request(client, Method::GET, path, Value::Null).await
}

async fn create_config_map(client: &Client, name: &str) {
    let created = request(client, Method::POST, MAPS, json!({"metadata": {"name": name}})).await.unwrap();
    assert_eq!(created.0, 201, "{}", created.1);
}

struct Watcher {
    body: Body,
    rest: Vec<u8>,
}

impl Watcher {
    async fn open(client: &Client) -> Self {
        let request =
            Request::get(format!("{MAPS}?watch=true&fieldSelector=metadata.name%21%3Dkube-root-ca.crt"));
        let response = client.send(request.body(Body::empty()).unwrap()).await.unwrap();
        Self { body: response.into_body(), rest: Vec::new() }
    }

    /// The name of the object in the next event; none when the watch ended.
    async fn next(&mut self) -> Option<String> {
        loop {
            if let Some(end) = self.rest.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.rest.drain(..=end).collect();
                let event: Value = serde_json::from_slice(&line).unwrap();
                return Some(event["object"]["metadata"]["name"].as_str().unwrap().to_owned());
            }
            let frame = tokio::time::timeout(WAIT_TIMEOUT, self.body.frame()).await.unwrap()?;
            self.rest.extend_from_slice(frame.unwrap().data_ref().unwrap());
        }
    }

    async fn is_silent(&mut self) -> bool {
        tokio::time::timeout(SHORT_WAIT, self.next()).await.is_err()
    }
}

#[tokio::test]
async fn requests_are_forwarded_and_counted() {
    let env = env().await;
    create_config_map(&env.client, "a").await;
    let (code, body) = get(&env.client, &format!("{MAPS}/a")).await.unwrap();
    assert!(code == 200 && body.contains("\"name\":\"a\""), "{body}");
    assert_eq!(get(&env.client, &format!("{MAPS}/b?pretty=0")).await.unwrap().0, 404);
    let one = "/api/v1/namespaces/{ns}/configmaps/{name}";
    assert_eq!((env.rules.count(&Method::GET, one), env.rules.count(&Method::PUT, one)), (2, 0));
    let last = env.rules.log().pop().unwrap();
    assert_eq!((last.method, last.path, last.status), (Method::GET, format!("{MAPS}/b?pretty=0"), Some(404)));
    env.rules.clear_log();
    assert!(env.rules.log().is_empty() && env.rules.counts().is_empty());
}

#[tokio::test]
async fn one_port_serves_tls_and_plain_http() {
    use hyper_util::client::legacy::Client as Plain;
    use hyper_util::rt::TokioExecutor;
    let env = env().await;
    for http2 in [false, true] {
        let client = Plain::builder(TokioExecutor::new())
            .http2_only(http2)
            .build_http::<http_body_util::Empty<Bytes>>();
        let uri = format!("{}/version", env.proxy.plain_url()).parse().unwrap();
        let response = client.get(uri).await.unwrap();
        let version = if http2 { http::Version::HTTP_2 } else { http::Version::HTTP_11 };
        assert_eq!((response.status().as_u16(), response.version()), (200, version));
    }
}

#[tokio::test]
async fn faults_replace_responses() {
    let ProxyEnv { client, rules, cluster: _cluster, proxy: _proxy, .. } = env().await;
    let message = "too many".to_owned();
    let fault = Fault::Status { code: 429, reason: "TooManyRequests", message, retry_after: Some(7) };
    let rule = rules.add(Rule::new(fault).method(Method::GET).prefix(MAPS).times(1));
    let (code, body) = get(&client, MAPS).await.unwrap();
    assert!(code == 429 && body.contains(r#""details":{"retryAfterSeconds":7}"#), "{body}");
    assert_eq!(get(&client, MAPS).await.unwrap().0, 200, "once only");
    assert_eq!(rules.hits(rule), 1);
    let rule = rules.add(Rule::new(Fault::Garbage).prefix(MAPS));
    let (code, body) = get(&client, MAPS).await.unwrap();
    assert!(code == 200 && serde_json::from_str::<Value>(&body).is_err(), "{body}");
    rules.remove(rule);
    rules.add(Rule::new(Fault::RewritePath(Arc::new(|path| path.replace("default", "other")))));
    assert!(get(&client, &format!("{MAPS}/a")).await.unwrap().1.contains("configmaps \\\"a\\\" not found"));
    rules.clear();
    rules.add(Rule::new(Fault::Delay(SHORT_WAIT)));
    let start = std::time::Instant::now();
    assert_eq!(get(&client, MAPS).await.unwrap().0, 200);
    assert!(start.elapsed() >= SHORT_WAIT);
}

#[tokio::test]
async fn faults_close_connections() {
    let ProxyEnv { client, direct, rules, cluster: _cluster, proxy: _proxy } = env().await;
    let rule = rules.add(Rule::new(Fault::Refuse).method(Method::POST));
    let object = json!({"metadata": {"name": "a"}});
    assert!(request(&client, Method::POST, MAPS, object.clone()).await.is_err());
    assert_eq!(get(&direct, &format!("{MAPS}/a")).await.unwrap().0, 404, "it was not forwarded");
    rules.remove(rule);
    rules.add(Rule::new(Fault::LoseResponse).method(Method::POST));
    assert!(request(&client, Method::POST, MAPS, object).await.is_err());
    assert_eq!(get(&direct, &format!("{MAPS}/a")).await.unwrap().0, 200, "it was forwarded");
    assert_eq!(rules.log().pop().unwrap().status, None);
}

#[tokio::test]
async fn faults_cut_and_stall_bodies() {
    let ProxyEnv { client, rules, cluster: _cluster, proxy: _proxy, .. } = env().await;
    let rule = rules.add(Rule::new(Fault::CutBody { after_bytes: 10 }).prefix(MAPS));
    assert!(get(&client, MAPS).await.is_err());
    rules.remove(rule);
    rules.add(Rule::new(Fault::StallBody { after_bytes: 10 }).prefix(MAPS));
    let request = Request::get(MAPS).body(Body::empty()).unwrap();
    let mut body = client.send(request).await.unwrap().into_body();
    assert_eq!(body.frame().await.unwrap().unwrap().data_ref().unwrap().len(), 10);
    assert!(tokio::time::timeout(SHORT_WAIT, body.frame()).await.is_err());
    assert_eq!(get(&client, "/version").await.unwrap().0, 200, "others go on");
}

#[tokio::test]
async fn stale_lists_are_replayed() {
    let ProxyEnv { client, direct, rules, cluster: _cluster, proxy: _proxy } = env().await;
    let first = get(&client, &format!("{MAPS}?limit=500")).await.unwrap();
    create_config_map(&direct, "a").await;
    rules.add(Rule::new(Fault::StaleList).prefix(MAPS));
    assert_eq!(get(&client, &format!("{MAPS}?resourceVersion=0")).await.unwrap(), first);
    assert!(
        get(&client, &format!("{MAPS}?labelSelector=a")).await.unwrap().1.contains("\"items\":[]"),
        "never seen"
    );
    rules.clear();
    assert!(get(&client, MAPS).await.unwrap().1.contains("\"name\":\"a\""));
}

#[tokio::test]
async fn watches_are_ended_and_stalled() {
    let ProxyEnv { client, direct, rules, cluster: _cluster, proxy: _proxy } = env().await;
    let (mut one, mut other) = (Watcher::open(&client).await, Watcher::open(&client).await);
    create_config_map(&direct, "a").await;
    assert_eq!((one.next().await.as_deref(), other.next().await.as_deref()), (Some("a"), Some("a")));
    assert_eq!(rules.watches(), 2);
    let rule = rules.add(Rule::new(Fault::StallWatches).prefix(MAPS));
    create_config_map(&direct, "b").await;
    assert!(one.is_silent().await && other.is_silent().await);
    let mut later = Watcher::open(&client).await;
    assert_eq!(later.next().await.as_deref(), Some("a"), "the rule is older than this watch");
    rules.remove(rule);
    create_config_map(&direct, "c").await;
    assert_eq!(one.next().await.as_deref(), Some("c"), "what came meanwhile is lost");
    rules.add(Rule::new(Fault::CutWatches).prefix(MAPS));
    assert_eq!(other.next().await.as_deref().or(Some("c")), Some("c"));
    assert_eq!(one.next().await, None);
    assert_eq!(rules.watches(), 0);
    let mut last = Watcher::open(&client).await;
    assert_eq!(last.next().await.as_deref(), Some("a"), "later ones live");
}

#[tokio::test]
async fn proxy_restarts_on_the_same_port() {
    let ProxyEnv { client, proxy, cluster: _cluster, .. } = env().await;
    let mut watch = Watcher::open(&client).await;
    proxy.down().await;
    assert!(watch.body.frame().await.is_none_or(|frame| frame.is_err()), "it is broken");
    assert!(get(&client, "/version").await.is_err());
    proxy.up().await.unwrap();
    assert_eq!(get(&client, "/version").await.unwrap().0, 200);
}

#[tokio::test]
async fn proxy_forwards_tokens_of_clients() {
    let env = env().await;
    let (_, server) = &env.cluster;
    let options = ProxyOptions { caller: ProxyCaller::Client, ..ProxyOptions::default() };
    let proxy = Proxy::start_with(&server.kubeconfig, options).await.unwrap();
    let anonymous = connect(&proxy.kubeconfig()).await.unwrap();
    let review = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    let (_, body) = request(&anonymous, Method::POST, review, json!({})).await.unwrap();
    assert!(body.contains("system:anonymous") || body.contains("forbidden"), "{body}");
    let token = format!("{}/token", "/api/v1/namespaces/default/serviceaccounts/default");
    let (code, body) = request(&env.direct, Method::POST, &token, json!({"spec": {}})).await.unwrap();
    assert_eq!(code, 201, "{body}");
    let token = serde_json::from_str::<Value>(&body).unwrap();
    let token = token["status"]["token"].as_str().unwrap();
    let account = connect(&proxy.kubeconfig_with(token)).await.unwrap();
    let (_, body) = request(&account, Method::POST, review, json!({})).await.unwrap();
    assert!(body.contains("system:serviceaccount:default:default"), "{body}");
}

#[tokio::test]
async fn held_requests_continue_when_released() {
    let env = env().await;
    let (hold, held) = tokio::sync::watch::channel(true);
    env.rules.add(Rule::new(Fault::Hold(held)).suffix("/configmaps"));
    let response = tokio::time::timeout(SHORT_WAIT, get(&env.client, MAPS)).await;
    assert!(response.is_err(), "it is held");
    let (waiting, ()) = tokio::join!(get(&env.client, MAPS), async {
        create_config_map(&env.direct, "later").await;
        hold.send(false).unwrap();
    });
    assert!(waiting.unwrap().1.contains("later"), "it is forwarded only when it is let go");
    assert_eq!(get(&env.client, MAPS).await.unwrap().0, 200);
}

#[tokio::test]
async fn delayed_response_does_not_delay_the_request() {
    let env = env().await;
    env.rules.add(Rule::new(Fault::DelayResponse(WAIT_TIMEOUT)).method(Method::POST));
    let body = json!({"metadata": {"name": "soon"}});
    let response = tokio::time::timeout(SHORT_WAIT, request(&env.client, Method::POST, MAPS, body)).await;
    assert!(response.is_err(), "no answer yet");
    assert!(get(&env.client, MAPS).await.unwrap().1.contains("soon"));
}

#[tokio::test]
async fn reasons_of_refusals_are_logged() {
    let env = env().await;
    for (code, reason) in [(403, "Forbidden"), (404, "NotFound")] {
        let (message, retry_after) = (format!("not you, {code}"), None);
        env.rules.add(Rule::new(Fault::Status { code, reason, message, retry_after }).times(1));
        assert_eq!(get(&env.client, MAPS).await.unwrap().0, code);
    }
    assert_eq!(get(&env.client, MAPS).await.unwrap().0, 200);
    let log = env.rules.log();
    assert!(log[0].refusal.as_ref().is_some_and(|words| words.contains("not you, 403")), "{log:#?}");
    assert!(log[1..].iter().all(|entry| entry.refusal.is_none()), "{log:#?}");
}
