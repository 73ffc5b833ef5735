//! Merge patch: maps are merged, `null` removes, everything else replaces.

use serde_json::{Map, Value};

/// Applies a merge patch.
pub(crate) fn apply(object: &mut Value, patch: &Value) {
    let Value::Object(changes) = patch else {
        patch.clone_into(object);
        return;
    };
    if !object.is_object() {
        *object = Value::Object(Map::new());
    }
    let Value::Object(map) = object else { return };
    for (key, change) in changes {
        if change.is_null() {
            map.shift_remove(key);
        } else {
            apply(map.entry(key.as_str()).or_insert(Value::Null), change);
        }
    }
}
