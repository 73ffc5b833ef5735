//! Requests, installation of the definitions, and waiting.

use std::path::{Path, PathBuf};

use http::{HeaderMap, Method};
use kube::Client;
use serde_json::Value;
pub(crate) use testbed::harness::until;
use testbed::harness::{TestNamespace, respond};

/// A response of the API server.
#[derive(Debug)]
pub(crate) struct ApiResponse {
    pub(crate) code: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Value,
}

impl ApiResponse {
    pub(crate) fn message(&self) -> &str {
        self.body["message"].as_str().unwrap_or_default()
    }

    /// Warnings that kubectl shows.
    pub(crate) fn warnings(&self) -> Vec<&str> {
        self.headers.get_all("warning").iter().map(|value| value.to_str().unwrap()).collect()
    }
}

pub(crate) fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Sends a request; a patch is a server-side apply.
pub(crate) async fn send_request(
    client: &Client,
    method: Method,
    uri: &str,
    body: Option<&Value>,
) -> ApiResponse {
    let response = respond(client, method, uri, body).await;
    let (code, headers) = (response.status().as_u16(), response.headers().clone());
    ApiResponse { code, headers, body: response.into_body() }
}

/// The path of the collection of a kind, in the namespace of a test or cluster-scoped.
pub(crate) fn place(ns: &TestNamespace, kind: &str) -> String {
    let group = if kind.ends_with("CloudEventSource") { "eventing.keda.sh" } else { "keda.sh" };
    let root = format!("/apis/{group}/v1alpha1");
    let plural = format!("{}s", kind.to_lowercase());
    if kind.starts_with("Cluster") {
        format!("{root}/{plural}")
    } else {
        format!("{root}/namespaces/{}/{plural}", ns.namespace)
    }
}

/// Applies KEDA's definitions as `kubectl apply --server-side` does, and waits until they are served.
pub(crate) async fn define(ns: &TestNamespace) {
    for entry in std::fs::read_dir(repository().join("deploy/crds/keda")).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        let source = api::yaml::SourceFile::new(path.display().to_string(), text);
        let definition = api::yaml::parse(&source).unwrap()[0].root.to_json();
        let name = definition["metadata"]["name"].as_str().unwrap();
        let uri = format!(
            "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}?fieldManager=test&force=true&fieldValidation=Strict"
        );
        let response_body = send_request(&ns.client, Method::PATCH, &uri, Some(&definition)).await;
        assert!(matches!(response_body.code, 200 | 201), "{name} on {}: {response_body:?}", ns.cluster);
        let kind = definition["spec"]["names"]["kind"].as_str().unwrap();
        let list = place(ns, kind);
        until(kind, async || {
            let response_body = send_request(&ns.client, Method::GET, &list, None).await;
            if response_body.code == 200 { Ok(()) } else { Err(response_body.message().to_owned()) }
        })
        .await;
    }
}
