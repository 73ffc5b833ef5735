//! Sample values and times in the syntax of Prometheus.

/// Parses a sample value like `strconv.ParseFloat` of Go; `None` if it is malformed or overflows.
pub(crate) fn value(text: &str) -> Option<f64> {
    let plain = text.trim_start_matches(['+', '-']);
    if text.len() - plain.len() > 1 {
        return None;
    }
    if let Some(digits) = plain.strip_prefix("0x").or_else(|| plain.strip_prefix("0X")) {
        let magnitude = hexadecimal(digits)?;
        return Some(if text.starts_with('-') { -magnitude } else { magnitude });
    }
    let parsed: f64 =
        if text.contains('_') { without_underscores(text)?.parse() } else { text.parse() }.ok()?;
    // Go reads a sign before infinity, but not before `NaN`.
    if parsed.is_nan() && plain.len() < text.len() {
        return None;
    }
    // `1e400` is an overflow, `+Inf` is a value.
    let overflows =
        parsed.is_infinite() && plain.starts_with(|first: char| first.is_ascii_digit() || first == '.');
    (!overflows).then_some(parsed)
}

/// Removes underscores, which must stand between digits.
fn without_underscores(text: &str) -> Option<String> {
    let bytes = text.as_bytes();
    let digit = |at: Option<usize>| at.and_then(|at| bytes.get(at)).is_some_and(u8::is_ascii_digit);
    let good = bytes
        .iter()
        .enumerate()
        .filter(|(_, byte)| **byte == b'_')
        .all(|(at, _)| digit(at.checked_sub(1)) && digit(Some(at + 1)));
    good.then(|| text.replace('_', ""))
}

/// Parses the text after `0x`: digits, an optional point, and a mandatory binary exponent.
fn hexadecimal(text: &str) -> Option<f64> {
    let (mantissa, exponent) = text.split_once(['p', 'P'])?;
    let exponent: i32 = exponent.parse().ok()?;
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let mut value = 0.0_f64;
    for digit in whole.chars().chain(fraction.chars()) {
        value = value.mul_add(16.0, f64::from(digit.to_digit(16)?));
    }
    let places = i32::try_from(fraction.len()).ok()?.checked_mul(4)?;
    let value = value * 2.0_f64.powi(exponent.checked_sub(places)?);
    value.is_finite().then_some(value)
}

/// Milliseconds since the epoch from decimal seconds. Further digits and an exponent are cut off, as in the
/// Prometheus library.
pub(crate) fn milliseconds(text: &str) -> Option<i64> {
    let (seconds, fraction) = text.split_once('.').unwrap_or((text, ""));
    let whole = seconds.parse::<i64>().ok()?.checked_mul(1000)?;
    if fraction.is_empty() {
        return Some(whole);
    }
    let mut digits: String = fraction.chars().take(3).collect();
    while digits.len() < 3 {
        digits.push('0');
    }
    let part: i64 = digits.parse().ok()?;
    // The sign of `-0.5` is lost with the zero.
    let lost = seconds.starts_with('-') && whole == 0;
    if lost { Some(-part) } else { whole.checked_add(part) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_values_as_go_does() {
        for (text, expected) in [
            ("0", 0.0),
            ("-1.5", -1.5),
            ("1E3", 1000.0),
            ("1_000", 1000.0),
            ("+Inf", f64::INFINITY),
            ("-Inf", f64::NEG_INFINITY),
            ("1e-320", 1e-320),
            ("0x1p4", 16.0),
            ("-0x1.8p1", -3.0),
        ] {
            assert_eq!(value(text), Some(expected), "{text}");
        }
        assert!(value("NaN").is_some_and(f64::is_nan));
        for bad in [
            "", "abc", "100m", "0x10", "1e400", "_1", "1_", "1__0", "1._5", "--1", "0xp1", " 1", "+NaN",
            "-nan",
        ] {
            assert_eq!(value(bad), None, "{bad}");
        }
    }

    #[test]
    fn reads_times_by_their_digits() {
        for (text, expected) in [
            ("1767225590.5", 1_767_225_590_500),
            ("1767225590.98765", 1_767_225_590_987),
            ("0", 0),
            ("-1.5", -500),
            ("-0.5", -500),
            ("1.7672255905e9", 1767),
        ] {
            assert_eq!(milliseconds(text), Some(expected), "{text}");
        }
        for bad in ["", "1e9", "9223372036854775807", "1.5e"] {
            assert_eq!(milliseconds(bad), None, "{bad}");
        }
    }
}
