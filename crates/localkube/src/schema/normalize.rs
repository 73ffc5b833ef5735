//! The form in which Go encodes a decoded object.

use serde_json::{Map, Value};

use super::{ObjectSchema, Scalar, Schema, SchemaShape};

/// Normalizes an object of a built-in kind as the server stores it: without nulls, empty lists and empty maps, and with
/// the structs that are always present.
pub fn normalize(schema: &Schema, value: &mut Value) {
    match (&schema.shape, value) {
        (SchemaShape::Object(object), Value::Object(map)) => normalize_map(object, map),
        (SchemaShape::List(list), Value::Array(items)) => {
            for item in items {
                normalize(list.items.schema(), item);
            }
        }
        _ => {}
    }
}

fn normalize_map(object: &ObjectSchema, map: &mut Map<String, Value>) {
    map.retain(|key, value| match object.fields.get(key) {
        Some(field) => {
            let schema = field.schema.schema();
            normalize(schema, value);
            if value.is_null() {
                field.zero == Some(Value::Null)
            } else {
                field.zero.is_some() || !is_left_out(schema, value)
            }
        }
        None => {
            if let Some(values) = &object.values {
                normalize(values.schema(), value);
                if value.is_null() && matches!(values.schema().shape, SchemaShape::Scalar(Scalar::Text)) {
                    *value = Value::String(String::new());
                }
            }
            true
        }
    });
    for (key, field) in &object.fields {
        if let Some(zero) = field.zero.as_ref().filter(|zero| !zero.is_array())
            && !map.contains_key(key)
        {
            let mut zero = zero.clone();
            normalize(field.schema.schema(), &mut zero);
            map.insert(key.clone(), zero);
        }
    }
}

/// Whether an empty list or map is omitted; an empty struct is kept.
fn is_left_out(schema: &Schema, value: &Value) -> bool {
    match (&schema.shape, value) {
        (SchemaShape::List(_), Value::Array(items)) => items.is_empty(),
        (SchemaShape::Object(object), Value::Object(map)) => map.is_empty() && object.fields.is_empty(),
        _ => false,
    }
}
