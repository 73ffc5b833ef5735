//! The responses of the metrics APIs over TLS for each kind of client, with code and body.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

mod common;

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use common::Visitor;
use common::cluster::{put, reviewed, token};
use common::usage::{NODES, groups};
use http_body_util::BodyExt as _;
use kube::Client;
use localkube::access::{Authority, Identity};
use localkube::{Cluster, Running};
use serde_json::{Value, json};
use serve::{App, Exposition, Server, ServerOptions};

/// Users without permissions.
const DENIED: &[&str] = &["mallory", "system:serviceaccount:default:poor"];

struct MatrixEnv {
    _cluster: Running,
    client: Client,
    server: Server,
    clients: Authority,
    proxies: Authority,
    requested: Arc<AtomicU32>,
}

async fn env() -> MatrixEnv {
    let cluster = Cluster::start(localkube::Options::default()).await.unwrap();
    let requested = Arc::new(AtomicU32::new(0));
    let client = reviewed(&cluster, DENIED, &requested);
    let (clients, proxies) = (Authority::new("clients").unwrap(), Authority::new("proxies").unwrap());
    let map = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication";
    let data = json!({"client-ca-file": clients.certificate(), "requestheader-client-ca-file": proxies.certificate(),
        "requestheader-allowed-names": "[\"front-proxy-client\"]"});
    put(&client, "PATCH", map, &json!({"data": data})).await;
    let metrics = || Exposition { content_type: "text/plain; version=0.0.4".into(), text: "up 1\n".into() };
    let app = App { groups: groups(), metrics: Some(Arc::new(metrics)), ..App::default() };
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let server = Server::start(ServerOptions { address, ..ServerOptions::default() }, client.clone(), app)
        .await
        .unwrap();
    MatrixEnv { _cluster: cluster, client, server, clients, proxies, requested }
}

impl MatrixEnv {
    /// The code and the body of a response; a body that is no JSON is a string.
    async fn get(&self, who: Option<&Identity>, path: &str, headers: &[(&str, &str)]) -> (u16, Value) {
        let (code, text) = Visitor::new(&self.server, who).get(path, headers).await;
        (code, serde_json::from_str(&text).unwrap_or(Value::String(text)))
    }

    fn proxy(&self) -> Identity {
        self.proxies.client("front-proxy-client", None).unwrap()
    }
}

fn unauthorized() -> (u16, Value) {
    let body = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": "Unauthorized", "reason": "Unauthorized", "code": 401});
    (401, body)
}

/// The error of a user who may not list nodes.
fn forbidden(user: &str, why: &str) -> (u16, Value) {
    let message = format!(
        "nodes.metrics.k8s.io is forbidden: User \"{user}\" cannot list resource \"nodes\" in API group \
         \"metrics.k8s.io\" at the cluster scope{why}"
    );
    let body = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": message,
        "reason": "Forbidden", "details": {"group": "metrics.k8s.io", "kind": "nodes"}, "code": 403});
    (403, body)
}

fn is_list((code, body): &(u16, Value)) -> bool {
    *code == 200 && body["kind"] == "NodeMetricsList" && body["items"][0]["usage"]["cpu"] == "250m"
}

const FORGED: [(&str, &str); 2] = [("x-remote-user", "root"), ("x-remote-group", "system:masters")];

