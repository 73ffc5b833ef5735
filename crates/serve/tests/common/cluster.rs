//! A cluster with known permissions.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use kube::Client;
use kube::client::Body;
use localkube::Running;
use localkube::access::User;
use serde_json::{Value, json};
use tower::ServiceExt as _;

type Error = Box<dyn std::error::Error + Send + Sync>;

/// A client of a cluster in which the users of `denied` have no permissions; it counts the reviews.
pub fn reviewed(cluster: &Running, denied: &'static [&'static str], requested: &Arc<AtomicU32>) -> Client {
    let (api, requested) = (cluster.api(), Arc::clone(requested));
    let service = tower::service_fn(move |mut request: Request<Body>| {
        let (api, requested) = (api.clone(), Arc::clone(&requested));
        async move {
            request.extensions_mut().insert(User::admin());
            if request.uri().path().ends_with("/subjectaccessreviews") {
                requested.fetch_add(1, Ordering::Relaxed);
                let (parts, body) = request.into_parts();
                let body = body.collect().await?.to_bytes();
                let review: Value = serde_json::from_slice(&body)?;
                let user = review["spec"]["user"].as_str().unwrap_or_default();
                if denied.contains(&user) {
                    let no = json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
                        "metadata": {}, "spec": review["spec"], "status": {"allowed": false, "reason": "no rule"}});
                    let body =
                        Full::new(bytes::Bytes::from(no.to_string())).map_err(Error::from).boxed_unsync();
                    return Ok(Response::builder().status(201).body(body)?);
                }
                request = Request::from_parts(parts, Body::from(body.to_vec()));
            }
            let answer = api.oneshot(request).await.map_err(Error::from)?;
            Ok::<_, Error>(answer.map(|body| body.map_err(Error::from).boxed_unsync()))
        }
    });
    Client::new(service, "default")
}

/// Sends an object.
pub async fn put(client: &Client, method: &str, path: &str, body: &Value) -> Value {
    let kind = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
    let request = Request::builder().method(method).uri(path).header("content-type", kind);
    client.request(request.body(body.to_string().into_bytes()).unwrap()).await.unwrap()
}

/// The header of a new account with this name.
pub async fn token(client: &Client, account: &str) -> String {
    let accounts = "/api/v1/namespaces/default/serviceaccounts";
    put(client, "POST", accounts, &json!({"metadata": {"name": account}})).await;
    let made = put(client, "POST", &format!("{accounts}/{account}/token"), &json!({"spec": {}})).await;
    format!("Bearer {}", made["status"]["token"].as_str().unwrap())
}
