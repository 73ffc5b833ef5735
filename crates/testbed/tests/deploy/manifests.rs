//! Manifests and how they are applied.

use std::path::{Path, PathBuf};

use http::{Method, Request};
use http_body_util::BodyExt;
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use testbed::twin::{Failure, LOCAL};

use crate::account::really;
use crate::ground::{Ground, on_both};

/// What localkube does not know.
const UNKNOWN: [&str; 2] = ["rbac.authorization.k8s.io/v1", "policy/v1"];

pub(crate) fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The objects of a folder, in the order in which kubectl applies them.
pub(crate) fn folder(name: &str) -> Vec<Value> {
    let entries = std::fs::read_dir(repository().join(name)).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> =
        entries.filter(|path| path.extension().is_some_and(|end| end == "yaml")).collect();
    files.sort();
    files
        .iter()
        .flat_map(|file| objects(&file.display().to_string(), &std::fs::read_to_string(file).unwrap()))
        .collect()
}

/// The objects of a text.
pub(crate) fn objects(name: &str, text: &str) -> Vec<Value> {
    let documents = api::text::parse(&api::text::Source::new(name, text));
    documents
        .unwrap_or_else(|problem| panic!("{}", problem.render(false)))
        .iter()
        .map(|d| d.root.to_json())
        .collect()
}

/// The path of an object.
pub(crate) fn path(object: &Value) -> String {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let version = text("/apiVersion");
    let root = if version.contains('/') { "/apis" } else { "/api" };
    let place = match text("/metadata/namespace") {
        "" => String::new(),
        namespace => format!("/namespaces/{namespace}"),
    };
    format!("{root}/{version}{place}/{}s/{}", text("/kind").to_lowercase(), text("/metadata/name"))
}

/// Sends a request; code and answer.
pub(crate) async fn ask(client: &Client, method: Method, uri: &str, body: Option<&Value>) -> (u16, Value) {
    let content = if method == Method::PATCH { "application/apply-patch+yaml" } else { "application/json" };
    let body = body.map(|body| body.to_string().into_bytes()).unwrap_or_default();
    let request = Request::builder().method(method).uri(uri).header("content-type", content);
    let answer = client.send(request.body(Body::from(body)).unwrap()).await.unwrap();
    let code = answer.status().as_u16();
    let text = answer.into_body().collect().await.unwrap().to_bytes();
    let said = serde_json::from_slice(&text).unwrap_or_else(|_| json!(String::from_utf8_lossy(&text)));
    (code, said)
}

impl Ground {
    /// Applies objects as `kubectl apply --server-side` does, strictly; those whose kind `really` does not name, only to
    /// see what the server would say.
    pub(crate) async fn apply(&self, objects: &[Value], really: impl Fn(&str) -> bool) {
        for object in objects {
            if self.cluster == LOCAL && UNKNOWN.iter().any(|unknown| object["apiVersion"] == *unknown) {
                continue;
            }
            let dry = if really(object["kind"].as_str().unwrap()) { "" } else { "&dryRun=All" };
            let uri = format!("{}?fieldManager=deploy&force=true&fieldValidation=Strict{dry}", path(object));
            let (code, said) = ask(&self.client, Method::PATCH, &uri, Some(object)).await;
            assert!(code == 200 || code == 201, "{uri} on {}: {code} {said}", self.cluster);
        }
    }

    /// Applies the definition of Autoscaler and waits until it is served.
    pub(crate) async fn define(&self) {
        self.apply(&folder("deploy/crds"), |_| true).await;
        self.until("Autoscalers", async || {
            let (code, said) =
                ask(&self.client, Method::GET, "/apis/plimsoll.dev/v1alpha1/autoscalers", None).await;
            if code == 200 { Ok(()) } else { Err(said) }
        })
        .await;
    }

    /// A token of a service account.
    pub(crate) async fn token(&self, namespace: &str, account: &str) -> String {
        let uri = format!("/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token");
        let body = json!({
            "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}
        });
        let (code, said) = ask(&self.client, Method::POST, &uri, Some(&body)).await;
        assert_eq!(code, 201, "{said}");
        said["status"]["token"].as_str().unwrap().to_owned()
    }
}

/// Whether whoever holds the client may do something; `resource` is `group/resource/subresource`.
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
    let (code, said) = ask(client, Method::POST, uri, Some(&body)).await;
    assert_eq!(code, 201, "{said}");
    said["status"]["allowed"].as_bool().unwrap()
}

#[test]
fn pods_may_run_where_they_are_to_run() -> Result<(), Failure> {
    on_both(async |ground| {
        for all in [folder("deploy"), folder("deploy/shadow")] {
            ground.apply(&all, really).await;
            let deployment = all.iter().find(|object| object["kind"] == "Deployment").unwrap();
            let mut pod = deployment["spec"]["template"].clone();
            pod["metadata"]["name"] = "trial".into();
            let namespace = deployment["metadata"]["namespace"].as_str().unwrap();
            let uri = format!("/api/v1/namespaces/{namespace}/pods?dryRun=All&fieldValidation=Strict");
            // The namespace enforces the standard "restricted".
            let (code, said) = ask(&ground.client, Method::POST, &uri, Some(&pod)).await;
            assert_eq!(code, 201, "{said}");
        }
    })
}
