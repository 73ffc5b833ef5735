//! Merge patch: maps are merged, `null` removes, everything else replaces.

use serde_json::{Map, Value};

pub(super) fn apply(object: Value, patch: &Value) -> Value {
    let Value::Object(changes) = patch else { return patch.clone() };
    let mut map = match object {
        Value::Object(map) => map,
        _ => Map::new(),
    };
    for (key, change) in changes {
        if change.is_null() {
            map.shift_remove(key);
        } else {
            let old = map.get_mut(key).map_or(Value::Null, Value::take);
            map.insert(key.clone(), apply(old, change));
        }
    }
    Value::Object(map)
}
