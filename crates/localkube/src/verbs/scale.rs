//! The scale subresource.

use api::meta::validation;
use serde_json::{Map, Value, json};

use super::{ApiCall, CallBody, CallOutcome, WriteMode, cause, create, decode, update};
use crate::catalog::ResourceOrigin;
use crate::custom::ScalePaths;
use crate::fields;
use crate::object::{set, string};
use crate::patch::{self, PatchKind};
use crate::schema;
use crate::status::{About, Status};

/// Gets the scale of an object.
pub(crate) fn get(call: &ApiCall) -> Result<CallOutcome, Status> {
    let (paths, key) = (paths(call)?, call.key()?);
    let stored = call.cluster.get(&call.served, &key).ok_or_else(|| call.not_found(&key.name))?;
    Ok(CallOutcome::other(200, scale_of(call, &paths, &call.shown(&stored))))
}

/// Sets the replicas of an object from a `Scale`.
pub(crate) async fn put(call: &ApiCall, scale: Value) -> Result<CallOutcome, Status> {
    rescale(call, |_| Ok(scale.clone())).await
}

/// Sets the replicas of an object from a patch of its `Scale`.
pub(crate) async fn patch(call: &ApiCall, content_type: &str, body: &[u8]) -> Result<CallOutcome, Status> {
    let media = content_type.split(';').next().unwrap_or_default().trim();
    if media == super::patch::APPLY {
        return apply(call, super::patch::configuration(call, body)?).await;
    }
    let kind = PatchKind::from_content_type(content_type).ok_or_else(|| Status::unsupported_patch(false))?;
    let change = decode::json(call, "", body)?;
    let schema = schema::built_in("autoscaling", "v1", "Scale");
    rescale(call, |scale| {
        let patched = patch::apply(kind, schema.as_deref(), scale, &change)?;
        match &schema {
            Some(schema) => patch::check(kind, schema, &patched, &change).map(|()| patched),
            None => Ok(patched),
        }
    })
    .await
}

/// Applies a `Scale`: the manager owns the replicas of the object.
async fn apply(call: &ApiCall, scale: Value) -> Result<CallOutcome, Status> {
    let (paths, key) = (paths(call)?, call.key()?);
    check(call, &scale)?;
    let schema = call.served.schema(&call.version).ok_or_else(Status::no_path)?;
    let mut config = json!({
        "apiVersion": call.served.api_version(&call.version),
        "kind": call.served.kind,
        "metadata": {"name": key.name},
    });
    if let Some(replicas) = scale.pointer("/spec/replicas") {
        set(&mut config, &steps(&paths.spec), replicas.clone());
    }
    let force = call.query.is_set("force");
    let outcome = update::change(call, &key, WriteMode::Applied, |old| {
        call.writing(|who| fields::apply(&schema, Some(old), &config, who, force))
    });
    Ok(shown(call, &paths, outcome.await?))
}

async fn rescale(
    call: &ApiCall,
    make: impl Fn(&Value) -> Result<Value, Status>,
) -> Result<CallOutcome, Status> {
    let (paths, key) = (paths(call)?, call.key()?);
    let outcome = update::change(call, &key, WriteMode::Part, |old| {
        let scale = make(&scale_of(call, &paths, old))?;
        check(call, &scale)?;
        let replicas = scale.pointer("/spec/replicas").cloned().unwrap_or(json!(0));
        let mut new = old.clone();
        set(&mut new, &steps(&paths.spec), replicas);
        let revision = string(&scale, &["metadata", "resourceVersion"]);
        set(&mut new, &["metadata", "resourceVersion"], json!(revision));
        Ok(new)
    });
    Ok(shown(call, &paths, outcome.await?))
}

/// The scale of a changed object.
fn shown(call: &ApiCall, paths: &ScalePaths, outcome: CallOutcome) -> CallOutcome {
    let object = match outcome.body {
        CallBody::Stored(object) => call.shown(&object),
        CallBody::Value(value) | CallBody::Other(value) => value,
        CallBody::List(_) => Value::Null,
    };
    CallOutcome::other(200, scale_of(call, paths, &object))
}

