//! Which zero values JSON shows. On the wire, a field that is a plain value in Go is always present, and one that is
//! a pointer is present if it was set, both with the same zero; JSON omits the first and shows the second. No
//! document distinguishes them, so a server is used: an object in which every field is present and empty is written to its
//! etcd without validation, and read back through the API.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};

use anyhow::Context;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use localkube::kinds::{BuiltInKind, KINDS};
use serde_json::{Map, Value, json};
use testbed::Access;

use super::messages::{FieldShape, Messages};

/// The messages and fields whose zero was shown.
type EmptyValues = BTreeSet<(String, String)>;

/// The name and namespace of the objects.
const NAME: &str = "empty";

/// The groups of objects that the server itself uses. Empty objects of these groups would end the server.
const LIVE_GROUPS: &[&str] = &["apiextensions.k8s.io", "apiregistration.k8s.io"];

/// Fields whose zero is shown, in messages that cannot be observed: those of [`LIVE_GROUPS`], those that are no part
/// of any object, and one that the server removes from an empty object.
const SET_ON_PURPOSE: &[(&str, &str)] = &[
    (".ClientIPConfig", "timeoutSeconds"),
    (".DeleteOptions", "gracePeriodSeconds"),
    (".DeleteOptions", "orphanDependents"),
    (".DeleteOptions", "ignoreStoreReadErrorWithClusterBreakingPotential"),
    (".JSONSchemaProps", "maxItems"),
    (".JSONSchemaProps", "maxLength"),
    (".JSONSchemaProps", "maxProperties"),
    (".JSONSchemaProps", "maximum"),
    (".JSONSchemaProps", "minItems"),
    (".JSONSchemaProps", "minLength"),
    (".JSONSchemaProps", "minProperties"),
    (".JSONSchemaProps", "minimum"),
    (".JSONSchemaProps", "multipleOf"),
    (".JSONSchemaProps", "x-kubernetes-preserve-unknown-fields"),
    (".JSONSchemaPropsOrBool", "allows"),
    (".TokenRequestSpec", "expirationSeconds"),
    (".ValidationRule", "optionalOldSelf"),
];

/// Observes the zeros of every kind that a server stores.
pub(super) fn observe(
    access: &Access,
    messages: &mut Messages,
    name_of: impl Fn(&str, &str, &str) -> anyhow::Result<String>,
) -> anyhow::Result<()> {
    let mut shown = EmptyValues::new();
    for kind in KINDS.iter().filter(|kind| !kind.review && !LIVE_GROUPS.contains(&kind.group)) {
        for version in kind.versions {
            let message = name_of(kind.group, version, kind.kind)?;
            let mut object = empty(messages, &message, &mut Vec::new());
            identify(&mut object, kind, version);
            put(access.ports.etcd, &key(kind), &object.to_string())?;
            let answer = access.run_kubectl(&["get", "--raw", &path(kind, version)])?;
            look(messages, &message, &serde_json::from_str(&answer)?, &mut shown);
        }
    }
    for (message, fields) in messages.iter_mut() {
        for field in fields {
            let on_purpose =
                SET_ON_PURPOSE.iter().any(|(end, name)| message.ends_with(end) && *name == field.name);
            let seen = shown.contains(&(message.clone(), field.name.clone()));
            field.shows_zero |= on_purpose || seen;
        }
    }
    Ok(())
}

/// Sets the kind and the name of an object.
fn identify(object: &mut Value, kind: &BuiltInKind, version: &str) {
    let Some(map) = object.as_object_mut() else { return };
    map.extend([
        ("kind".to_owned(), json!(kind.kind)),
        ("apiVersion".to_owned(), json!(api_version(kind, version))),
    ]);
    if let Some(metadata) = map.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.insert("name".to_owned(), json!(NAME));
        metadata.insert("namespace".to_owned(), json!(if kind.namespaced { NAME } else { "" }));
    }
}

