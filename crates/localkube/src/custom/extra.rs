//! Validation of custom resources beyond OpenAPI: embedded objects, list sets and maps, scale.

use std::collections::BTreeMap;

use api::field::{FieldError, FieldErrorKind};
use api::gotext;
use serde_json::{Map, Value};

use super::ScalePaths;
use super::faults::{duplicate, fault, json, missing, shown};
use super::node::SchemaNode;
use super::validate::join;
use crate::schema::ListKind;

/// Checks embedded resources.
pub(super) fn embedded(node: &SchemaNode, value: &Value, path: &str, out: &mut Vec<FieldError>) {
    if node.embedded && value.is_object() {
        identity(value, path, out);
    }
    each(node, value, path, &mut |node, value, path| embedded(node, value, path, out));
}

fn identity(value: &Value, path: &str, out: &mut Vec<FieldError>) {
    let text = |name: &str| value.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
    let at = |name: &str| join(path, name);
    match text("apiVersion") {
        None => out.push(missing(&at("apiVersion"))),
        Some(version) if version.matches('/').count() > 1 => {
            let detail = format!("unexpected GroupVersion string: {version}");
            out.push(FieldError::invalid(at("apiVersion"), version, detail));
        }
        Some(_) => {}
    }
    match text("kind") {
        None => out.push(missing(&at("kind"))),
        Some(kind) => out.extend(super::names::kind_fault(&at("kind"), kind)),
    }
    let labels = value.pointer("/metadata/labels").and_then(Value::as_object);
    for (key, label) in labels.into_iter().flatten() {
        let field = at("metadata.labels");
        let faults = api::names::label_key_faults(key);
        out.extend(faults.into_iter().map(|detail| FieldError::invalid(&field, key, detail)));
        let label = label.as_str().unwrap_or_default();
        let faults = api::names::label_value_faults(label);
        out.extend(faults.into_iter().map(|detail| FieldError::invalid(&field, label, detail)));
    }
}

/// Checks that list sets and list maps have no duplicates; each duplicate is reported once.
pub(super) fn lists(node: &SchemaNode, value: &Value, path: &str, out: &mut Vec<FieldError>) {
    if let Value::Array(items) = value {
        match &node.list {
            ListKind::Atomic => {}
            ListKind::Set => twice(items.iter().cloned().map(Some), path, out),
            ListKind::Map(keys) => {
                for (at, item) in items.iter().enumerate().filter(|(_, item)| !item.is_object()) {
                    let detail = "must be an object for an array of list-type map".to_owned();
                    out.push(fault(FieldErrorKind::Invalid, &format!("{path}[{at}]"), shown(item), detail));
                }
                twice(items.iter().map(|item| identifying(item, keys)), path, out);
            }
        }
    }
    each(node, value, path, &mut |node, value, path| lists(node, value, path, out));
}

/// Whether a list set or list map has duplicates.
pub(super) fn has_duplicates(node: &SchemaNode, value: &Value) -> bool {
    let mut found = Vec::new();
    lists(node, value, "", &mut found);
    !found.is_empty()
}

fn identifying(item: &Value, keys: &[String]) -> Option<Value> {
    let item = item.as_object()?;
    let entries = keys.iter().filter_map(|key| Some((key.clone(), item.get(key)?.clone())));
    Some(Value::Object(entries.collect::<Map<String, Value>>()))
}

fn twice(items: impl Iterator<Item = Option<Value>>, path: &str, out: &mut Vec<FieldError>) {
    let mut seen: BTreeMap<String, u32> = BTreeMap::new();
    for (at, item) in items.enumerate().filter_map(|(at, item)| Some((at, item?))) {
        let count = seen.entry(json(&item)).or_default();
        *count += 1;
        if *count == 2 {
            out.push(duplicate(&format!("{path}[{at}]"), &item));
        }
    }
}

/// Visits the direct children of a value that the schema declares, by name.
fn each(node: &SchemaNode, value: &Value, path: &str, visit: &mut dyn FnMut(&SchemaNode, &Value, &str)) {
    match value {
        Value::Object(fields) => {
            let mut names: Vec<&String> = fields.keys().collect();
            names.sort();
            for name in names {
                if let (Some(inner), Some(value)) = (node.property(name), fields.get(name)) {
                    visit(inner, value, &join(path, name));
                }
            }
        }
        Value::Array(items) => {
            let Some(inner) = &node.items else { return };
            for (at, item) in items.iter().enumerate() {
                visit(inner, item, &format!("{path}[{at}]"));
            }
        }
        _ => {}
    }
}

/// Checks that the values of the scale subresource have the right types.
pub(super) fn scale(paths: &ScalePaths, object: &Value) -> Vec<FieldError> {
    let count = |path: &[String]| {
        let field = format!(".{}", path.join("."));
        let fault = |number: i64, detail: String| Some(FieldError::invalid(&field, number, detail));
        match reach(object, path, |value| value.as_i64().is_some(), "int64") {
            Err(detail) => fault(0, detail),
            Ok(Some(number)) => match number.as_i64().unwrap_or_default() {
                number if number < 0 => fault(number, "should be a non-negative integer".to_owned()),
                number if number > i64::from(i32::MAX) => {
                    fault(number, format!("should be less than or equal to {}", i32::MAX))
                }
                _ => None,
            },
            Ok(None) => None,
        }
    };
    let selector = paths.selector.as_ref().and_then(|path| {
        let detail = reach(object, path, Value::is_string, "string").err()?;
        Some(FieldError::invalid(format!(".{}", path.join(".")), "", detail))
    });
    [count(&paths.spec), count(&paths.status), selector].into_iter().flatten().collect()
}

/// The value at a path, or Go's error text if it has another type.
fn reach<'a>(
    object: &'a Value,
    path: &[String],
    fits: impl Fn(&Value) -> bool,
    expected: &str,
) -> Result<Option<&'a Value>, String> {
    let complain = |value: &Value, expected: &str| {
        let (text, kind) = match value {
            Value::String(text) => (text.clone(), "string"),
            Value::Number(number) if number.is_i64() => (number.to_string(), "int64"),
            Value::Number(_) => (shown(value), "float64"),
            Value::Bool(flag) => (flag.to_string(), "bool"),
            Value::Array(_) => (gotext::json(value).unwrap_or_default(), "[]interface {}"),
            Value::Object(_) => (gotext::json(value).unwrap_or_default(), "map[string]interface {}"),
            Value::Null => ("<nil>".to_owned(), "<nil>"),
        };
        format!(".{} accessor error: {text} is of the type {kind}, expected {expected}", path.join("."))
    };
    let mut at = object;
    for step in path {
        let Some(fields) = at.as_object() else { return Err(complain(at, "map[string]interface{}")) };
        match fields.get(step) {
            None => return Ok(None),
            Some(inner) => at = inner,
        }
    }
    if fits(at) { Ok(Some(at)) } else { Err(complain(at, expected)) }
}
