//! Between the text that is stored and the JSON that is worked on.

use bytes::Bytes;
use serde_json::{Map, Value};

use crate::catalog::Served;
use crate::store::{Object, Revision};

/// The beginning of every stored object, which items of lists of built-in kinds leave out.
pub(crate) fn prefix(api_version: &str, kind: &str) -> String {
    format!("{{\"kind\":{},\"apiVersion\":{},", Value::from(kind), Value::from(api_version))
}

/// Makes an object ready to be stored: with its revision, kind and version first.
pub(crate) fn pack(served: &Served, value: &mut Value, revision: Revision) -> Object {
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
    // What was parsed can be written, and writing to memory does not fail.
    let rest = serde_json::to_vec(&object).unwrap_or_default();
    text.extend_from_slice(rest.get(1..).unwrap_or_default());
    let packed = Value::Object(object);
    let made = Object {
        text: Bytes::from(text),
        revision,
        uid: string(&packed, &["metadata", "uid"]).into(),
        labels: labels(&packed),
        fields: served.selected_fields(&packed),
        owners: owners(&packed),
        going: !string(&packed, &["metadata", "deletionTimestamp"]).is_empty(),
    };
    *value = packed;
    made
}

/// The JSON of a stored object.
pub(crate) fn unpack(object: &Object) -> Value {
    serde_json::from_slice(&object.text).unwrap_or_default()
}

/// The text at a path, or nothing.
pub(crate) fn string<'a>(value: &'a Value, path: &[&str]) -> &'a str {
    path.iter().try_fold(value, |at, step| at.get(step)).and_then(Value::as_str).unwrap_or_default()
}

/// Puts a value at a path, making objects on the way where there are none.
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
