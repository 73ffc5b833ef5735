//! Validation errors of custom resources, with the texts of the API server.

use api::field::{FieldError, FieldErrorKind};
use api::gotext;
use serde_json::{Number, Value};

use crate::schema::go;

/// The field that the server names for an error without a single field.
const NO_FIELD: &str = "<nil>";

pub(super) fn fault(kind: FieldErrorKind, field: &str, value: String, detail: String) -> FieldError {
    FieldError { field: field.to_owned(), kind, value, detail }
}

/// A value has the wrong type or format; `got` is the actual one.
pub(super) fn wrong_type(path: &str, wanted: &str, got: &str) -> FieldError {
    let got = gotext::quote(got);
    let detail = format!("{path} in body must be of type {wanted}: {got}");
    fault(FieldErrorKind::TypeInvalid, path, got, detail)
}

/// A value violates a constraint: `spec.a in body …`.
pub(super) fn broken(path: &str, value: &Value, rule: &str) -> FieldError {
    fault(FieldErrorKind::Invalid, path, shown(value), format!("{path} in body {rule}"))
}

/// An error that belongs to no single field.
pub(super) fn elsewhere(detail: String) -> FieldError {
    fault(FieldErrorKind::Invalid, NO_FIELD, "\"\"".to_owned(), detail)
}

pub(super) fn missing(path: &str) -> FieldError {
    FieldError::required(path, "")
}

pub(super) fn unsupported(path: &str, value: &Value, choices: &[Value]) -> FieldError {
    let word = |choice: &Value| match choice {
        Value::String(text) => gotext::quote(text),
        other => gotext::quote(&json(other)),
    };
    let words: Vec<String> = choices.iter().map(word).collect();
    fault(FieldErrorKind::NotSupported, path, shown(value), format!("supported values: {}", words.join(", ")))
}

pub(super) fn too_long(path: &str, most: i64) -> FieldError {
    let unit = if most == 1 { "byte" } else { "bytes" };
    fault(FieldErrorKind::TooLong, path, String::new(), format!("may not be more than {most} {unit}"))
}

pub(super) fn too_many(path: &str, count: usize, most: i64) -> FieldError {
    let unit = if most == 1 { "item" } else { "items" };
    fault(FieldErrorKind::TooMany, path, count.to_string(), format!("must have at most {most} {unit}"))
}

pub(super) fn duplicate(path: &str, value: &Value) -> FieldError {
    fault(FieldErrorKind::Duplicate, path, shown(value), String::new())
}

/// A value as validation errors show it.
pub(super) fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => gotext::quote(text),
        Value::Number(number) => number_text(number),
        other => json(other),
    }
}

/// JSON with sorted keys, as Go marshals maps.
pub(super) fn json(value: &Value) -> String {
    fn whole_numbers(value: &mut Value) {
        match value {
            Value::Object(fields) => fields.values_mut().for_each(whole_numbers),
            Value::Array(items) => items.iter_mut().for_each(whole_numbers),
            Value::Number(number) if number.as_f64().is_some_and(|n| n.fract() == 0.0 && n.abs() < 1e18) => {
                *value = Value::from(number.as_f64().unwrap_or_default() as i64);
            }
            _ => {}
        }
    }
    let mut value = value.clone();
    value.sort_all_objects();
    whole_numbers(&mut value);
    gotext::json(&value).unwrap_or_default()
}

fn number_text(number: &Number) -> String {
    match (number.as_i64(), number.as_f64()) {
        (Some(whole), _) => whole.to_string(),
        (None, Some(number)) => float_text(number),
        (None, None) => number.to_string(),
    }
}

/// A floating point number as Go's `%v` prints it.
pub(super) fn float_text(number: f64) -> String {
    go::float(number, 6)
}