#[tokio::test(flavor = "multi_thread")]
async fn anonymous_user_is_forbidden() {
    let env = env().await;
    assert_eq!(env.get(None, NODES, &[]).await, forbidden("system:anonymous", ""));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_of_an_unknown_authority_is_not_authenticated() {
    let env = env().await;
    let stranger = Authority::new("clients").unwrap().client("bob", None).unwrap();
    assert_eq!(env.get(Some(&stranger), NODES, &[]).await, unauthorized());
    let stranger = Authority::new("proxies").unwrap().client("front-proxy-client", None).unwrap();
    assert_eq!(env.get(Some(&stranger), NODES, &FORGED).await, unauthorized());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_proxy_of_another_name_is_not_authenticated() {
    let env = env().await;
    let other = env.proxies.client("other", None).unwrap();
    assert_eq!(env.get(Some(&other), NODES, &[("x-remote-user", "carol")]).await, unauthorized());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_forged_header_without_the_certificate_means_nothing() {
    let env = env().await;
    assert_eq!(env.get(None, NODES, &FORGED).await, forbidden("system:anonymous", ""));
}

#[tokio::test(flavor = "multi_thread")]
async fn front_proxy_without_user_is_not_authenticated() {
    let env = env().await;
    assert_eq!(env.get(Some(&env.proxy()), NODES, &[]).await, unauthorized());
    assert_eq!(env.get(Some(&env.proxy()), NODES, &[("x-remote-user", "")]).await, unauthorized());
}

#[tokio::test(flavor = "multi_thread")]
async fn front_proxy_headers_name_the_user() {
    let env = env().await;
    assert!(is_list(&env.get(Some(&env.proxy()), NODES, &[("x-remote-user", "carol")]).await));
    let mallory = [("x-remote-user", "mallory")];
    assert_eq!(env.get(Some(&env.proxy()), NODES, &mallory).await, forbidden("mallory", ": no rule"));
    // For members of `system:masters` no SubjectAccessReview is sent.
    let before = env.requested.load(Ordering::Relaxed);
    assert!(is_list(&env.get(Some(&env.proxy()), NODES, &FORGED).await));
    assert_eq!(env.requested.load(Ordering::Relaxed), before);
}

#[tokio::test(flavor = "multi_thread")]
async fn client_certificate_names_only_its_user() {
    let env = env().await;
    let mallory = env.clients.client("mallory", None).unwrap();
    assert_eq!(env.get(Some(&mallory), NODES, &FORGED).await, forbidden("mallory", ": no rule"));
    let alice = env.clients.client("alice", Some("team")).unwrap();
    assert!(is_list(&env.get(Some(&alice), NODES, &[("x-remote-user", "mallory")]).await));
    // A certificate with the name of the front proxy that the users' authority signed is that of a user.
    let like = env.clients.client("front-proxy-client", None).unwrap();
    assert!(is_list(&env.get(Some(&like), NODES, &[("x-remote-user", "mallory")]).await));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invalid_token_is_not_authenticated() {
    let env = env().await;
    for token in ["Bearer nonsense", "bearer a.b.c"] {
        assert_eq!(env.get(None, NODES, &[("authorization", token)]).await, unauthorized(), "{token}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_without_rights_is_forbidden_and_one_with_rights_is_served() {
    let env = env().await;
    let poor = token(&env.client, "poor").await;
    assert_eq!(
        env.get(None, NODES, &[("authorization", &poor)]).await,
        forbidden("system:serviceaccount:default:poor", ": no rule")
    );
    let rich = token(&env.client, "rich").await;
    assert!(is_list(&env.get(None, NODES, &[("authorization", &rich)]).await));
    for (path, kind) in [
        ("/apis/custom.metrics.k8s.io/v1beta2/namespaces/default/pods/*/qps", "MetricValueList"),
        ("/apis/external.metrics.k8s.io/v1beta1/namespaces/default/queue", "ExternalMetricValueList"),
    ] {
        let (code, body) = env.get(None, path, &[("authorization", &rich)]).await;
        assert_eq!((code, &body["kind"]), (200, &json!(kind)), "{path}");
        assert_eq!(env.get(None, path, &[("authorization", &poor)]).await.0, 403);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn forbidden_and_missing_objects_have_the_same_response() {
    let env = env().await;
    for path in ["/apis/metrics.k8s.io/v1beta1/nothing", "/apis/nothing/v1/nothing", "/nothing"] {
        assert_eq!(env.get(None, path, &[]).await.0, 403, "{path}");
    }
    let custom = "/apis/custom.metrics.k8s.io/v1beta1/namespaces/d/pods/*/qps";
    let (code, body) = env.get(None, custom, &[]).await;
    let message = "pods.custom.metrics.k8s.io \"*\" is forbidden: User \"system:anonymous\" cannot get resource \
        \"pods/qps\" in API group \"custom.metrics.k8s.io\" in the namespace \"d\"";
    assert_eq!((code, &body["message"]), (403, &json!(message)));
    assert_eq!(body["details"], json!({"name": "*", "group": "custom.metrics.k8s.io", "kind": "pods"}));
}

#[tokio::test(flavor = "multi_thread")]
async fn health_needs_no_user_but_refuses_invalid_credentials() {
    let env = env().await;
    for path in ["/healthz", "/livez", "/readyz"] {
        assert_eq!(env.get(None, path, &[]).await, (200, json!("ok")), "{path}");
        let bad = [("authorization", "Bearer nonsense")];
        assert_eq!(env.get(None, path, &bad).await, unauthorized(), "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn metrics_of_the_server_itself_need_rights() {
    let env = env().await;
    let body = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": "forbidden: User \"system:anonymous\" cannot get path \"/metrics\"", "reason": "Forbidden",
        "details": {}, "code": 403});
    assert_eq!(env.get(None, "/metrics", &[]).await, (403, body));
    let rich = token(&env.client, "rich").await;
    assert_eq!(env.get(None, "/metrics", &[("authorization", &rich)]).await, (200, json!("up 1\n")));
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_have_the_requested_form() {
    let env = env().await;
    let visitor = Visitor::new(&env.server, None);
    let headers = [("accept", "application/vnd.kubernetes.protobuf"), ("audit-id", "abc")];
    let answer = visitor.send("GET", NODES, &headers, Vec::new()).await.unwrap();
    assert_eq!((answer.status().as_u16(), &answer.headers()["audit-id"]), (403, &"abc".parse().unwrap()));
    assert_eq!(answer.headers()["content-type"], "application/vnd.kubernetes.protobuf");
    let bytes = answer.into_body().collect().await.unwrap().to_bytes();
    assert!(bytes.starts_with(b"k8s\0\x0a\x0c\x0a\x02v1\x12\x06Status\x12"), "{bytes:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn autoscalers_with_selectors_of_their_own_share_one_answer() {
    let env = env().await;
    let alice = env.clients.client("alice", None).unwrap();
    let pods = "/apis/metrics.k8s.io/v1beta1/namespaces/default/pods";
    for index in 0..5 {
        let path = format!("{pods}?labelSelector=app%3Dweb-{index}");
        assert_eq!(env.get(Some(&alice), &path, &[]).await.0, 200);
    }
    assert_eq!(env.requested.load(Ordering::Relaxed), 1);
    // For a user who may not see all, a second SubjectAccessReview has the selectors of the request.
    let mallory = env.clients.client("mallory", None).unwrap();
    let path = format!("{pods}?labelSelector=app%3Dweb&fieldSelector=metadata.name%3Dx");
    let (code, body) = env.get(Some(&mallory), &path, &[]).await;
    assert_eq!((code, &body["details"]["name"]), (403, &json!("x")));
    assert_eq!(env.requested.load(Ordering::Relaxed), 3);
}
