//! What several test programs stand on. Each takes it in by its path, and uses what it needs of it.
//!
//! ```text
//! sites      what tests share on each of the two clusters, and tests on both of them at once
//! manifests  objects of the repository, applied
//! kubectl    the real one, in a namespace
//! program    our binary
//! roles      what roles grant, against the requests that were made
//! ```

pub(crate) mod environments;
pub(crate) mod kubectl;
pub(crate) mod manifests;
pub(crate) mod program;
pub(crate) mod roles;

use std::time::Duration;

use http::{Method, Request};
use http_body_util::BodyExt as _;
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};

/// How long to wait for something before giving up: busy machines are no reason to fail.
pub(crate) const PATIENCE: Duration = Duration::from_mins(3);

/// Sends a request; code and answer. A patch with a field manager is an apply, another one a merge.
pub(crate) async fn send(client: &Client, method: Method, path: &str, body: Option<&Value>) -> (u16, Value) {
    let content = match method {
        Method::PATCH if path.contains("fieldManager=") => "application/apply-patch+yaml",
        Method::PATCH => "application/merge-patch+json",
        _ => "application/json",
    };
    let body = body.map(|body| body.to_string().into_bytes()).unwrap_or_default();
    let request = Request::builder().method(method).uri(path).header("content-type", content);
    let answer = client.send(request.body(Body::from(body)).unwrap()).await.unwrap();
    let code = answer.status().as_u16();
    let text = answer.into_body().collect().await.unwrap().to_bytes();
    (code, serde_json::from_slice(&text).unwrap_or_else(|_| json!(String::from_utf8_lossy(&text))))
}

/// Waits until `look` is content; what it saw last is in the message if it never is.
pub(crate) async fn until<T: std::fmt::Debug>(what: &str, mut look: impl AsyncFnMut() -> Result<(), T>) {
    let deadline = tokio::time::Instant::now() + PATIENCE;
    loop {
        match look().await {
            Ok(()) => return,
            Err(last) if tokio::time::Instant::now() > deadline => {
                panic!("{what} did not happen; last seen: {last:#?}")
            }
            Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
        }
    }
}

/// A token of a service account.
pub(crate) async fn token(client: &Client, namespace: &str, account: &str) -> String {
    let path = format!("/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token");
    let request = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}});
    let (code, said) = send(client, Method::POST, &path, Some(&request)).await;
    assert_eq!(code, 201, "{said}");
    said["status"]["token"].as_str().unwrap().to_owned()
}
