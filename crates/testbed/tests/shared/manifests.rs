//! Reads and applies the manifests of this repository.

use std::path::{Path, PathBuf};

use http::Method;
use kube::Client;
use serde_json::Value;
use testbed::harness::LOCAL;

use super::send;

/// API groups that localkube does not serve.
const GROUPS_UNKNOWN_TO_LOCALKUBE: [&str; 3] =
    ["rbac.authorization.k8s.io/v1", "policy/v1", "networking.k8s.io/v1"];

pub(crate) fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The objects of a folder of the repository, in the order in which kubectl applies them.
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

/// The objects of a YAML text.
pub(crate) fn objects(name: &str, text: &str) -> Vec<Value> {
    let documents = api::yaml::parse(&api::yaml::SourceFile::new(name, text));
    let documents = documents.unwrap_or_else(|problem| panic!("{}", problem.render(false)));
    documents.iter().map(|document| document.root.to_json()).collect()
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
    let kind = match text("/kind").to_lowercase() {
        kind if kind.ends_with('s') => format!("{kind}es"),
        kind if kind.ends_with("cy") => format!("{}ies", kind.trim_end_matches('y')),
        kind => format!("{kind}s"),
    };
    format!("{root}/{version}{place}/{kind}/{}", text("/metadata/name"))
}

/// Whether objects of this kind neither start pods nor register APIs.
pub(crate) fn is_quiet(kind: &str) -> bool {
    kind == "Namespace" || kind == "ServiceAccount" || kind.contains("Role")
}

/// Applies objects strictly, as `kubectl apply --server-side` does. Objects whose kind is not in `really` are applied as dry runs, to check that
/// the server accepts them.
pub(crate) async fn apply(client: &Client, cluster: &str, objects: &[Value], really: impl Fn(&str) -> bool) {
    for object in objects {
        if cluster == LOCAL
            && GROUPS_UNKNOWN_TO_LOCALKUBE.iter().any(|unknown| object["apiVersion"] == *unknown)
        {
            continue;
        }
        let dry = if really(object["kind"].as_str().unwrap()) { "" } else { "&dryRun=All" };
        let uri = format!("{}?fieldManager=deploy&force=true&fieldValidation=Strict{dry}", path(object));
        let (code, response) = send(client, Method::PATCH, &uri, Some(object)).await;
        assert!(matches!(code, 200 | 201), "{uri} on {cluster}: {code} {response}");
    }
}
