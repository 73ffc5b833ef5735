//! Values of unquoted scalars: the YAML 1.1 rules as sigs.k8s.io/yaml, and so kubectl, applies them.

use super::NodeValue;

/// The value of a plain scalar. Timestamps stay text; `.inf` and `.nan` are floats here.
pub(super) fn resolve(text: &str) -> NodeValue {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => NodeValue::Null,
        "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => {
            NodeValue::Bool(true)
        }
        "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => {
            NodeValue::Bool(false)
        }
        ".nan" | ".NaN" | ".NAN" => NodeValue::Float(f64::NAN),
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => NodeValue::Float(f64::INFINITY),
        "-.inf" | "-.Inf" | "-.INF" => NodeValue::Float(f64::NEG_INFINITY),
        _ => number(text).unwrap_or_else(|| NodeValue::String(text.to_owned())),
    }
}

/// The value of a scalar with a core tag such as `!!int`; `None` if the text does not fit it.
pub(super) fn tagged(tag: &str, text: &str) -> Option<NodeValue> {
    match (tag, resolve(text)) {
        ("str" | "timestamp", _) => Some(NodeValue::String(text.to_owned())),
        ("float", NodeValue::Int(integer)) => Some(NodeValue::Float(integer as f64)),
        ("null", value @ NodeValue::Null)
        | ("bool", value @ NodeValue::Bool(_))
        | ("int", value @ NodeValue::Int(_))
        | ("float", value @ NodeValue::Float(_)) => Some(value),
        _ => None,
    }
}

fn number(text: &str) -> Option<NodeValue> {
    match text.as_bytes().first()? {
        b'.' => float(&between_digits(text)?).map(NodeValue::Float),
        b'0'..=b'9' | b'+' | b'-' => {
            let plain = text.replace('_', "");
            integer(&plain).map(NodeValue::Int).or_else(|| float(&plain).map(NodeValue::Float))
        }
        _ => None,
    }
}

/// Decimal, `0x`, `0o`, `0b`, or octal by a leading zero, within 64 bits.
fn integer(plain: &str) -> Option<i128> {
    let unsigned = plain.trim_start_matches(['+', '-']);
    let (sign, limit) = match plain.len() - unsigned.len() {
        0 => (1, u128::from(u64::MAX)),
        1 if plain.starts_with('-') => (-1, 1 << 63),
        1 => (1, (1 << 63) - 1),
        _ => return None,
    };
    let (radix, digits) = match unsigned.as_bytes() {
        [b'0', b'x' | b'X', ..] => (16, unsigned.get(2..)?),
        [b'0', b'o' | b'O', ..] => (8, unsigned.get(2..)?),
        // Go's reader also accepts a sign after `0b`.
        [b'0', b'b', b'+' | b'-', ..] if sign == 1 => {
            return i64::from_str_radix(unsigned.get(2..)?, 2).ok().map(i128::from);
        }
        [b'0', b'b' | b'B', ..] => (2, unsigned.get(2..)?),
        [b'0', _, ..] => (8, unsigned.get(1..)?),
        _ => (10, unsigned),
    };
    let digits = (!digits.starts_with('+')).then_some(digits)?;
    let value = u128::from_str_radix(digits, radix).ok().filter(|value| *value <= limit)?;
    Some(sign * value as i128)
}

/// Decimal floats. A number that overflows is text.
fn float(plain: &str) -> Option<f64> {
    let decimal = plain.bytes().all(|b| matches!(b, b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-'));
    plain.parse().ok().filter(|value: &f64| decimal && value.is_finite())
}

/// After a leading dot, underscores are allowed only between digits.
fn between_digits(text: &str) -> Option<String> {
    let digit =
        |index: Option<usize>| index.and_then(|i| text.as_bytes().get(i)).is_some_and(u8::is_ascii_digit);
    let fits = text.match_indices('_').all(|(i, _)| digit(i.checked_sub(1)) && digit(i.checked_add(1)));
    fits.then(|| text.replace('_', ""))
}
