//! Manifests of the repository, applied.

use std::path::{Path, PathBuf};

use http::Method;
use serde_json::Value;
use testbed::twin::{Cluster, LOCAL};

use super::send;

/// The objects of a folder of the repository, in the order in which kubectl applies them.
pub(crate) fn folder(name: &str) -> Vec<Value> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name);
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> =
        entries.filter(|path| path.extension().is_some_and(|end| end == "yaml")).collect();
    files.sort();
    let objects = |file: &PathBuf| -> Vec<Value> {
        let (name, text) = (file.display().to_string(), std::fs::read_to_string(file).unwrap());
        let documents = api::text::parse(&api::text::Source::new(name.as_str(), text.as_str()));
        let documents = documents.unwrap_or_else(|problem| panic!("{}", problem.render(false)));
        documents.iter().map(|document| document.root.to_json()).collect()
    };
    files.iter().flat_map(objects).collect()
}

/// The path of an object.
fn path(object: &Value) -> String {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let version = text("/apiVersion");
    let root = if version.contains('/') { "/apis" } else { "/api" };
    let place = match text("/metadata/namespace") {
        "" => String::new(),
        namespace => format!("/namespaces/{namespace}"),
    };
    format!("{root}/{version}{place}/{}s/{}", text("/kind").to_lowercase(), text("/metadata/name"))
}

/// Applies objects strictly, as `kubectl apply --server-side` does; localkube knows no roles.
pub(crate) async fn apply(cluster: &Cluster, objects: &[Value]) {
    for object in objects {
        let version = object["apiVersion"].as_str().unwrap();
        if cluster.name == LOCAL && (version.starts_with("rbac.") || version.starts_with("policy/")) {
            continue;
        }
        let uri = format!("{}?fieldManager=deploy&force=true&fieldValidation=Strict", path(object));
        let (code, said) = send(&cluster.client, Method::PATCH, &uri, Some(object)).await;
        assert!(matches!(code, 200 | 201), "{uri} on {}: {code} {said}", cluster.name);
    }
}
