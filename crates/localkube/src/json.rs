//! Accessors for JSON with optional fields. Paths are field names with dots: `status.phase`.

use serde_json::Value;

/// The value at a path; null if it is absent.
pub(crate) fn at<'a>(value: &'a Value, path: &str) -> &'a Value {
    path.split('.').try_fold(value, |value, key| value.get(key)).unwrap_or(&Value::Null)
}

/// Whether a value is set.
pub(crate) fn has(value: &Value, path: &str) -> bool {
    !at(value, path).is_null()
}

/// The string at a path; empty if it is absent.
pub(crate) fn text<'a>(value: &'a Value, path: &str) -> &'a str {
    at(value, path).as_str().unwrap_or_default()
}

/// The number at a path.
pub(crate) fn number(value: &Value, path: &str) -> Option<i64> {
    at(value, path).as_i64()
}

/// Whether a flag is set.
pub(crate) fn flag(value: &Value, path: &str) -> bool {
    at(value, path).as_bool().unwrap_or_default()
}

/// The items of the list at a path.
pub(crate) fn list<'a>(value: &'a Value, path: &str) -> &'a [Value] {
    at(value, path).as_array().map_or(&[], Vec::as_slice)
}

/// The strings of a list.
pub(crate) fn texts<'a>(value: &'a Value, path: &str) -> impl Iterator<Item = &'a str> {
    list(value, path).iter().filter_map(Value::as_str)
}

/// The strings of a list, owned.
pub(crate) fn strings(value: &Value, path: &str) -> Vec<String> {
    texts(value, path).map(str::to_owned).collect()
}

/// The entries of a map, sorted by key.
pub(crate) fn entries<'a>(value: &'a Value, path: &str) -> Vec<(&'a str, &'a Value)> {
    let mut entries: Vec<_> =
        at(value, path).as_object().into_iter().flatten().map(|(key, value)| (key.as_str(), value)).collect();
    entries.sort_by_key(|(key, _)| *key);
    entries
}
