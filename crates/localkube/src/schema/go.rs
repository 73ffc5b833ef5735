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

/// A floating point number in Go's shortest form, with an exponent if that is below -4 or at least `exponent_from`.
pub(crate) fn float(number: f64, exponent_from: i32) -> String {
    let scientific = format!("{number:e}");
    match scientific.split_once('e').map(|(digits, exponent)| (digits, exponent.parse::<i32>())) {
        Some((digits, Ok(exponent))) if !(-4..exponent_from).contains(&exponent) => {
            let sign = if exponent < 0 { '-' } else { '+' };
            format!("{digits}e{sign}{:02}", exponent.abs())
        }
        _ => number.to_string(),
    }
}
