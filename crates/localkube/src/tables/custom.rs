//! Tables of custom resources, with the columns of their definitions.

use api::gotext;
use jiff::Timestamp;
use serde_json::Value;

use super::read::{age, name};
use super::{Column, column};
use crate::jsonpath::JsonPath;
use crate::schema::go;

/// The column definitions, the name first.
pub(super) fn columns(columns: &[Column]) -> Value {
    if columns.is_empty() {
        return column::usual("Age");
    }
    let columns = readable(columns).map(|(column, _)| column);
    let each = columns.map(|column| {
        let mut column = column.clone();
        if column.description.is_empty() {
            column.description =
                format!("Custom resource definition column (in JSONPath format): {}", column.json_path);
        }
        column::custom(&column)
    });
    std::iter::once(column::names()).chain(each).collect()
}

/// The cells of an object.
pub(super) fn cells(columns: &[Column], object: &Value, now: Timestamp) -> Vec<Value> {
    if columns.is_empty() {
        return vec![name(object), age(object, now)];
    }
    let each = readable(columns).map(|(column, path)| {
        path.first(object).map_or(Value::Null, |value| cell(&column.type_, value, now))
    });
    std::iter::once(name(object)).chain(each).collect()
}

/// The columns up to the first one with a malformed path, where Kubernetes stops as well.
fn readable(columns: &[Column]) -> impl Iterator<Item = (&Column, JsonPath)> {
    columns.iter().map_while(|column| Some((column, JsonPath::parse(&column.json_path).ok()?)))
}

/// A cell; a value that is not of the column's type is null.
fn cell(type_: &str, value: &Value, now: Timestamp) -> Value {
    match type_ {
        "integer" => integer(value).map_or(Value::Null, Value::from),
        "number" if value.is_number() => value.clone(),
        "boolean" if value.is_boolean() => value.clone(),
        "date" => date(value, now).map_or(Value::Null, Value::from),
        "string" => text(value).into(),
        _ => Value::Null,
    }
}

/// Go truncates fractions, and returns the smallest number on overflow.
fn integer(value: &Value) -> Option<i64> {
    const TWO_TO_63: f64 = 9_223_372_036_854_775_808.0;
    value
        .as_i64()
        .or_else(|| value.as_f64().map(|float| if float.abs() < TWO_TO_63 { float as i64 } else { i64::MIN }))
}

fn date(value: &Value, now: Timestamp) -> Option<String> {
    let text = value.as_str()?;
    if text.is_empty() {
        return Some("<unknown>".to_owned());
    }
    Some(api::instant::parse(text).map_or_else(|_| "<invalid>".to_owned(), |time| api::age::since(time, now)))
}

fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => "<no value>".to_owned(),
        Value::Number(number) if number.is_f64() => go::float(number.as_f64().unwrap_or_default(), 21),
        Value::Number(number) => number.to_string(),
        other => {
            let mut sorted = other.clone();
            sorted.sort_all_objects();
            gotext::json(&sorted).unwrap_or_default()
        }
    }
}
