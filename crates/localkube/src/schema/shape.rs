//! The form in which Go writes what it has read.

use serde_json::{Map, Value};

use super::{Object, Scalar, Schema, Shape};

/// Gives an object of a built-in kind the form that the server stores: no nulls, no empty lists and maps, and those
/// structures that are always there.
pub fn settle(schema: &Schema, value: &mut Value) {
    match (&schema.shape, value) {
        (Shape::Object(object), Value::Object(map)) => settle_map(object, map),
        (Shape::List(list), Value::Array(items)) => {
            for item in items {
                settle(list.items.schema(), item);
            }
        }
        _ => {}
    }
}

fn settle_map(object: &Object, map: &mut Map<String, Value>) {
    map.retain(|key, value| match object.fields.get(key) {
        Some(field) => {
            let schema = field.schema.schema();
            settle(schema, value);
            if value.is_null() {
                field.zero == Some(Value::Null)
            } else {
                field.zero.is_some() || !is_left_out(schema, value)
            }
        }
        None => {
            if let Some(values) = &object.values {
                settle(values.schema(), value);
                if value.is_null() && matches!(values.schema().shape, Shape::Scalar(Scalar::Text)) {
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
            settle(field.schema.schema(), &mut zero);
            map.insert(key.clone(), zero);
        }
    }
}

/// An empty list, or an empty map; a structure that is there stays, however empty.
fn is_left_out(schema: &Schema, value: &Value) -> bool {
    match (&schema.shape, value) {
        (Shape::List(_), Value::Array(items)) => items.is_empty(),
        (Shape::Object(object), Value::Object(map)) => map.is_empty() && object.fields.is_empty(),
        _ => false,
    }
}
