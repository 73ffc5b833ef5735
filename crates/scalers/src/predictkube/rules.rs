//! Checks of PredictKube's parameters, without IO.

use api::gotext::quote;

use crate::ParseError;
use crate::urls::{host, is_request_uri};

/// Units of durations, longest first.
const UNITS: [&str; 9] = ["ns", "us", "µs", "ms", "s", "m", "h", "d", "w"];

/// Checks a duration in the notation of Go, with days and weeks.
pub(super) fn check_duration(name: &str, text: &str) -> Result<(), ParseError> {
    let wrong = |why: &str| format!("{name} parsing error time: {why} {}", quote(text)).into();
    let mut rest = text.strip_prefix(['-', '+']).unwrap_or(text);
    if rest == "0" {
        return Ok(());
    }
    if rest.is_empty() {
        return Err(wrong("invalid duration"));
    }
    while !rest.is_empty() {
        let unit = rest.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
        if unit.len() == rest.len() || rest.starts_with('.') && rest.len() - unit.len() == 1 {
            return Err(wrong("invalid duration"));
        }
        if unit.is_empty() {
            return Err(wrong("missing unit in duration"));
        }
        let end = unit.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(unit.len());
        let (letters, after) = unit.split_at_checked(end).unwrap_or((unit, ""));
        if !UNITS.contains(&letters) {
            return Err(wrong("unknown unit in duration"));
        }
        rest = after;
    }
    Ok(())
}

/// The seconds of a duration that was checked.
pub(super) fn seconds(text: &str) -> f64 {
    let (sign, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (-1.0, rest),
        None => (1.0, text.strip_prefix('+').unwrap_or(text)),
    };
    let mut sum = 0.0;
    while !rest.is_empty() {
        let begin = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let (number, unit) = rest.split_at_checked(begin).unwrap_or_default();
        let end = unit.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(unit.len());
        let (letters, after) = unit.split_at_checked(end).unwrap_or_default();
        let factor = match letters {
            "ns" => 1e-9,
            "us" | "µs" => 1e-6,
            "ms" => 1e-3,
            "s" => 1.0,
            "m" => 60.0,
            "h" => 3600.0,
            "d" => 86_400.0,
            "w" => 604_800.0,
            _ => 0.0,
        };
        sum += factor * number.parse().unwrap_or(0.0);
        rest = after;
    }
    sign * sum
}

/// Whether a text is a URL with a scheme and a host.
pub(super) fn is_absolute_url(text: &str) -> bool {
    is_request_uri(text) && !host(text).is_empty()
}

/// Whether a text looks like a JSON Web Token: three parts in base64, of which the last may be empty.
pub(super) fn is_token(text: &str) -> bool {
    let parts: Vec<&str> = text.split('.').collect();
    let plain = |part: &&str| part.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c));
    parts.len() == 3 && parts.iter().all(plain) && parts.iter().take(2).all(|part| !part.is_empty())
}
