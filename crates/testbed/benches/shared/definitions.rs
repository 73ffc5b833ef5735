//! Our CustomResourceDefinitions of KEDA's resources.

use std::path::Path;

use api::yaml::{SourceFile, parse};
use http::Method;
use kube::Client;
use serde_json::Value;
use testbed::harness::write;

/// Creates the CustomResourceDefinitions of KEDA's resources.
pub(crate) async fn define_keda_resources(client: &Client) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/crds/keda");
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let source = SourceFile::new(path.to_string_lossy(), std::fs::read_to_string(&path).unwrap());
        for document in parse(&source).unwrap() {
            let definition: Value = document.decode_lenient().unwrap();
            let all = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
            write(client, Method::POST, all, &definition).await;
        }
    }
}
