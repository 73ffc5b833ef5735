//! Servers that the API server itself calls, on both clusters: an aggregated API, and a webhook that denies requests.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

use std::convert::Infallible;
use std::sync::Arc;

use http::{Method, Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use kube::Client;
use localkube::access::{Authority, Identity};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use serde_json::{Value, json};
use testbed::aggregate::Aggregated;
use testbed::harness::{self, Failure, TestNamespace, eventually, send};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

/// Serves TLS for clients with a certificate of `clients` or none; `http_response` makes the responses.
async fn serve(
    identity: &Identity,
    clients: &str,
    http_response: impl Fn(&http::request::Parts, Value, bool) -> Value + Clone + Send + Sync + 'static,
) -> u16 {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(clients.as_bytes()).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider));
    let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let config = config.with_client_cert_verifier(verifier.allow_unauthenticated().build().unwrap());
    let chain = vec![CertificateDer::from_pem_slice(identity.certificate.as_bytes()).unwrap()];
    let key = PrivateKeyDer::from_pem_slice(identity.key.as_bytes()).unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config.with_single_cert(chain, key).unwrap()));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (acceptor, http_response) = (acceptor.clone(), http_response.clone());
            tokio::spawn(async move {
                let Ok(stream) = acceptor.accept(stream).await else { return };
                let known = stream.get_ref().1.peer_certificates().is_some();
                let service = hyper::service::service_fn(move |request: Request<Incoming>| {
                    let http_response = http_response.clone();
                    async move {
                        let (parts, body) = request.into_parts();
                        let body =
                            body.collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
                        let body = serde_json::from_slice(&body).unwrap_or_default();
                        let text = http_response(&parts, body, known).to_string();
                        let response = Response::builder().header("content-type", "application/json");
                        Ok::<_, Infallible>(response.body(Full::new(Bytes::from(text))).unwrap())
                    }
                });
                let _ = auto::Builder::new(TokioExecutor::new())
                    .serve_connection(TokioIo::new(stream), service)
                    .await;
            });
        }
    });
    port
}

async fn create(client: &Client, path: &str, object: &Value) -> (u16, Value) {
    send(client, Method::POST, path, Some(object)).await
}

/// The CA of the API server's client certificate, as it publishes it in a ConfigMap.
async fn front_proxy(client: &Client) -> String {
    let path = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication";
    let (_, found) = send(client, Method::GET, path, None).await;
    found["data"]["requestheader-client-ca-file"].as_str().unwrap().to_owned()
}

#[test]
fn aggregated_api_receives_the_user() -> Result<(), Failure> {
    harness::on_both(|ns| async move { aggregated(ns).await })
}

async fn aggregated(TestNamespace { client, namespace, cluster, .. }: TestNamespace) {
    let authority = Authority::new("servers").unwrap();
    let mut api = Aggregated {
        group: format!("{namespace}.example.com"),
        version: "v1".into(),
        namespace: namespace.clone(),
        service: "echo".into(),
        port: 0,
        authority: Some(authority.certificate().to_owned()),
    };
    let identity = authority.server(&[&api.server_name()]).unwrap();
    let group_version = format!("{}/v1", api.group);
    let resource = json!({"name": "echoes", "singularName": "echo", "namespaced": true, "kind": "Echo", "verbs": ["list"]});
    let list = json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": [resource]});
    let discovery = format!("/apis/{group_version}");
    api.port = serve(&identity, &front_proxy(&client).await, move |parts, _, known| {
        if parts.uri.path() == discovery {
            return list.clone();
        }
        let all = |name: &str| parts.headers.get_all(name).iter().map(|v| v.to_str().unwrap().to_owned()).collect::<Vec<_>>();
        let (users, groups, secret) = (all("x-remote-user"), all("x-remote-group"), all("authorization"));
        json!({"kind": "EchoList", "users": users, "groups": groups, "secret": secret, "known": known, "uri": parts.uri.to_string()})
    })
    .await;
    for manifest in api.manifest().split("---\n") {
        let source = api::yaml::SourceFile::new("manifest", manifest);
        let object = api::yaml::parse(&source).unwrap()[0].root.to_json();
        let path = match object["kind"].as_str() {
            Some("Service") => format!("/api/v1/namespaces/{namespace}/services"),
            _ => "/apis/apiregistration.k8s.io/v1/apiservices".to_owned(),
        };
        let (code, response_body) = create(&client, &path, &object).await;
        assert_eq!(code, 201, "{cluster}: {response_body}");
    }
    let path = format!("/apis/{group_version}/namespaces/{namespace}/echoes?limit=5");
    let echo = eventually(&format!("the API on {cluster}"), async || {
        let forged = Request::get(&path).header("x-remote-user", "forged").header("x-remote-group", "forged");
        let response_body = client.request::<Value>(forged.body(Vec::new()).unwrap()).await;
        response_body.ok()
    })
    .await;
    let (_, own) = create(&client, "/apis/authentication.k8s.io/v1/selfsubjectreviews", &json!({})).await;
    assert_eq!(echo["users"], json!([own["status"]["userInfo"]["username"]]), "{cluster}");
    let groups = echo["groups"].as_array().unwrap();
    assert!(
        groups.contains(&json!("system:masters")) && !groups.contains(&json!("forged")),
        "{cluster}: {groups:?}"
    );
    assert_eq!(
        (&echo["secret"], &echo["known"], &echo["uri"]),
        (&json!([]), &json!(true), &json!(path)),
        "{cluster}"
    );
    let (_, groups) = send(&client, Method::GET, "/apis", None).await;
    assert!(groups["groups"].as_array().unwrap().iter().any(|group| group["name"] == api.group), "{cluster}");
    let service = format!("/apis/apiregistration.k8s.io/v1/apiservices/{}", api.name());
    let condition = eventually(&format!("the condition on {cluster}"), async || {
        let (_, found) = send(&client, Method::GET, &service, None).await;
        let condition = found["status"]["conditions"][0].clone();
        (condition["status"] == "True").then_some(condition)
    })
    .await;
    assert_eq!(
        (&condition["type"], &condition["reason"]),
        (&json!("Available"), &json!("Passed")),
        "{cluster}"
    );
    send(&client, Method::DELETE, &service, None).await;
    eventually(&format!("its end on {cluster}"), async || {
        (send(&client, Method::GET, &path, None).await.0 == 404).then_some(())
    })
    .await;
}

