//! create.

use api::field::FieldError;
use api::meta::ObjectMeta;
use api::meta::validation;
use serde_json::{Map, Value, json};

use super::update::How;
use super::{Body, Call, Outcome, decode};
use crate::admit;
use crate::catalog::Origin;
use crate::fields;
use crate::housekeeping::namespaces;
use crate::object::{set, string};
use crate::random;
use crate::status::Status;
use crate::store::Key;

/// How many generated names are tried.
const NAMES: usize = 8;
/// How much of a prefix is used, so that names stay labels.
const LONGEST_PREFIX: usize = 58;

/// Stores what a client sent as a new object.
pub(crate) async fn create(call: &Call, value: Value) -> Result<Outcome, Status> {
    new(call, value, How::Whole).await
}

/// Stores a new object that was applied.
pub(crate) async fn applied(call: &Call, mut value: Value) -> Result<Outcome, Status> {
    if let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.shift_remove("resourceVersion");
    }
    new(call, value, How::Applied).await
}

/// Stores a new object, under another name if a generated one is taken.
async fn new(call: &Call, mut value: Value, how: How) -> Result<Outcome, Status> {
    decode::shape(call, &mut value)?;
    let mut key = identify(call, &mut value)?;
    admit::namespace(call, &key)?;
    let prefix = string(&value, &["metadata", "generateName"]).to_owned();
    let generated = key.name.is_empty() && !prefix.is_empty();
    for _ in 0..if generated { NAMES } else { 1 } {
        let mut value = value.clone();
        if generated {
            // A name that is too long is cut where the real server cuts it.
            let head: String = prefix.chars().take(LONGEST_PREFIX).collect();
            key.name = format!("{head}{}", random::suffix());
            set(&mut value, &["metadata", "name"], json!(key.name));
        }
        prepare(call, &mut value, how)?;
        admit::account(call, &key, &value)?;
        let faults = faults(call, &value);
        if !faults.is_empty() {
            return Err(call.invalid(&key.name, &faults));
        }
        admit::webhooks(call, "CREATE", Some(&value), None).await?;
        if call.dry_run() {
            if call.cluster.get(&call.served, &key).is_some() {
                return Err(taken(call, &key, &prefix));
            }
            return Ok(Outcome { code: 201, body: Body::Value(value) });
        }
        let mut kept = call.kept(value);
        if let Ok(stored) = call.cluster.put_new(&call.served, key.clone(), &mut kept) {
            if call.served.row().is_some_and(|row| row.kind == "Namespace") {
                Box::pin(namespaces::furnish(&call.cluster, &key.name)).await;
            }
            return Ok(Outcome::stored(201, stored));
        }
    }
    Err(taken(call, &key, &prefix))
}

/// The error about a name that is taken.
fn taken(call: &Call, key: &Key, prefix: &str) -> Status {
    let about = call.served.about(&key.name);
    if !prefix.is_empty() {
        Status::no_name_left(about)
    } else if call.cluster.get(&call.served, key).is_some_and(|stored| stored.going) {
        Status::being_deleted(about)
    } else {
        Status::already_exists(about)
    }
}

/// Which object it will be; its namespace must be that of the path.
pub(crate) fn identify(call: &Call, value: &mut Value) -> Result<Key, Status> {
    let map = value.as_object_mut().ok_or_else(|| Status::bad_request("the body is not an object"))?;
    let metadata = map.entry("metadata").or_insert_with(|| Value::Object(Map::new()));
    if !metadata.is_object() {
        *metadata = json!({});
    }
    let given = string(metadata, &["namespace"]).to_owned();
    let name = string(metadata, &["name"]).to_owned();
    let namespace = call.namespace.clone().unwrap_or_default();
    if call.served.namespaced && !given.is_empty() && given != namespace {
        let text = "the namespace of the provided object does not match the namespace sent on the request";
        return Err(Status::bad_request(text));
    }
    if let Some(metadata) = metadata.as_object_mut() {
        if call.served.namespaced {
            metadata.insert("namespace".to_owned(), json!(namespace));
        } else {
            metadata.shift_remove("namespace");
        }
    }
    Ok(Key::new(&namespace, &name))
}

/// What only the server sets.
fn prepare(call: &Call, value: &mut Value, how: How) -> Result<(), Status> {
    if !string(value, &["metadata", "resourceVersion"]).is_empty() {
        return Err(Status::internal("resourceVersion should not be set on objects to be created"));
    }
    if call.served.has_status(&call.version)
        && !call.served.row().is_some_and(|row| row.born_with_status)
        && let Some(map) = value.as_object_mut()
    {
        map.shift_remove("status");
    }
    if let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut) {
        for field in ["deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"] {
            metadata.shift_remove(field);
        }
        metadata.insert("uid".to_owned(), json!(random::uid()));
        metadata.insert("creationTimestamp".to_owned(), json!(api::instant::format(call.now)));
        if call.served.generation {
            metadata.insert("generation".to_owned(), json!(1));
        }
    }
    // Who sent what is noted before the server adds what is its own.
    if how != How::Applied
        && let Some(schema) = call.served.schema(&call.version)
    {
        call.writing(|who| fields::record_update(&schema, None, value, who));
    }
    if let Origin::BuiltIn(kind) = &call.served.origin {
        (kind.rules.create)(value);
    }
    Ok(())
}

/// What is wrong with a new object.
pub(crate) fn faults(call: &Call, value: &Value) -> Vec<FieldError> {
    let meta = meta(value);
    let name = match &call.served.origin {
        Origin::BuiltIn(kind) => kind.rules.name,
        Origin::Custom(_) => api::names::subdomain_faults,
    };
    let mut faults = validation::validate_create(&meta, name);
    if !call.served.namespaced {
        faults.retain(|fault| fault.field != "metadata.namespace");
    }
    if let Origin::Custom(_) = &call.served.origin {
        faults.retain(|fault| !validation::is_of_built_in_kinds(fault));
    }
    faults.extend(match &call.served.origin {
        Origin::BuiltIn(kind) => (kind.rules.validate)(value),
        Origin::Custom(definition) => definition.validate(&call.version, value, None),
    });
    faults
}

/// The metadata of an object, as far as it can be read.
pub(crate) fn meta(value: &Value) -> ObjectMeta {
    let metadata = value.get("metadata").cloned().unwrap_or_default();
    serde_json::from_value(metadata).unwrap_or_default()
}