/// Validates a `Scale`.
fn check(call: &ApiCall, scale: &Value) -> Result<(), Status> {
    let kind = string(scale, &["kind"]);
    if !kind.is_empty() && kind != "Scale" {
        return Err(Status::bad_request(format!(
            "{kind} in version \"v1\" cannot be handled as a Scale: no kind {kind:?} is registered for version \
             \"autoscaling/v1\" in scheme \"pkg/runtime/scheme.go:111\""
        )));
    }
    if let Some(schema) = schema::built_in("autoscaling", "v1", "Scale")
        && let Some(wrong) = schema::type_error(&schema, scale)
    {
        return Err(Status::bad_request(format!(
            "Scale in version \"v1\" cannot be handled as a Scale: {wrong}"
        )));
    }
    let name = string(scale, &["metadata", "name"]);
    let expected = call.name.as_deref().unwrap_or_default();
    if !name.is_empty() && name != expected {
        return Err(Status::bad_request(format!(
            "the name of the object ({name}) does not match the name on the URL ({expected})"
        )));
    }
    metadata_faults(call, scale, expected)?;
    let replicas = scale.pointer("/spec/replicas").and_then(Value::as_i64).unwrap_or_default();
    // Custom resources are validated as a whole.
    if replicas < 0 && call.served.row().is_some() {
        let detail = "must be greater than or equal to 0";
        let fault = api::field::FieldError::invalid("spec.replicas", replicas, detail);
        return Err(Status::invalid(About::new("autoscaling", "Scale", expected), vec![cause(&fault)]));
    }
    Ok(())
}

/// Validates the metadata of a `Scale` of a built-in kind, if the release does.
fn metadata_faults(call: &ApiCall, scale: &Value, name: &str) -> Result<(), Status> {
    let gates = call.cluster.gates();
    if call.served.row().is_none() || !gates.profile().validates_scale_metadata {
        return Ok(());
    }
    let mut meta = create::meta(scale);
    name.clone_into(&mut meta.name);
    meta.namespace = call.namespace.clone().unwrap_or_default();
    let faults = validation::validate_create(&meta, api::names::subdomain_faults, gates.profile());
    match faults.as_slice() {
        [] => Ok(()),
        some => {
            Err(Status::invalid(About::new("autoscaling", "Scale", name), some.iter().map(cause).collect()))
        }
    }
}

fn paths(call: &ApiCall) -> Result<ScalePaths, Status> {
    call.served.scale(&call.version).ok_or_else(Status::no_path)
}

fn scale_of(call: &ApiCall, paths: &ScalePaths, object: &Value) -> Value {
    let at = |path: &[String]| path.iter().try_fold(object, |at, step| at.get(step));
    let number = |path: &[String]| at(path).and_then(Value::as_i64).unwrap_or_default();
    let mut metadata = Map::new();
    for field in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
        if let Some(value) = object.get("metadata").and_then(|metadata| metadata.get(field)) {
            metadata.insert(field.to_owned(), value.clone());
        }
    }
    let mut spec = Map::new();
    match number(&paths.spec) {
        0 => None,
        replicas => spec.insert("replicas".to_owned(), json!(replicas)),
    };
    let mut status = json!({"replicas": number(&paths.status)});
    let selector =
        paths.selector.as_ref().and_then(|path| at(path)).map(|selector| selector_text(call, selector));
    if let Some(selector) = selector.filter(|text| !text.is_empty()) {
        set(&mut status, &["selector"], json!(selector));
    }
    json!({
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": metadata,
        "spec": spec,
        "status": status,
    })
}

/// The selector as text: custom resources store text, built-in kinds an object.
fn selector_text(call: &ApiCall, selector: &Value) -> String {
    if let Some(text) = selector.as_str() {
        return text.to_owned();
    }
    let read =
        || serde_json::from_value::<api::selector::LabelSelector>(selector.clone()).ok()?.to_selector().ok();
    match &call.served.origin {
        ResourceOrigin::BuiltIn(_) => read().map(|selector| selector.to_string()).unwrap_or_default(),
        ResourceOrigin::Custom(_) => String::new(),
    }
}

fn steps(path: &[String]) -> Vec<&str> {
    path.iter().map(String::as_str).collect()
}
