//! Checks that a patched object can still be decoded.

use serde_json::Value;

use super::PatchKind;
use crate::schema::{Scalar, Schema, SchemaShape, go, type_error};
use crate::status::{About, Cause, Status};

/// Refuses a patched object of a built-in kind with values of the wrong type: 422 with the whole object, or with the
/// patch if it is strategic.
pub fn check(kind: PatchKind, schema: &Schema, patched: &Value, patch: &Value) -> Result<(), Status> {
    let wrong = match kind {
        PatchKind::Json | PatchKind::Merge => type_error(schema, patched),
        PatchKind::Strategic => mismatch(schema, patched),
    };
    wrong.map_or(Ok(()), |why| Err(refuse(kind, patched, patch, &why)))
}

/// 422: the patched object cannot be decoded.
pub(crate) fn refuse(kind: PatchKind, patched: &Value, patch: &Value, why: &str) -> Status {
    let what = match kind {
        PatchKind::Json | PatchKind::Merge => by_name(patched).to_string(),
        PatchKind::Strategic => go::print(patch),
    };
    let cause = Cause {
        reason: "FieldValueInvalid".to_owned(),
        message: format!("Invalid value: {}: {why}", api::gotext::quote(&what)),
        field: "patch".to_owned(),
    };
    Status::invalid(About::default(), vec![cause])
}

/// The object with its top-level fields sorted.
fn by_name(object: &Value) -> Value {
    let Some(map) = object.as_object() else { return object.clone() };
    let mut fields: Vec<(&String, &Value)> = map.iter().collect();
    fields.sort_by_key(|(name, _)| *name);
    Value::Object(fields.into_iter().map(|(name, value)| (name.clone(), value.clone())).collect())
}

/// The first value that does not fit its Go field, with the text of Go's map-to-struct converter.
fn mismatch(schema: &Schema, value: &Value) -> Option<String> {
    match (&schema.shape, value) {
        (_, Value::Null) | (SchemaShape::Any, _) => None,
        (SchemaShape::Object(_), Value::Object(map)) => {
            map.iter().find_map(|(key, value)| mismatch(schema.field(key).schema()?, value))
        }
        (SchemaShape::List(list), Value::Array(items)) => {
            items.iter().find_map(|item| mismatch(list.items.schema(), item))
        }
        (SchemaShape::Object(object), other) if object.fields.is_empty() => {
            Some(format!("cannot restore map from {}", go_kind(other)))
        }
        (SchemaShape::Object(_), other) => Some(format!("cannot restore struct from: {}", go_kind(other))),
        (SchemaShape::List(_), other) => Some(format!("cannot restore slice from {}", go_kind(other))),
        (SchemaShape::Scalar(scalar), value) => scalar_mismatch(*scalar, value),
    }
}

fn scalar_mismatch(scalar: Scalar, value: &Value) -> Option<String> {
    let (fits, name) = match scalar {
        Scalar::Text => (value.is_string(), "string"),
        Scalar::Bool => (value.is_boolean(), "bool"),
        Scalar::Int32 => (value.is_number(), "int32"),
        Scalar::Int64 => (value.is_number(), "int64"),
        Scalar::Number => (value.is_number(), "float64"),
        // These types have their own decoders.
        Scalar::Bytes | Scalar::Quantity | Scalar::Time | Scalar::MicroTime | Scalar::IntOrString => {
            (true, "")
        }
    };
    (!fits).then(|| format!("unrecognized type: {name}"))
}

fn go_kind(value: &Value) -> &'static str {
    match value {
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::Array(_) => "slice",
        Value::Object(_) => "map",
        other => go::word(other),
    }
}