#[test]
fn webhook_denies_requests() -> Result<(), Failure> {
    harness::on_both(|ns| async move { webhook(ns).await })
}

async fn webhook(TestNamespace { client, namespace, cluster, .. }: TestNamespace) {
    let authority = Authority::new("servers").unwrap();
    let identity = authority.server(&["127.0.0.1"]).unwrap();
    let port = serve(&identity, &front_proxy(&client).await, |_, review, _| {
        let request = &review["request"];
        let bad = request["object"]["data"]["colour"] == "red";
        let seen = format!(
            "{} {} by {}",
            request["operation"], request["resource"]["resource"], request["userInfo"]["username"]
        );
        let status = json!({"message": "not red, please", "code": 403});
        let mut response =
            json!({"uid": request["uid"], "allowed": !bad, "warnings": [seen.replace('"', "")]});
        if bad {
            response["status"] = status;
        }
        json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response})
    })
    .await;
    let rule = json!({"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["CREATE", "UPDATE"]});
    let bundle = base64(authority.certificate());
    let hook = json!({
        "name": "colours.example.com",
        "rules": [rule],
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
        "clientConfig": {"url": format!("https://127.0.0.1:{port}/check"), "caBundle": bundle},
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    });
    let hooks = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
    let (code, response_body) =
        create(&client, hooks, &json!({"metadata": {"name": namespace}, "webhooks": [hook]})).await;
    assert_eq!(code, 201, "{cluster}: {response_body}");
    let maps = format!("/api/v1/namespaces/{namespace}/configmaps");
    // The real API server uses a new webhook only after some time.
    let mut count = 0;
    let refused = eventually(&format!("the refusal on {cluster}"), async || {
        count += 1;
        let red = json!({"metadata": {"name": format!("red-{count}")}, "data": {"colour": "red"}});
        let (code, response_body) = create(&client, &maps, &red).await;
        (code != 201).then_some((code, response_body))
    })
    .await;
    assert_eq!(refused.0, 403, "{cluster}: {}", refused.1);
    let text = "admission webhook \"colours.example.com\" denied the request: not red, please";
    assert_eq!(refused.1["message"], text, "{cluster}");
    let (code, made) =
        create(&client, &maps, &json!({"metadata": {"name": "blue"}, "data": {"colour": "blue"}})).await;
    assert_eq!(code, 201, "{cluster}: {made}");
    let red = json!({"data": {"colour": "red"}});
    let (code, _) = send(&client, Method::PATCH, &format!("{maps}/blue"), Some(&red)).await;
    assert_eq!(code, 403, "{cluster}");
    send(&client, Method::DELETE, &format!("{hooks}/{namespace}"), None).await;
}

fn base64(text: &str) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(text)
}
