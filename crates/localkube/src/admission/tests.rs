//! Webhooks served by the tests themselves, with the error texts of the real API server.

#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{Response, StatusCode};
use serde_json::json;

use super::*;
use crate::access::Authority;
use crate::aggregate::tests::{body, serve};

fn review() -> AdmissionRequest {
    AdmissionRequest {
        uid: "u-1".into(),
        version: "v1".into(),
        kind: "ConfigMap".into(),
        resource: "configmaps".into(),
        name: "a".into(),
        namespace: "team".into(),
        namespaced: true,
        operation: "CREATE",
        user: crate::access::User::admin(),
        object: Some(json!({"metadata": {"name": "a"}})),
        ..AdmissionRequest::default()
    }
}

fn configuration(client: &Value, more: &Value) -> Value {
    let rules = json!([{"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"]}]);
    let mut webhook =
        json!({"name": "a.example.com", "clientConfig": client, "rules": rules, "timeoutSeconds": 2});
    for (field, value) in more.as_object().unwrap() {
        webhook[field] = value.clone();
    }
    json!({"metadata": {"name": "c"}, "webhooks": [webhook]})
}

async fn refusal(client: Value, more: Value) -> Status {
    ask(&[configuration(&client, &more)], &review(), &|_, _, _| None).await.unwrap_err()
}

/// Starts a webhook that responds with a status and a text; returns its client configuration.
async fn webhook(code: u16, text: String) -> Value {
    let authority = Authority::new("hooks").unwrap();
    let identity = authority.server(&["127.0.0.1"]).unwrap();
    let address = serve(&identity, None, move |_, _| {
        let mut response = Response::new(body(text.clone()));
        *response.status_mut() = StatusCode::from_u16(code).unwrap();
        response
    });
    let url = format!("https://{}/x", address.await);
    json!({"url": url, "caBundle": STANDARD.encode(authority.certificate())})
}

async fn answering(response: Value) -> Value {
    webhook(200, json!({"response": response}).to_string()).await
}

#[tokio::test]
async fn webhook_allows_warns_and_denies() {
    let allowing = answering(json!({"uid": "u-1", "allowed": true, "warnings": ["careful"]})).await;
    let warnings = ask(&[configuration(&allowing, &json!({}))], &review(), &|_, _, _| None).await;
    assert_eq!(warnings.unwrap(), ["careful"]);

    let bare =
        refusal(answering(json!({"uid": "u-1", "allowed": false})).await, json!({"failurePolicy": "Ignore"}))
            .await;
    assert_eq!(bare.message, "admission webhook \"a.example.com\" denied the request without explanation");
    assert_eq!((bare.code, bare.reason), (400, ""));

    let status = json!({"message": "no way", "code": 422, "reason": "Invalid",
        "details": {"causes": [{"message": "m", "field": "f", "reason": "r"}]}});
    let full =
        refusal(answering(json!({"uid": "u-1", "allowed": false, "status": status})).await, json!({})).await;
    assert_eq!(full.message, "admission webhook \"a.example.com\" denied the request: no way");
    assert_eq!((full.code, full.reason, full.causes[0].field.as_str()), (422, "Invalid", "f"));
}

#[tokio::test]
async fn failing_webhook_refuses_the_write_unless_failures_are_ignored() {
    let authority = STANDARD.encode(Authority::new("x").unwrap().certificate());
    let served = answering(json!({"uid": "u-1", "allowed": true})).await;
    let url = served["url"].as_str().unwrap().to_owned();
    let service = json!({"namespace": "team", "name": "hook", "port": 8443, "path": "p"});
    let post = |uri: &str| format!("failed to call webhook: Post \"{uri}?timeout=2s\": ");
    for (client, expected) in [
        (webhook(500, "boom".into()).await, "failed to call webhook: an error on the server (\"unknown\") has prevented the request from succeeding".to_owned()),
        (webhook(404, "nope".into()).await, "failed to call webhook: the server could not find the requested resource".to_owned()),
        (webhook(200, "{}".into()).await, "received invalid webhook response: webhook response was absent".to_owned()),
        (
            answering(json!({"uid": "other", "allowed": true})).await,
            "received invalid webhook response: expected response.uid=\"u-1\", got \"other\"".to_owned(),
        ),
        (
            answering(json!({"uid": "u-1", "allowed": true, "patch": "W10="})).await,
            "received invalid webhook response: validating webhook may not return response.patch".to_owned(),
        ),
        (
            json!({"url": url, "caBundle": authority}),
            post(&url) + "tls: failed to verify certificate: x509: certificate signed by unknown authority",
        ),
        (json!({"url": url}), post(&url) + "tls: failed to verify certificate: x509: certificate signed by unknown authority"),
        (
            json!({"url": "https://127.0.0.1:1/x", "caBundle": authority}),
            post("https://127.0.0.1:1/x") + "dial tcp 127.0.0.1:1: connect: connection refused",
        ),
        (json!({"service": service}), post("https://hook.team.svc:8443/p") + "service \"hook\" not found"),
    ] {
        let refused = refusal(client.clone(), json!({})).await;
        let text = format!("failed calling webhook \"a.example.com\": {expected}");
        assert_eq!(refused.message, format!("Internal error occurred: {text}"));
        assert_eq!((refused.code, refused.reason, &refused.causes[0].message), (500, "InternalError", &text));
        let optional = configuration(&client, &json!({"failurePolicy": "Ignore"}));
        assert!(ask(&[optional], &review(), &|_, _, _| None).await.unwrap().is_empty());
    }
}

