//! Go's float syntax.

/// The error of [`parse_float`], with Go's message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("strconv.ParseFloat: parsing {}: {reason}", api::gotext::quote(text))]
pub struct ParseFloatError {
    text: String,
    reason: &'static str,
}

/// Parses a float like Go's `strconv.ParseFloat`.
pub(crate) fn parse_float(text: &str) -> Result<f64, ParseFloatError> {
    let refused = |reason| ParseFloatError { text: text.to_owned(), reason };
    let syntax = || refused("invalid syntax");
    let (sign, body) = match text.as_bytes().first() {
        Some(b'-') => (-1.0, text.get(1..).unwrap_or_default()),
        Some(b'+') => (1.0, text.get(1..).unwrap_or_default()),
        _ => (1.0, text),
    };
    let lower = body.to_ascii_lowercase();
    if matches!(lower.as_str(), "inf" | "infinity") {
        return Ok(sign * f64::INFINITY);
    }
    // `nan` has no sign.
    if text.eq_ignore_ascii_case("nan") {
        return Ok(f64::NAN);
    }
    let plain = without_separators(&lower).ok_or_else(syntax)?;
    let number = match plain.strip_prefix("0x") {
        Some(digits) => hexadecimal(digits).ok_or_else(syntax)?,
        None => decimal(&plain).ok_or_else(syntax)?,
    };
    if number.is_finite() { Ok(sign * number) } else { Err(refused("value out of range")) }
}

fn decimal(text: &str) -> Option<f64> {
    // Rust accepts words and signs that Go does not.
    let is_plain = text.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'.' | b'e' | b'+' | b'-'));
    let has_digits =
        text.split('e').next().is_some_and(|mantissa| mantissa.contains(|c: char| c.is_ascii_digit()));
    if !is_plain || !has_digits || text.starts_with(['+', '-']) {
        return None;
    }
    text.parse().ok()
}

/// `1.8p3`: the binary exponent is required.
fn hexadecimal(text: &str) -> Option<f64> {
    let (mantissa, exponent) = text.split_once('p')?;
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    if whole.is_empty() && fraction.is_empty() || exponent.is_empty() || text.len() > 100 {
        return None;
    }
    let mut number = 0.0;
    for digit in whole.chars().chain(fraction.chars()) {
        number = number * 16.0 + f64::from(digit.to_digit(16)?);
    }
    let exponent: i32 = exponent.parse().ok()?;
    let exponent = exponent.checked_sub(i32::try_from(fraction.len()).ok()? * 4)?;
    Some(number * 2f64.powi(exponent))
}

/// Underscores are allowed between digits and after `0x`.
fn without_separators(text: &str) -> Option<String> {
    if !text.contains('_') {
        return Some(text.to_owned());
    }
    let (prefix, digits) = text.split_at(if text.starts_with("0x") { 2 } else { 0 });
    let is_digit = |b: Option<&u8>| {
        b.is_some_and(|b| if prefix.is_empty() { b.is_ascii_digit() } else { b.is_ascii_hexdigit() })
    };
    let bytes = digits.as_bytes();
    let fits = bytes.iter().enumerate().all(|(index, byte)| {
        let before = index.checked_sub(1).map(|index| bytes.get(index));
        let after_digit = match before {
            None => !prefix.is_empty(),
            Some(before) => is_digit(before),
        };
        *byte != b'_' || (after_digit && is_digit(bytes.get(index + 1)))
    });
    fits.then(|| text.replace('_', ""))
}
