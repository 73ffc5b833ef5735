//! Fields that no schema knows.

use serde_json::Value;

use super::{Place, Schema};

/// The paths of fields that are not known, as the API server names them: `spec.containers[0].foo`.
pub fn unknown_fields(schema: &Schema, value: &Value) -> Vec<String> {
    let mut found = Vec::new();
    look(Place::Known(schema), value, &mut String::new(), &mut found);
    if schema.name.is_empty() {
        // Custom resources are pruned first and their metadata is read after that.
        let is_metadata =
            |path: &str| path.rsplit_once('.').is_some_and(|(above, _)| above.ends_with("metadata"));
        found.sort_by(|one, other| (is_metadata(one), one).cmp(&(is_metadata(other), other)));
    }
    found
}

/// Drops the fields that are not known.
pub fn prune(schema: &Schema, value: &mut Value) {
    drop_unknown(Place::Known(schema), value);
}

fn look(place: Place<'_>, value: &Value, path: &mut String, found: &mut Vec<String>) {
    let end = path.len();
    match value {
        Value::Object(map) if is_looked_into(place) => {
            for (key, value) in map {
                if end > 0 {
                    path.push('.');
                }
                path.push_str(key);
                match place.field(key) {
                    Place::Unknown => found.push(path.clone()),
                    below => look(below, value, path, found),
                }
                path.truncate(end);
            }
        }
        Value::Array(items) => {
            let Some(list) = place.list() else { return };
            for (index, item) in items.iter().enumerate() {
                path.push_str(&format!("[{index}]"));
                look(Place::Known(list.items.schema()), item, path, found);
                path.truncate(end);
            }
        }
        _ => {}
    }
}

fn drop_unknown(place: Place<'_>, value: &mut Value) {
    match value {
        Value::Object(map) if is_looked_into(place) => map.retain(|key, value| {
            let below = place.field(key);
            drop_unknown(below, value);
            !matches!(below, Place::Unknown)
        }),
        Value::Array(items) => {
            if let Some(list) = place.list() {
                for item in items {
                    drop_unknown(Place::Known(list.items.schema()), item);
                }
            }
        }
        _ => {}
    }
}

/// Only where a structure is declared and a structure is found; a wrong type is another mistake.
fn is_looked_into(place: Place<'_>) -> bool {
    matches!(place, Place::Known(Schema { shape: super::Shape::Object(_), .. }))
}
