//! Validation of the schema, subresources and printer columns of a definition.
//!
//! Rules in CEL are not compiled, so errors in them are not found.

use api::field::{FieldError, FieldErrorKind};
use serde_json::Value;

use super::faults::{fault, json};
use super::node::SchemaNode;
use super::validate as object;
use crate::json::{flag, list, strings, text};

const SCHEMA_TYPES: &[&str] = &["array", "boolean", "integer", "number", "object", "string"];
const COLUMN_TYPES: &[&str] = &["boolean", "date", "integer", "number", "string"];
const COLUMN_FORMATS: &[&str] =
    &["byte", "date", "date-time", "double", "float", "int32", "int64", "password"];

/// The position of a subschema, which determines what it must specify.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SchemaPosition {
    Root,
    Field,
    Item,
}

type PartCheck = fn(&Value, &str, &mut Vec<FieldError>);

/// Validates all versions. The server keeps parts that all versions share at the top level and reports errors there.
pub(super) fn validate(versions: &[Value], out: &mut Vec<FieldError>) {
    let parts: [(&str, &str, PartCheck); 3] = [
        ("schema", "spec.validation", |part, path, out| {
            if let Some(schema) = part.get("openAPIV3Schema").filter(|schema| schema.is_object()) {
                check(schema, &format!("{path}.openAPIV3Schema"), SchemaPosition::Root, out);
            }
        }),
        ("subresources", "spec.subresources", check_subresources),
        ("additionalPrinterColumns", "spec.additionalPrinterColumns", check_columns),
    ];
    if let [only] = versions {
        check_status_root(only, out);
    }
    for (field, shared, check) in parts {
        let all: Vec<Option<&Value>> = versions.iter().map(|version| version.get(field)).collect();
        match all.split_first() {
            Some((first, rest)) if rest.iter().all(|other| other == first) => {
                if let Some(part) = first {
                    check(part, shared, out);
                }
            }
            _ => {
                for (at, part) in all.iter().enumerate().filter_map(|(at, part)| Some((at, (*part)?))) {
                    check(part, &format!("spec.versions[{at}].{field}"), out);
                }
            }
        }
    }
}

/// With a status subresource the root must be an object.
fn check_status_root(version: &Value, out: &mut Vec<FieldError>) {
    let root = version.pointer("/schema/openAPIV3Schema/type").and_then(Value::as_str).unwrap_or_default();
    if version.pointer("/subresources/status").is_some() && !matches!(root, "" | "object") {
        let detail = "only \"object\" is allowed as the type at the root of the schema if the status subresource is enabled";
        out.push(FieldError::invalid("spec.validation.openAPIV3Schema.type", root, detail));
    }
}

fn check(schema: &Value, path: &str, cursor: SchemaPosition, out: &mut Vec<FieldError>) {
    let at = |field: &str| format!("{path}.{field}");
    check_type(schema, path, cursor, out);
    for field in ["$ref", "patternProperties"] {
        if schema.get(field).is_some_and(|value| !value.is_null()) {
            out.push(FieldError::forbidden(at(field), format!("{field} is not supported")));
        }
    }
    if flag(schema, "uniqueItems") {
        let detail = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic";
        out.push(FieldError::forbidden(at("uniqueItems"), detail));
    }
    let properties = schema.get("properties").and_then(Value::as_object);
    let additional = schema.get("additionalProperties").filter(|value| !value.is_null());
    if schema.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(false)) {
        let field = at("x-kubernetes-preserve-unknown-fields");
        out.push(fault(
            FieldErrorKind::Invalid,
            &field,
            "false".to_owned(),
            "must be true or undefined".to_owned(),
        ));
    }
    let kind = text(schema, "type");
    if flag(schema, "x-kubernetes-embedded-resource") && kind != "object" {
        let detail = "must be object if x-kubernetes-embedded-resource is true";
        out.push(FieldError::invalid(at("type"), kind, detail));
    } else if flag(schema, "x-kubernetes-embedded-resource")
        && !flag(schema, "x-kubernetes-preserve-unknown-fields")
        && properties.is_none_or(serde_json::Map::is_empty)
    {
        let detail = "must not be empty if x-kubernetes-embedded-resource is true without \
                      x-kubernetes-preserve-unknown-fields";
        out.push(FieldError::required(at("properties"), detail));
    }
    check_pattern(schema, path, out);
    check_list(schema, path, out);
    check_default(schema, path, out);
    if let Some(inner) = additional.filter(|inner| inner.is_object()) {
        check(inner, &at("additionalProperties"), SchemaPosition::Field, out);
    }
    for (name, inner) in properties.into_iter().flatten() {
        let path = format!("{path}.properties[{name}]");
        if cursor == SchemaPosition::Root && name == "metadata" {
            check_metadata(inner, &path, out);
        } else {
            check(inner, &path, SchemaPosition::Field, out);
        }
    }
    match schema.get("items") {
        Some(items) if items.is_object() => check(items, &at("items"), SchemaPosition::Item, out),
        _ if text(schema, "type") == "array" => {
            out.push(FieldError::required(at("items"), "must be specified"));
        }
        _ => {}
    }
    if properties.is_some_and(|properties| !properties.is_empty()) && additional.is_some() {
        let detail = "additionalProperties and properties are mutual exclusive";
        out.push(FieldError::forbidden(at("additionalProperties"), detail));
    }
    check_alternatives(schema, path, flag(schema, "x-kubernetes-int-or-string"), out);
}