#[tokio::test]
async fn slow_webhook_times_out() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}/x", listener.local_addr().unwrap());
    let refused = refusal(json!({"url": url}), json!({"timeoutSeconds": 1})).await;
    assert!(
        refused.message.ends_with(&format!("Post \"{url}?timeout=1s\": context deadline exceeded")),
        "{refused}"
    );
}

#[tokio::test]
async fn webhook_service_is_resolved_and_receives_the_review() {
    let authority = Authority::new("hooks").unwrap();
    let identity = authority.server(&["hook.team.svc"]).unwrap();
    let (sender, mut received) = tokio::sync::mpsc::unbounded_channel();
    let address = serve(&identity, None, move |parts, sent| {
        let _ = sender.send((
            parts.uri.path_and_query().unwrap().to_string(),
            serde_json::from_slice::<Value>(&sent).unwrap(),
        ));
        Response::new(body(json!({"response": {"uid": "u-1", "allowed": true}}).to_string()))
    })
    .await;
    let service = json!({"namespace": "team", "name": "hook", "port": 443, "path": "/p"});
    let client = json!({"service": service, "caBundle": STANDARD.encode(authority.certificate())});
    let resolve = |namespace: &str, name: &str, port: u16| {
        ((namespace, name, port) == ("team", "hook", 443)).then_some(address)
    };
    ask(&[configuration(&client, &json!({}))], &AdmissionRequest { dry_run: true, ..review() }, &resolve)
        .await
        .unwrap();
    let (path, seen) = received.recv().await.unwrap();
    assert_eq!(path, "/p?timeout=2s");
    let kind = json!({"group": "", "version": "v1", "kind": "ConfigMap"});
    let resource = json!({"group": "", "version": "v1", "resource": "configmaps"});
    assert_eq!(
        seen,
        json!({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": {
            "uid": "u-1", "kind": kind, "resource": resource, "requestKind": kind, "requestResource": resource,
            "name": "a", "namespace": "team", "operation": "CREATE",
            "userInfo": {"username": "kubernetes-admin", "groups": ["system:masters", "system:authenticated"]},
            "object": {"metadata": {"name": "a"}}, "oldObject": null, "dryRun": true,
            "options": {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1", "dryRun": ["All"]}}})
    );
}

#[tokio::test]
async fn webhook_connections_are_reused() {
    let authority = Authority::new("hooks").unwrap();
    let identity = authority.server(&["127.0.0.1"]).unwrap();
    let count = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&count);
    let address = serve(&identity, None, move |_, _| {
        counter.fetch_add(1, Ordering::Relaxed);
        Response::new(body(json!({"response": {"uid": "u-1", "allowed": true}}).to_string()))
    })
    .await;
    let url = format!("https://{address}/");
    let all = [configuration(
        &json!({"url": url, "caBundle": STANDARD.encode(authority.certificate())}),
        &json!({}),
    )];
    let webhooks = Webhooks::default();
    for _ in 0..3 {
        tokio::time::timeout(Duration::from_secs(5), webhooks.ask(&all, &review(), &|_, _, _| None))
            .await
            .unwrap()
            .unwrap();
    }
    assert_eq!(count.load(Ordering::Relaxed), 3);
    assert_eq!(webhooks.peers.lock().unwrap().len(), 1);
}
