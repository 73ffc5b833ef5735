//! Applies manifests to a cluster.

use http::Method;
use kube::Client;
use serde_json::{Value, json};
use testbed::harness::Failure;

use crate::env::{ControllerEnv, on_both};
use crate::shared::manifests::{apply, folder, is_quiet};
use crate::shared::{self, send};

impl ControllerEnv {
    /// Applies objects. Those whose kind is not in `really` are applied as dry runs.
    pub(crate) async fn apply(&self, objects: &[Value], really: impl Fn(&str) -> bool) {
        apply(&self.client, self.cluster, objects, really).await;
    }

    /// Applies the definition of Autoscaler and waits until it is served.
    pub(crate) async fn define(&self) {
        self.apply(&folder("deploy/crds"), |_| true).await;
        self.until("Autoscalers", async || {
            let (code, response) =
                send(&self.client, Method::GET, "/apis/plimsoll.dev/v1alpha1/autoscalers", None).await;
            if code == 200 { Ok(()) } else { Err(response) }
        })
        .await;
    }

    /// A token of a service account.
    pub(crate) async fn token(&self, namespace: &str, account: &str) -> String {
        shared::token(&self.client, namespace, account).await
    }
}

/// Whether the client's user has a permission; `resource` is `group/resource/subresource`.
pub(crate) async fn may(client: &Client, verb: &str, resource: &str, namespace: &str) -> bool {
    let mut parts = resource.splitn(3, '/').map(str::to_owned);
    let (group, name, sub) = (parts.next(), parts.next(), parts.next());
    let body = json!({
        "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": {
            "verb": verb, "group": group, "resource": name, "subresource": sub, "namespace": namespace
        }}
    });
    let uri = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    let (code, response) = send(client, Method::POST, uri, Some(&body)).await;
    assert_eq!(code, 201, "{response}");
    response["status"]["allowed"].as_bool().unwrap()
}

#[test]
fn pods_meet_the_restricted_policy() -> Result<(), Failure> {
    on_both(async |env| {
        for all in [folder("deploy"), folder("deploy/shadow")] {
            env.apply(&all, is_quiet).await;
            let deployment = all.iter().find(|object| object["kind"] == "Deployment").unwrap();
            let mut pod = deployment["spec"]["template"].clone();
            pod["metadata"]["name"] = "trial".into();
            let namespace = deployment["metadata"]["namespace"].as_str().unwrap();
            let uri = format!("/api/v1/namespaces/{namespace}/pods?dryRun=All&fieldValidation=Strict");
            // The namespace enforces the standard "restricted".
            let (code, response) = send(&env.client, Method::POST, &uri, Some(&pod)).await;
            assert_eq!(code, 201, "{response}");
        }
    })
}

#[test]
fn network_policies_are_valid() -> Result<(), Failure> {
    on_both(async |env| {
        env.apply(&folder("deploy"), is_quiet).await;
        env.apply(&folder("deploy/networkpolicies"), |_| false).await;
    })
}