fn check_type(schema: &Value, path: &str, cursor: SchemaPosition, out: &mut Vec<FieldError>) {
    let field = format!("{path}.type");
    let free =
        flag(schema, "x-kubernetes-int-or-string") || flag(schema, "x-kubernetes-preserve-unknown-fields");
    match (text(schema, "type"), cursor) {
        ("", SchemaPosition::Root) => out.push(FieldError::required(field, "must not be empty at the root")),
        ("", SchemaPosition::Field) if !free => {
            out.push(FieldError::required(field, "must not be empty for specified object fields"));
        }
        ("", SchemaPosition::Item) if !free => {
            out.push(FieldError::required(field, "must not be empty for specified array items"));
        }
        ("object", SchemaPosition::Root) | ("", _) => {}
        (other, SchemaPosition::Root) => {
            out.push(FieldError::invalid(field, other, "must be object at the root"));
        }
        (other, _) if !SCHEMA_TYPES.contains(&other) => {
            out.push(FieldError::not_supported(field, other, SCHEMA_TYPES));
        }
        _ => {}
    }
}

fn check_pattern(schema: &Value, path: &str, out: &mut Vec<FieldError>) {
    let pattern = text(schema, "pattern");
    if let Err(error) = regex::Regex::new(pattern) {
        let reason = error.to_string();
        let reason = reason.lines().last().unwrap_or_default().trim_start_matches("error: ");
        let detail = format!(
            "must be a valid regular expression, but isn't: error parsing regexp: {reason}: `{pattern}`"
        );
        out.push(FieldError::invalid(format!("{path}.pattern"), pattern, detail));
    }
}

fn check_list(schema: &Value, path: &str, out: &mut Vec<FieldError>) {
    let at = |field: &str| format!("{path}.{field}");
    let (kind, list_type) = (text(schema, "type"), text(schema, "x-kubernetes-list-type"));
    let keys = strings(schema, "x-kubernetes-list-map-keys");
    if !list_type.is_empty() && kind != "array" {
        let detail = "must be array if x-kubernetes-list-type is specified";
        out.push(FieldError::invalid(at("type"), kind, detail));
    }
    if list_type != "map" && !keys.is_empty() {
        let detail = "must be map if x-kubernetes-list-map-keys is non-empty";
        out.push(FieldError::required(at("x-kubernetes-list-type"), detail));
    }
    match list_type {
        "" | "atomic" => {}
        "set" => {
            let item = schema.get("items");
            let map_type = item.map(|item| text(item, "x-kubernetes-map-type")).unwrap_or_default();
            if item.is_some_and(|item| text(item, "type") == "object") && map_type != "atomic" {
                let shown =
                    if map_type.is_empty() { "null".to_owned() } else { api::gotext::quote(map_type) };
                let detail = "must be atomic as item of a list with x-kubernetes-list-type=set".to_owned();
                out.push(fault(FieldErrorKind::Invalid, &at("items.x-kubernetes-map-type"), shown, detail));
            }
        }
        "map" if keys.is_empty() => {
            let detail = "must not be empty if x-kubernetes-list-type is map";
            out.push(FieldError::required(at("x-kubernetes-list-map-keys"), detail));
        }
        "map" => check_keys(schema, path, &keys, out),
        other => {
            let known = ["atomic", "set", "map"];
            out.push(FieldError::not_supported(at("x-kubernetes-list-type"), other, &known));
        }
    }
    match text(schema, "x-kubernetes-map-type") {
        "" => {}
        "atomic" | "granular" => {
            if kind != "object" {
                let detail = "must be object if x-kubernetes-map-type is specified";
                out.push(FieldError::invalid(at("type"), kind, detail));
            }
        }
        other => {
            out.push(FieldError::not_supported(at("x-kubernetes-map-type"), other, &["atomic", "granular"]));
        }
    }
}

