//! Conversion between stored JSON text and parsed JSON.

use bytes::Bytes;
use serde_json::{Map, Value};

use crate::catalog::ServedResource;
use crate::store::{Revision, StoredObject};

/// The prefix of every stored object, which list items of built-in kinds omit.
pub(crate) fn prefix(api_version: &str, kind: &str) -> String {
    format!("{{\"kind\":{},\"apiVersion\":{},", Value::from(kind), Value::from(api_version))
}

/// Serializes an object for the store, with kind, version and revision.
pub(crate) fn pack(served: &ServedResource, value: &mut Value, revision: Revision) -> StoredObject {
    let api_version = match value.get("apiVersion").and_then(Value::as_str) {
        Some(given) => given.to_owned(),
        None => served.api_version(served.versions.first().map_or("", String::as_str)),
    };
    let mut text = prefix(&api_version, &served.kind).into_bytes();
    let mut object = match value.take() {
        Value::Object(map) => map,
        _ => Map::new(),
    };
    object.shift_remove("kind");
    object.shift_remove("apiVersion");
    if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
        metadata.insert("resourceVersion".to_owned(), Value::from(revision.to_string()));
    }
    // Parsed JSON can be serialized, and writing to memory does not fail.
    let rest = serde_json::to_vec(&object).unwrap_or_default();
    text.extend_from_slice(rest.get(1..).unwrap_or_default());
    let packed = Value::Object(object);
    let made = StoredObject {
        text: Bytes::from(text),
        revision,
        uid: string(&packed, &["metadata", "uid"]).into(),
        labels: labels(&packed),
        fields: served.selected_fields(&packed),
        owners: owners(&packed),
        deleting: !string(&packed, &["metadata", "deletionTimestamp"]).is_empty(),
    };
    *value = packed;
    made
}

/// The JSON of a stored object.
pub(crate) fn unpack(object: &StoredObject) -> Value {
    serde_json::from_slice(&object.text).unwrap_or_default()
}

/// The string at a path, or an empty one.
pub(crate) fn string<'a>(value: &'a Value, path: &[&str]) -> &'a str {
    path.iter().try_fold(value, |at, step| at.get(step)).and_then(Value::as_str).unwrap_or_default()
}

/// Sets the value at a path; creates missing objects on the way.
pub(crate) fn set(value: &mut Value, path: &[&str], new: Value) {
    let Some((first, rest)) = path.split_first() else {
        *value = new;
        return;
    };
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    if let Some(map) = value.as_object_mut() {
        match map.get_mut(*first) {
            Some(inner) => set(inner, rest, new),
            None => {
                let mut inner = Value::Null;
                set(&mut inner, rest, new);
                map.insert((*first).to_owned(), inner);
            }
        }
    }
}

fn labels(value: &Value) -> Box<[(Box<str>, Box<str>)]> {
    let found = value.get("metadata").and_then(|metadata| metadata.get("labels")).and_then(Value::as_object);
    let pair = |(key, value): (&String, &Value)| Some((key.as_str().into(), value.as_str()?.into()));
    found.into_iter().flatten().filter_map(pair).collect()
}

fn owners(value: &Value) -> Box<[Box<str>]> {
    let found = value.get("metadata").and_then(|metadata| metadata.get("ownerReferences"));
    let uid = |owner: &Value| Some(owner.get("uid")?.as_str()?.into());
    found.and_then(Value::as_array).into_iter().flatten().filter_map(uid).collect()
}
