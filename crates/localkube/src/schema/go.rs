//! Go's names and formatting of values.

pub(crate) use api::decode::kind_word as word;
use serde_json::Value;

/// Formats a value with `%v`.
pub(crate) fn print(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(items) => print_list(items),
        Value::Object(map) => {
            let mut pairs: Vec<_> = map.iter().collect();
            pairs.sort_by_key(|(key, _)| *key);
            let pairs: Vec<String> =
                pairs.iter().map(|(key, value)| format!("{key}:{}", print(value))).collect();
            format!("map[{}]", pairs.join(" "))
        }
        other => other.to_string(),
    }
}

/// Formats a list with `%v`.
pub(crate) fn print_list(items: &[Value]) -> String {
    let items: Vec<String> = items.iter().map(print).collect();
    format!("[{}]", items.join(" "))
}