fn check_keys(schema: &Value, path: &str, keys: &[String], out: &mut Vec<FieldError>) {
    let item = schema.get("items").map(|items| text(items, "type")).unwrap_or_default();
    if item != "object" {
        let detail = "must be object if parent array's x-kubernetes-list-type is map";
        out.push(FieldError::invalid(format!("{path}.items.type"), item, detail));
        return;
    }
    let property = |key: &String| schema.get("items").and_then(|items| items.get("properties")?.get(key));
    if !keys.iter().all(|key| property(key).is_some()) {
        let detail = "entries must all be names of item properties";
        out.push(FieldError::invalid(format!("{path}.x-kubernetes-list-map-keys"), keys, detail));
        return;
    }
    let required = schema.get("items").map(|items| strings(items, "required")).unwrap_or_default();
    for key in keys {
        if !required.contains(key) && property(key).is_none_or(|property| property.get("default").is_none()) {
            let detail = "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required \
                          property";
            out.push(FieldError::required(format!("{path}.items.properties[{key}].default"), detail));
        }
    }
}

/// A default must be valid and contain only declared fields.
fn check_default(schema: &Value, path: &str, out: &mut Vec<FieldError>) {
    let Some(default) = schema.get("default").filter(|default| !default.is_null()) else { return };
    let field = format!("{path}.default");
    let node = SchemaNode::read(schema);
    if has_unknown(&node, default) {
        out.push(fault(
            FieldErrorKind::Invalid,
            &field,
            json(default),
            "must not have unknown fields".to_owned(),
        ));
        return;
    }
    let mut faults = Vec::new();
    object::check(&node, default, None, "", &mut faults);
    let moved = |fault: FieldError| {
        let field = if fault.field.is_empty() { field.clone() } else { format!("{field}.{}", fault.field) };
        FieldError { field, ..fault }
    };
    out.extend(faults.into_iter().map(moved));
}

fn has_unknown(node: &SchemaNode, value: &Value) -> bool {
    match value {
        Value::Object(fields) => fields.iter().any(|(name, value)| match node.property(name) {
            Some(inner) => has_unknown(inner, value),
            None => {
                !node.preserve_unknown && matches!(node.additional, super::node::AdditionalProperties::Unsaid)
            }
        }),
        Value::Array(items) => {
            node.items.as_ref().is_some_and(|inner| items.iter().any(|item| has_unknown(inner, item)))
        }
        _ => false,
    }
}

fn check_metadata(schema: &Value, path: &str, out: &mut Vec<FieldError>) {
    let only_names = schema.as_object().is_none_or(|fields| {
        fields.keys().all(|field| matches!(field.as_str(), "type" | "properties" | "description"))
    });
    let properties = schema.get("properties").and_then(Value::as_object);
    let known =
        properties.is_none_or(|all| all.keys().all(|name| matches!(name.as_str(), "name" | "generateName")));
    if !only_names || !known {
        let detail = "must not specify anything other than name and generateName, but metadata is implicitly specified";
        out.push(FieldError::forbidden(path, detail));
    }
}