/// A message in which every field is present and empty.
fn empty(messages: &Messages, name: &str, above: &mut Vec<String>) -> Value {
    match name.rsplit('.').next().unwrap_or_default() {
        "string" | "bytes" => return json!(""),
        "bool" => return json!(false),
        "int32" | "int64" | "double" | "IntOrString" => return json!(0),
        "Quantity" => return json!("0"),
        "ExtraValue" => return json!([]),
        "RawExtension" | "FieldsV1" => return json!({}),
        // The value is empty.
        "Time" | "MicroTime" => return Value::Null,
        _ => {}
    }
    let mut object = Map::new();
    if above.iter().any(|other| other == name) {
        return object.into();
    }
    above.push(name.to_owned());
    for field in messages.get(name).into_iter().flatten() {
        let inside = empty(messages, &field.kind, above);
        match (field.shape, inside) {
            (_, Value::Null) => {}
            (FieldShape::One, Value::Object(inside)) if field.name.is_empty() => object.extend(inside),
            (FieldShape::One, inside) => drop(object.insert(field.name.clone(), inside)),
            (FieldShape::List, inside) => drop(object.insert(field.name.clone(), json!([inside]))),
            (FieldShape::Map, inside) => drop(object.insert(field.name.clone(), json!({NAME: inside}))),
        }
    }
    above.pop();
    object.into()
}

/// Records which zeros a response shows. A field that the server has defaulted counts as absent.
fn look(messages: &Messages, name: &str, answer: &Value, shown: &mut EmptyValues) {
    let Some(object) = answer.as_object() else { return };
    for field in messages.get(name).into_iter().flatten() {
        let found = if field.name.is_empty() { Some(answer) } else { object.get(&field.name) };
        match (field.shape, found) {
            (FieldShape::One, Some(found)) if field.is_scalar() && is_zero(found) => {
                shown.insert((name.to_owned(), field.name.clone()));
            }
            (FieldShape::List, Some(Value::Array(items))) => {
                for item in items {
                    look(messages, &field.kind, item, shown);
                }
            }
            (FieldShape::Map, Some(Value::Object(map))) => {
                for value in map.values() {
                    look(messages, &field.kind, value, shown);
                }
            }
            (_, Some(found)) => look(messages, &field.kind, found, shown),
            (_, None) => {}
        }
    }
}

fn is_zero(value: &Value) -> bool {
    [json!(""), json!(false), json!(0)].contains(value)
}

fn api_version(kind: &BuiltInKind, version: &str) -> String {
    if kind.group.is_empty() { version.to_owned() } else { format!("{}/{version}", kind.group) }
}

/// The path of an object in the API.
fn path(kind: &BuiltInKind, version: &str) -> String {
    let root = if kind.group.is_empty() { "api" } else { "apis" };
    let namespace = if kind.namespaced { format!("namespaces/{NAME}/") } else { String::new() };
    format!("/{root}/{}/{namespace}{}/{NAME}", api_version(kind, version), kind.plural)
}

/// The key of an object in etcd.
fn key(kind: &BuiltInKind) -> String {
    let namespace = if kind.namespaced { format!("{NAME}/") } else { String::new() };
    let folder = match kind.plural {
        "nodes" => "minions",
        "services" => "services/specs",
        plural => plural,
    };
    format!("/registry/{folder}/{namespace}{NAME}")
}

/// Writes to etcd, through its gateway for JSON.
fn put(port: u16, key: &str, value: &str) -> anyhow::Result<()> {
    let body = json!({"key": STANDARD.encode(key), "value": STANDARD.encode(value)}).to_string();
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).context("failed to reach etcd")?;
    let head = format!("POST /v3/kv/put HTTP/1.0\r\nHost: etcd\r\nContent-Length: {}\r\n\r\n", body.len());
    stream.write_all(format!("{head}{body}").as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let first = answer.lines().next().unwrap_or_default();
    anyhow::ensure!(first.contains(" 200 "), "etcd did not take {key}: {answer}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schemas::messages::MessageField;

    #[test]
    fn empty_values_are_recorded() {
        let field = |number, name: &str, kind: &str, shape| MessageField {
            number,
            name: name.to_owned(),
            kind: kind.to_owned(),
            shape,
            shows_zero: false,
        };
        let messages = Messages::from([(
            "x.A".to_owned(),
            vec![
                field(1, "plain", "int32", FieldShape::One),
                field(2, "pointer", "int32", FieldShape::One),
                field(3, "filled", "int32", FieldShape::One),
                field(4, "again", "x.A", FieldShape::List),
            ],
        )]);
        let sent = empty(&messages, "x.A", &mut Vec::new());
        assert_eq!(sent, json!({"plain": 0, "pointer": 0, "filled": 0, "again": [{}]}));
        let mut shown = EmptyValues::new();
        look(&messages, "x.A", &json!({"pointer": 0, "filled": 7}), &mut shown);
        assert_eq!(shown, EmptyValues::from([("x.A".to_owned(), "pointer".to_owned())]));
    }
}
