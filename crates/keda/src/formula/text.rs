//! Go's string and number formats.

use super::error::EvalError;

/// Resolves the escapes of a quoted text.
pub(super) fn unescaped(raw: &str) -> Result<String, EvalError> {
    if raw.contains('\n') {
        return Err("literal not terminated".into());
    }
    if !raw.contains('\\') {
        return Ok(raw.to_owned());
    }
    let mut out = String::with_capacity(raw.len());
    let mut rest = raw.chars();
    while let Some(c) = rest.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        let escape = rest.next().ok_or_else(invalid)?;
        match escape {
            'a' => out.push('\u{7}'),
            'b' => out.push('\u{8}'),
            'f' => out.push('\u{c}'),
            'n' => out.push('\n'),
            'r' => out.push('\r'),
            't' => out.push('\t'),
            'v' => out.push('\u{b}'),
            '\\' | '\'' | '"' | '`' | '?' => out.push(escape),
            'x' | 'X' => out.push(code(&mut rest, 2, 16)?),
            'u' if rest.as_str().starts_with('{') => {
                let end = rest.as_str().find('}').ok_or_else(invalid)?;
                let digits = rest.as_str().get(1..end).ok_or_else(invalid)?;
                out.push(u32::from_str_radix(digits, 16).ok().and_then(char::from_u32).ok_or_else(invalid)?);
                rest = rest.as_str().get(end + 1..).unwrap_or_default().chars();
            }
            'u' => out.push(code(&mut rest, 4, 16)?),
            'U' => out.push(code(&mut rest, 8, 16)?),
            '0'..='3' => {
                let first = escape.to_digit(8).unwrap_or_default() * 64;
                let others = code(&mut rest, 2, 8)? as u32;
                out.push(char::from_u32(first + others).ok_or_else(invalid)?);
            }
            _ => return Err(invalid()),
        }
    }
    Ok(out)
}

fn invalid() -> EvalError {
    "invalid char escape".into()
}

fn code(rest: &mut std::str::Chars<'_>, digits: usize, base: u32) -> Result<char, EvalError> {
    let mut number = 0u32;
    for _ in 0..digits {
        let digit = rest.next().and_then(|c| c.to_digit(base)).ok_or_else(invalid)?;
        number = number.wrapping_mul(base).wrapping_add(digit);
    }
    char::from_u32(number).ok_or_else(invalid)
}

/// A float in Go's shortest form (`%v`): with an exponent below 1e-4 and from 1e21 on.
pub(super) fn float(number: f64) -> String {
    if number.is_nan() {
        return "NaN".to_owned();
    }
    if number.is_infinite() {
        return if number > 0.0 { "+Inf" } else { "-Inf" }.to_owned();
    }
    let size = number.abs();
    if size != 0.0 && !(1e-4..1e21).contains(&size) {
        return with_exponent(number);
    }
    format!("{number}")
}

/// A float in JSON as Go writes it: with an exponent below 1e-6 and from 1e21 on.
pub(super) fn json_float(number: f64) -> String {
    let size = number.abs();
    if size != 0.0 && !(1e-6..1e21).contains(&size) {
        // `1e-07` is `1e-7` in JSON.
        return with_exponent(number).replace("e-0", "e-");
    }
    format!("{number}")
}

/// `1e+21`: two digits of exponent at least, and its sign.
fn with_exponent(number: f64) -> String {
    let text = format!("{number:e}");
    let Some((digits, exponent)) = text.split_once('e') else {
        return text;
    };
    let (sign, exponent) = exponent.strip_prefix('-').map_or(('+', exponent), |rest| ('-', rest));
    format!("{digits}e{sign}{exponent:0>2}")
}

/// `1m30s`, `1.5ms`, `0s`.
pub(super) fn span_text(nanoseconds: i64) -> String {
    api::time::go_duration(jiff::SignedDuration::from_nanos(nanoseconds))
}