/// `allOf`, `anyOf`, `oneOf` and `not` may only narrow the schema that contains them.
fn check_alternatives(schema: &Value, path: &str, int_or_string: bool, out: &mut Vec<FieldError>) {
    // An int-or-string may list its two types.
    let types: Vec<&str> = list(schema, "anyOf").iter().map(|inner| text(inner, "type")).collect();
    let both = int_or_string && types == ["integer", "string"];
    for group in ["allOf", "anyOf", "oneOf"] {
        for (at, inner) in list(schema, group).iter().enumerate() {
            let listed = both && group == "anyOf";
            check_narrow(inner, &format!("{path}.{group}[{at}]"), listed, int_or_string, out);
        }
    }
    if let Some(inner) = schema.get("not").filter(|inner| inner.is_object()) {
        check_narrow(inner, &format!("{path}.not"), false, int_or_string, out);
    }
}

fn check_narrow(schema: &Value, path: &str, typed: bool, int_or_string: bool, out: &mut Vec<FieldError>) {
    for (field, detail) in [
        ("additionalProperties", "must be undefined to be structural"),
        ("default", "must be undefined to be structural"),
        ("nullable", "must be false to be structural"),
        ("x-kubernetes-preserve-unknown-fields", "must be false to be structural"),
        ("x-kubernetes-embedded-resource", "must be false to be structural"),
        ("x-kubernetes-int-or-string", "must be false to be structural"),
    ] {
        if schema.get(field).is_some_and(|value| !matches!(value, Value::Null | Value::Bool(false))) {
            out.push(FieldError::forbidden(format!("{path}.{field}"), detail));
        }
    }
    if !typed && !text(schema, "type").is_empty() {
        out.push(FieldError::forbidden(format!("{path}.type"), "must be empty to be structural"));
    }
    check_pattern(schema, path, out);
    for (name, inner) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
        check_narrow(inner, &format!("{path}.properties[{name}]"), false, false, out);
    }
    if let Some(items) = schema.get("items").filter(|items| items.is_object()) {
        check_narrow(items, &format!("{path}.items"), false, false, out);
    }
    check_alternatives(schema, path, int_or_string, out);
}

fn check_subresources(part: &Value, path: &str, out: &mut Vec<FieldError>) {
    let Some(scale) = part.get("scale").filter(|scale| scale.is_object()) else { return };
    for (field, start) in [
        ("specReplicasPath", Some("spec")),
        ("statusReplicasPath", Some("status")),
        ("labelSelectorPath", None),
    ] {
        let cursor = format!("{path}.scale.{field}");
        let given = text(scale, field);
        let under =
            |start: &str| given.strip_prefix('.').is_some_and(|rest| rest.starts_with(&format!("{start}.")));
        if given.is_empty() {
            if start.is_some() {
                out.push(FieldError::required(cursor, ""));
            }
        } else if !given.starts_with('.') || given.len() < 2 {
            out.push(FieldError::invalid(cursor, given, "must be a simple json path starting with ."));
        } else if let Some(start) = start.filter(|start| !under(start)) {
            out.push(FieldError::invalid(cursor, given, format!("should be a json path under .{start}")));
        } else if start.is_none() && !under("spec") && !under("status") {
            out.push(FieldError::invalid(
                cursor,
                given,
                "should be a json path under either .spec or .status",
            ));
        }
    }
}

fn check_columns(part: &Value, path: &str, out: &mut Vec<FieldError>) {
    for (at, column) in part.as_array().into_iter().flatten().enumerate() {
        let cursor = |field: &str| format!("{path}[{at}].{field}");
        let one_of = |known: &[&str]| format!("must be one of {}", known.join(","));
        if text(column, "name").is_empty() {
            out.push(FieldError::required(cursor("name"), ""));
        }
        match text(column, "type") {
            "" => out.push(FieldError::required(cursor("type"), one_of(COLUMN_TYPES))),
            kind if !COLUMN_TYPES.contains(&kind) => {
                out.push(FieldError::invalid(cursor("type"), kind, one_of(COLUMN_TYPES)));
            }
            _ => {}
        }
        let format = text(column, "format");
        if !format.is_empty() && !COLUMN_FORMATS.contains(&format) {
            out.push(FieldError::invalid(cursor("format"), format, one_of(COLUMN_FORMATS)));
        }
        match text(column, "jsonPath") {
            "" => out.push(FieldError::required(cursor("JSONPath"), "")),
            given if !given.starts_with('.') => {
                out.push(FieldError::invalid(
                    cursor("JSONPath"),
                    given,
                    "must be a simple json path starting with .",
                ));
            }
            _ => {}
        }
    }
}
