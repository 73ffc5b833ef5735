//! Texts of decoding errors.

use serde::de::Unexpected;

use crate::yaml::problem::shortened;
use crate::yaml::{NodeValue, nearest};

/// Maximum number of listed alternatives.
const MAX_LISTED_NAMES: usize = 8;

/// The hint for a misspelt name.
pub(super) fn did_you_mean(name: &str, known: &[&str]) -> Option<String> {
    nearest(name, known.iter().copied()).map(meant)
}

pub(super) fn meant(name: &str) -> String {
    format!("did you mean `{name}`?")
}

pub(super) fn listed(known: &[&str]) -> String {
    let names: Vec<String> = known.iter().take(MAX_LISTED_NAMES).map(|name| format!("`{name}`")).collect();
    let more = if known.len() > MAX_LISTED_NAMES { ", …" } else { "" };
    format!("one of {}{more}", names.join(", "))
}

pub(super) fn describe(value: &NodeValue) -> String {
    match value {
        NodeValue::Null => "nothing".to_owned(),
        NodeValue::Bool(truth) => truth.to_string(),
        NodeValue::Int(integer) => format!("the integer {integer}"),
        NodeValue::Float(float) => format!("the number {float}"),
        NodeValue::String(text) => format!("the string \"{}\"", shortened(text)),
        NodeValue::Seq(_) => "a list".to_owned(),
        NodeValue::Map(_) => "a map".to_owned(),
    }
}

/// The source text of a scalar that is not a string.
pub(super) fn written(value: &NodeValue, raw: &str) -> Option<String> {
    match value {
        NodeValue::Float(_) => Some(format!("the number {}", shortened(raw))),
        NodeValue::Bool(_) | NodeValue::Int(_) => {
            let meaning = describe(value);
            Some(if meaning.ends_with(raw) {
                meaning
            } else {
                format!("`{}`, which means {meaning}", shortened(raw))
            })
        }
        _ => None,
    }
}

pub(super) fn unexpected(found: Unexpected<'_>) -> String {
    match found {
        Unexpected::Bool(truth) => truth.to_string(),
        Unexpected::Unsigned(integer) => format!("the integer {integer}"),
        Unexpected::Signed(integer) => format!("the integer {integer}"),
        Unexpected::Float(float) => format!("the number {float}"),
        Unexpected::Str(text) => format!("the string \"{}\"", shortened(text)),
        Unexpected::Unit | Unexpected::Option => "nothing".to_owned(),
        Unexpected::Seq => "a list".to_owned(),
        Unexpected::Map => "a map".to_owned(),
        other => other.to_string(),
    }
}

/// Serde's description of an expected value, in the terms of YAML.
pub(super) fn wanted(expected: &str) -> String {
    let words = match expected {
        _ if range(expected).is_some() => "an integer",
        "f32" | "f64" => "a number",
        "a boolean" => "true or false",
        "a sequence" => "a list",
        "unit" => "nothing",
        "variant identifier" | "field identifier" => "a name",
        _ if expected.starts_with("struct ") => "a map",
        _ if expected.starts_with("internally tagged enum ") => "a map",
        _ => expected,
    };
    match words.strip_prefix("a tuple of size ") {
        Some(length) => format!("a list of {length}"),
        None => words.to_owned(),
    }
}

pub(super) fn range(integer: &str) -> Option<&'static str> {
    Some(match integer {
        "i8" => "-128 to 127",
        "i16" => "-32768 to 32767",
        "i32" => "-2147483648 to 2147483647",
        "i64" | "isize" => "-9223372036854775808 to 9223372036854775807",
        "u8" => "0 to 255",
        "u16" => "0 to 65535",
        "u32" => "0 to 4294967295",
        "u64" | "usize" => "0 to 18446744073709551615",
        _ => return None,
    })
}
