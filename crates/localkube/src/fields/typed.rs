//! Validation of an applied configuration: types and duplicate items.

use std::collections::BTreeSet;

use serde_json::Value;

use super::PathStep;
use super::compare::{item_step, items_of};
use crate::schema::{ListKind, ListSchema, Scalar, SchemaCursor, SchemaShape, go};
use crate::status::Status;

/// Refuses a configuration that does not match the schema; the API server responds with status 500.
pub(super) fn check(cursor: SchemaCursor<'_>, config: &Value) -> Result<(), Status> {
    let mut problems = Vec::new();
    find_problems(cursor, config, &mut String::new(), &mut problems);
    if problems.is_empty() {
        return Ok(());
    }
    let text = |pointer: &str| config.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let (group, version) = text("/apiVersion").split_once('/').unwrap_or(("", text("/apiVersion")));
    let what = if problems.len() == 1 {
        problems.concat()
    } else {
        problems.iter().fold("errors:".to_owned(), |all, problem| format!("{all}\n  {problem}"))
    };
    let message = format!(
        "failed to create typed patch object ({}/{}; {group}/{version}, Kind={}): {what}",
        text("/metadata/namespace"),
        text("/metadata/name"),
        text("/kind"),
    );
    Err(Status { code: 500, reason: "", ..Status::bad_request(message) })
}

fn find_problems(cursor: SchemaCursor<'_>, value: &Value, path: &mut String, problems: &mut Vec<String>) {
    let SchemaCursor::Known(schema) = cursor else { return };
    let wrong = match (&schema.shape, value) {
        (_, Value::Null) | (SchemaShape::Any, _) => None,
        (SchemaShape::Object(_), Value::Object(map)) => {
            for (key, value) in map {
                let end = path.len();
                path.push('.');
                path.push_str(key);
                match cursor.field(key) {
                    SchemaCursor::Unknown => problems.push(format!("{path}: field not declared in schema")),
                    below => find_problems(below, value, path, problems),
                }
                path.truncate(end);
            }
            None
        }
        (SchemaShape::List(list), Value::Array(items)) => {
            look_at_items(list, items, path, problems);
            None
        }
        (SchemaShape::Object(_), other) => Some(format!("expected map, got &{{{}}}", go::print(other))),
        (SchemaShape::List(_), other) => Some(format!("expected list, got &{{{}}}", go::print(other))),
        (SchemaShape::Scalar(scalar), value) => scalar_problem(*scalar, value),
    };
    problems.extend(wrong.map(|wrong| format!("{path}: {wrong}")));
}

fn look_at_items(list: &ListSchema, items: &[Value], path: &mut String, problems: &mut Vec<String>) {
    let mut seen = BTreeSet::new();
    for (index, item) in items.iter().enumerate() {
        let step = match &list.kind {
            ListKind::Atomic => PathStep::Index(index),
            ListKind::Map(_) if !item.is_object() => {
                problems.push(format!(
                    "{path}: element {index}: associative list with keys may not have non-map elements"
                ));
                continue;
            }
            ListKind::Map(_) | ListKind::Set => {
                let step = item_step(list, item);
                if !seen.insert(step.clone()) {
                    problems.push(format!("{path}: duplicate entries for key {step}"));
                }
                step
            }
        };
        let end = path.len();
        path.push_str(&step.to_string());
        find_problems(items_of(list), item, path, problems);
        path.truncate(end);
    }
}

fn scalar_problem(scalar: Scalar, value: &Value) -> Option<String> {
    let expected = match (scalar, value) {
        (Scalar::Text | Scalar::Bytes | Scalar::Time | Scalar::MicroTime, Value::String(_))
        | (Scalar::Bool, Value::Bool(_))
        | (Scalar::Int32 | Scalar::Int64 | Scalar::Number, Value::Number(_))
        | (Scalar::Quantity | Scalar::IntOrString, Value::String(_) | Value::Number(_) | Value::Bool(_)) => {
            return None;
        }
        (Scalar::Text | Scalar::Bytes | Scalar::Time | Scalar::MicroTime, other) => {
            return Some(format!(
                "expected string, got &value.valueUnstructured{{Value:{}}}",
                go::print(other)
            ));
        }
        (Scalar::Bool, other) => {
            return Some(format!(
                "expected boolean, got &value.valueUnstructured{{Value:{}}}",
                go::print(other)
            ));
        }
        (Scalar::Int32 | Scalar::Int64 | Scalar::Number, _) => "numeric (int or float)",
        (Scalar::Quantity | Scalar::IntOrString, _) => "scalar",
    };
    let found = match value {
        Value::String(_) => "string".to_owned(),
        Value::Bool(_) => "bool".to_owned(),
        other => go::print(other),
    };
    Some(format!("expected {expected}, got {found}"))
}
