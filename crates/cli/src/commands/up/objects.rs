//! Creates the objects of manifests.

use std::time::Duration;

use api::scale::group_of;
use api::yaml::Document;
use cluster::discovery::Discovery;
use cluster::request::{self, Request};
use http::Method;
use kube::Client;
use serde_json::Value;

use crate::failure::{BoxError, Failure};

/// Creates each object except Scenarios.
pub(super) async fn create(client: &Client, documents: &[Document]) -> Result<(), Failure> {
    for document in documents {
        let object: Value = document.decode_lenient()?;
        if text(&object, "kind") == "Scenario" {
            continue;
        }
        create_one(client, &object).await.map_err(|error| document.problem("kind", error.to_string()))?;
    }
    Ok(())
}

/// Creates one object of any kind.
pub(super) async fn create_one(client: &Client, object: &Value) -> Result<(), BoxError> {
    let (api_version, kind) = (text(object, "apiVersion"), text(object, "kind"));
    let group = group_of(api_version).map_err(|error| error.to_string())?;
    let known = Discovery::new(client.clone()).mappings(group, kind).await;
    let known = known.map_err(|error| error.to_string())?;
    let Some(resource) = known.first() else {
        return Err(format!("the embedded cluster does not know {kind} of {api_version}").into());
    };
    let base = if api_version.contains('/') { "/apis" } else { "/api" };
    let namespace = object.pointer("/metadata/namespace").and_then(Value::as_str).unwrap_or("default");
    let scope = if resource.namespaced { format!("/namespaces/{namespace}") } else { String::new() };
    let request = Request {
        method: Method::POST,
        uri: format!("{base}/{api_version}{scope}/{}", resource.plural),
        resource: resource.plural.clone(),
        name: String::new(),
        body: Some(("application/json", object.to_string().into_bytes())),
        deadline: Duration::from_secs(30),
    };
    request::send(client, request).await?;
    Ok(())
}

fn text<'a>(object: &'a Value, field: &str) -> &'a str {
    object.get(field).and_then(Value::as_str).unwrap_or_default()
}
