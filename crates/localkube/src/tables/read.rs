//! Accessors for the cells of tables.

use jiff::Timestamp;
use serde_json::Value;

pub(super) use crate::json::{at, list as items, text};

/// A string, or an empty one.
pub(super) fn plain(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// The number at a path, or zero.
pub(super) fn number(object: &Value, path: &str) -> i64 {
    at(object, path).as_i64().unwrap_or_default()
}

/// The number of entries of a map.
pub(super) fn size(object: &Value, path: &str) -> usize {
    at(object, path).as_object().map_or(0, serde_json::Map::len)
}

/// The time at a path.
pub(super) fn instant(object: &Value, path: &str) -> Option<Timestamp> {
    at(object, path).as_str().and_then(|text| api::instant::parse(text).ok().flatten())
}

/// A text, or a default for an empty one.
pub(super) fn or<'a>(text: &'a str, otherwise: &'a str) -> &'a str {
    if text.is_empty() { otherwise } else { text }
}

/// Whether a status condition is true.
pub(super) fn holds(object: &Value, condition: &str) -> bool {
    items(object, "status.conditions")
        .iter()
        .any(|c| text(c, "type") == condition && text(c, "status") == "True")
}

/// The name cell.
pub(super) fn name(object: &Value) -> Value {
    text(object, "metadata.name").into()
}

/// The age cell.
pub(super) fn age(object: &Value, now: Timestamp) -> Value {
    api::age::since(instant(object, "metadata.creationTimestamp"), now).into()
}
