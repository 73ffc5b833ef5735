//! The parts of a pass that vary: numbers, times, durations and texts.

use std::borrow::Cow;

use jiff::{SignedDuration, Timestamp};

use super::canonical;

/// Stands for a leaf in a shape. JSON has no unescaped control characters, so that these bytes are free.
pub(super) const HOLES: std::ops::RangeInclusive<u8> = 1..=5;

/// A leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Leaf {
    Int(i64),
    /// The bits of a float.
    Float(u64),
    /// Nanoseconds since 1970.
    Time(i64),
    /// Nanoseconds.
    Span(i64),
    /// The index of a text.
    Text(u32),
}

impl Leaf {
    /// The byte that stands for it in a shape.
    pub(super) fn hole(self) -> u8 {
        match self {
            Self::Int(_) => 1,
            Self::Float(_) => 2,
            Self::Time(_) => 3,
            Self::Span(_) => 4,
            Self::Text(_) => 5,
        }
    }

    /// Its value as bits.
    pub(super) fn bits(self) -> u64 {
        match self {
            Self::Int(value) | Self::Time(value) | Self::Span(value) => value as u64,
            Self::Float(bits) => bits,
            Self::Text(index) => index.into(),
        }
    }

    /// What a leaf is before there is a pass with it.
    pub(super) fn zero(hole: u8) -> Option<Self> {
        Some(match hole {
            1 => Self::Int(0),
            2 => Self::Float(0),
            3 => Self::Time(0),
            4 => Self::Span(0),
            5 => Self::Text(0),
            _ => return None,
        })
    }

    /// The leaf of a JSON number, if it is printed as it was written.
    pub(super) fn of_number(text: &str) -> Option<Self> {
        if text.bytes().any(|byte| matches!(byte, b'.' | b'e' | b'E')) {
            let float: f64 = text.parse().ok()?;
            let leaf = Self::Float(float.to_bits());
            return (leaf.print()? == text).then_some(leaf);
        }
        integer(text).map(Self::Int)
    }

    /// The leaf of the time or duration in a JSON string, if it is printed as it was written.
    pub(super) fn of_time(text: &str) -> Option<Self> {
        match text.as_bytes() {
            [b'P', b'T', rest @ ..] => canonical::duration(rest).map(Self::Span),
            [b'-', b'P', b'T', rest @ ..] => {
                canonical::duration(rest).filter(|nanos| *nanos != 0).map(|nanos| Self::Span(-nanos))
            }
            [b'0'..=b'9', _, _, _, b'-', .., b'Z'] => canonical::time(text.as_bytes()).map(Self::Time),
            _ => None,
        }
    }

    /// The leaf of a quantity in a JSON string such as `305m`, and its suffix.
    pub(super) fn of_quantity(text: &str) -> Option<(Self, &str)> {
        let [b'-' | b'0'..=b'9', ..] = text.as_bytes() else { return None };
        let end = text.bytes().position(|byte| byte.is_ascii_alphabetic()).unwrap_or(text.len());
        let (number, suffix) = text.split_at_checked(end)?;
        let short = suffix.len() <= 2 && suffix.bytes().all(|byte| byte.is_ascii_alphabetic());
        if short { Some((Self::Int(integer(number)?), suffix)) } else { None }
    }

    /// The text of a leaf that is no text itself.
    pub(super) fn print(self) -> Option<String> {
        match self {
            Self::Int(value) => Some(value.to_string()),
            Self::Float(bits) => serde_json::to_string(&f64::from_bits(bits)).ok(),
            Self::Time(nanos) => Timestamp::from_nanosecond(nanos.into()).ok().map(|time| time.to_string()),
            Self::Span(nanos) => Some(SignedDuration::from_nanos(nanos).to_string()),
            Self::Text(_) => None,
        }
    }
}

/// An integer in its only form: no sign of zero, no leading zeros.
fn integer(text: &str) -> Option<i64> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let canonical = match digits.as_bytes() {
        [b'0'] => text.len() == 1,
        [b'1'..=b'9', rest @ ..] => rest.iter().all(u8::is_ascii_digit),
        _ => false,
    };
    if canonical { text.parse().ok() } else { None }
}

/// The content of the JSON string of a text.
pub(super) fn escaped(text: &str) -> Cow<'_, str> {
    // A loop without branches lets the compiler check several bytes with one instruction.
    let special = |byte: u8| u8::from(byte < 0x20) | u8::from(byte == b'"') | u8::from(byte == b'\\');
    if text.bytes().fold(0, |found, byte| found | special(byte)) == 0 {
        return Cow::Borrowed(text);
    }
    // Serializing a string cannot fail.
    let quoted = serde_json::to_string(text).unwrap_or_default();
    let inner = quoted.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    Cow::Owned(inner.unwrap_or_default().to_owned())
}
