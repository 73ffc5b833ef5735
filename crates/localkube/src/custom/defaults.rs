//! Applies the defaults of a schema, and drops nulls that are not allowed.

use serde_json::{Map, Value};

use super::node::{AdditionalProperties, SchemaNode};

/// The fields of every object that a schema cannot default.
const ENVELOPE_FIELDS: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// Applies the defaults of a schema to an object.
pub(crate) fn apply(node: &SchemaNode, object: &mut Value) {
    if let Value::Object(fields) = object {
        let kept: Vec<(String, Value)> = ENVELOPE_FIELDS
            .iter()
            .filter_map(|name| fields.get(*name).map(|v| ((*name).to_owned(), v.clone())))
            .collect();
        fill_fields(node, fields);
        for name in ENVELOPE_FIELDS {
            match kept.iter().find(|(kept, _)| kept == name) {
                Some((_, value)) => drop(fields.insert(name.to_owned(), value.clone())),
                None => drop(fields.shift_remove(name)),
            }
        }
    }
}

fn fill(node: &SchemaNode, value: &mut Value) {
    match value {
        Value::Object(fields) => fill_fields(node, fields),
        Value::Array(items) => {
            let Some(inner) = &node.items else { return };
            for item in items {
                if item.is_null()
                    && !inner.nullable
                    && let Some(default) = &inner.default
                {
                    *item = default.clone();
                }
                fill(inner, item);
            }
        }
        _ => {}
    }
}

fn fill_fields(node: &SchemaNode, fields: &mut Map<String, Value>) {
    for (name, inner) in &node.properties {
        if !inner.nullable && fields.get(name).is_some_and(Value::is_null) {
            fields.shift_remove(name);
        }
        if let Some(default) = &inner.default
            && !fields.contains_key(name)
        {
            fields.insert(name.clone(), default.clone());
        }
        if let Some(value) = fields.get_mut(name) {
            fill(inner, value);
        }
    }
    if let AdditionalProperties::Like(inner) = &node.additional {
        fields.retain(|_, value| inner.nullable || !value.is_null());
        fields.values_mut().for_each(|value| fill(inner, value));
    }
}
