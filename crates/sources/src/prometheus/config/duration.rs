//! Durations in the syntax of Prometheus.

use std::time::Duration;

/// Units in their mandatory order, in milliseconds.
const UNITS: [(&str, u64); 7] = [
    ("y", 365 * 24 * 60 * 60 * 1000),
    ("w", 7 * 24 * 60 * 60 * 1000),
    ("d", 24 * 60 * 60 * 1000),
    ("h", 60 * 60 * 1000),
    ("m", 60 * 1000),
    ("s", 1000),
    ("ms", 1),
];

/// A duration must fit into 63 bits of nanoseconds.
const MAX_MILLIS: u64 = i64::MAX as u64 / 1_000_000;

/// Why a duration is not valid, in the words of Prometheus.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum DurationError {
    #[error("empty duration string")]
    Empty,
    #[error("not a valid duration string: {0:?}")]
    Syntax(String),
    #[error("unknown unit {unit:?} in duration {text:?}")]
    Unit { unit: String, text: String },
    #[error("duration out of range: {0:?}")]
    Range(String),
}

/// Parses `5m`, `1h30m`, `0`; every unit at most once, longer units first.
pub(super) fn parse(text: &str) -> Result<Duration, DurationError> {
    match text {
        "" => return Err(DurationError::Empty),
        "0" => return Ok(Duration::ZERO),
        _ => {}
    }
    let invalid = || DurationError::Syntax(text.to_owned());
    let mut rest = text;
    let mut next = 0;
    let mut total: u64 = 0;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).ok_or_else(invalid)?;
        let (number, behind) = rest.split_at(digits);
        let end = behind.find(|c: char| c.is_ascii_digit()).unwrap_or(behind.len());
        let (unit, behind) = behind.split_at(end);
        if number.is_empty() {
            return Err(invalid());
        }
        let known = UNITS.iter().position(|(name, _)| *name == unit);
        let index =
            known.ok_or_else(|| DurationError::Unit { unit: unit.to_owned(), text: text.to_owned() })?;
        if index < next {
            return Err(invalid());
        }
        next = index + 1;
        let millis = UNITS.get(index).map_or(0, |(_, millis)| *millis);
        let part = number.parse::<u64>().ok().and_then(|number| number.checked_mul(millis));
        total = part
            .and_then(|part| total.checked_add(part))
            .filter(|total| *total <= MAX_MILLIS)
            .ok_or_else(|| DurationError::Range(text.to_owned()))?;
        rest = behind;
    }
    Ok(Duration::from_millis(total))
}
