//! Code that several test programs share. Each includes it by its path, and uses a part of it.
//!
//! ```text
//! environments  the environments that tests share on each cluster, and running a test on both clusters
//! manifests     applies objects of the repository
//! kubectl       kubectl in a namespace
//! outage_watch  for how long an HPA could not read its metrics
//! program       the plimsoll binary
//! replica_watch records every replica count of a deployment
//! roles         compares what roles grant with the requests that were made
//! why           `plimsoll why` on a cluster
//! ```

pub(crate) mod environments;
pub(crate) mod kubectl;
pub(crate) mod manifests;
pub(crate) mod outage_watch;
pub(crate) mod program;
pub(crate) mod replica_watch;
pub(crate) mod roles;
pub(crate) mod why;

use http::Method;
use kube::Client;
use serde_json::json;
pub(crate) use testbed::harness::send;

/// A token of a service account.
pub(crate) async fn token(client: &Client, namespace: &str, account: &str) -> String {
    let path = format!("/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token");
    let request = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}});
    let (code, response) = send(client, Method::POST, &path, Some(&request)).await;
    assert_eq!(code, 201, "{response}");
    response["status"]["token"].as_str().unwrap().to_owned()
}
