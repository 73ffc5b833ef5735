//! Unknown fields.

use serde_json::Value;

use super::{Schema, SchemaCursor};

/// The paths of unknown fields as the API server names them: `spec.containers[0].foo`.
pub fn unknown_fields(schema: &Schema, value: &Value) -> Vec<String> {
    let mut found = Vec::new();
    check(SchemaCursor::Known(schema), value, &mut String::new(), &mut found);
    if schema.name.is_empty() {
        // Custom resources are pruned first; their metadata is decoded afterwards.
        let is_metadata =
            |path: &str| path.rsplit_once('.').is_some_and(|(above, _)| above.ends_with("metadata"));
        found.sort_by(|one, other| (is_metadata(one), one).cmp(&(is_metadata(other), other)));
    }
    found
}

/// Drops unknown fields.
pub fn prune(schema: &Schema, value: &mut Value) {
    drop_unknown(SchemaCursor::Known(schema), value);
}

fn check(cursor: SchemaCursor<'_>, value: &Value, path: &mut String, found: &mut Vec<String>) {
    let end = path.len();
    match value {
        Value::Object(map) if is_looked_into(cursor) => {
            for (key, value) in map {
                if end > 0 {
                    path.push('.');
                }
                path.push_str(key);
                match cursor.field(key) {
                    SchemaCursor::Unknown => found.push(path.clone()),
                    below => check(below, value, path, found),
                }
                path.truncate(end);
            }
        }
        Value::Array(items) => {
            let Some(list) = cursor.list() else { return };
            for (index, item) in items.iter().enumerate() {
                path.push_str(&format!("[{index}]"));
                check(SchemaCursor::Known(list.items.schema()), item, path, found);
                path.truncate(end);
            }
        }
        _ => {}
    }
}

fn drop_unknown(cursor: SchemaCursor<'_>, value: &mut Value) {
    match value {
        Value::Object(map) if is_looked_into(cursor) => map.retain(|key, value| {
            let below = cursor.field(key);
            drop_unknown(below, value);
            !matches!(below, SchemaCursor::Unknown)
        }),
        Value::Array(items) => {
            if let Some(list) = cursor.list() {
                for item in items {
                    drop_unknown(SchemaCursor::Known(list.items.schema()), item);
                }
            }
        }
        _ => {}
    }
}

/// Only objects with a declared struct are inspected; wrong types are reported elsewhere.
fn is_looked_into(cursor: SchemaCursor<'_>) -> bool {
    matches!(cursor, SchemaCursor::Known(Schema { shape: super::SchemaShape::Object(_), .. }))
}
