//! Virtual time: milliseconds from the start of a scenario, and the text form of durations.

use std::fmt;
use std::ops::{Add, Mul, Sub};
use std::str::FromStr;

use jiff::{SignedDuration, Timestamp};
use serde::de::{Deserialize, Deserializer, Error, Unexpected, Visitor};
use serde::{Serialize, Serializer};

/// A point in virtual time (from the start of the scenario) or a length of time, in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Millis(pub i64);

/// Why a text is not a duration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotADuration {
    /// It cannot be parsed.
    #[error("expected a duration such as `30s`, `1m30s` or `7d`")]
    Text,
    /// It has a fraction smaller than a millisecond.
    #[error("a duration here is at least a millisecond exact; this one is finer")]
    TooFine,
    /// It is too long.
    #[error("a duration of more than 10000 days")]
    TooLong,
}

const SECOND: i64 = 1_000;
const MINUTE: i64 = 60 * SECOND;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;
/// Maximum duration, in milliseconds.
const MAX_DURATION_MS: i64 = 10_000 * DAY;

impl Millis {
    /// Zero.
    pub const ZERO: Self = Self(0);
    /// Later than any other time.
    pub const NEVER: Self = Self(i64::MAX);

    /// Whole seconds.
    pub const fn from_secs(seconds: i64) -> Self {
        Self(seconds.saturating_mul(SECOND))
    }

    /// Whole minutes.
    pub const fn from_mins(minutes: i64) -> Self {
        Self(minutes.saturating_mul(MINUTE))
    }

    /// Whole hours.
    pub const fn from_hours(hours: i64) -> Self {
        Self(hours.saturating_mul(HOUR))
    }

    /// The time in seconds.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / SECOND as f64
    }

    /// The time as a [`SignedDuration`].
    pub fn duration(self) -> SignedDuration {
        SignedDuration::from_millis(self.0)
    }

    /// The time on the wall clock of a scenario that starts at `start`.
    pub fn after(self, start: Timestamp) -> Timestamp {
        let end = if self.0 < 0 { Timestamp::MIN } else { Timestamp::MAX };
        start.checked_add(self.duration()).unwrap_or(end)
    }

    /// The share of `whole` that this is: 0 at or before its begin, 1 at or after its end.
    pub fn fraction_of(self, whole: Self) -> f64 {
        if self.0 <= 0 {
            0.0
        } else if self.0 >= whole.0 {
            1.0
        } else {
            self.0 as f64 / whole.0 as f64
        }
    }
}

/// A time as the Kubernetes API stores it: rounded down to whole seconds.
pub fn to_the_second(at: Timestamp) -> Timestamp {
    let below = i64::from(at.subsec_nanosecond() < 0);
    Timestamp::from_second(at.as_second() - below).unwrap_or(at)
}

impl Add for Millis {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl Sub for Millis {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl Mul<i64> for Millis {
    type Output = Self;

    fn mul(self, by: i64) -> Self {
        Self(self.0.saturating_mul(by))
    }
}

impl FromStr for Millis {
    type Err = NotADuration;

    /// Go's form (`1m30s`, `300ms`, `1.5h`), with `d` for days and `w` for weeks.
    fn from_str(text: &str) -> Result<Self, NotADuration> {
        let (negative, mut rest) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        if rest == "0" {
            return Ok(Self::ZERO);
        }
        if rest.is_empty() {
            return Err(NotADuration::Text);
        }
        let mut nanos = 0_i128;
        while !rest.is_empty() {
            let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').ok_or(NotADuration::Text)?;
            let (number, tail) = rest.split_at(digits);
            let letters = tail.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(tail.len());
            let (unit, next) = tail.split_at(letters);
            nanos += nanoseconds(number, unit)?;
            rest = next;
        }
        let millis = nanos / 1_000_000;
        if nanos % 1_000_000 != 0 {
            return Err(NotADuration::TooFine);
        }
        let millis =
            i64::try_from(millis).ok().filter(|m| *m <= MAX_DURATION_MS).ok_or(NotADuration::TooLong)?;
        Ok(Self(if negative { -millis } else { millis }))
    }
}

fn nanoseconds(number: &str, unit: &str) -> Result<i128, NotADuration> {
    let unit: i128 = match unit {
        "ns" => 1,
        "us" | "µs" | "μs" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        "d" => 86_400_000_000_000,
        "w" => 604_800_000_000_000,
        _ => return Err(NotADuration::Text),
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
        return Err(NotADuration::Text);
    }
    // Longer numbers exceed every limit, and fractions of a nanosecond are dropped.
    let whole: i128 = match whole {
        "" => 0,
        _ if whole.len() > 15 => return Err(NotADuration::TooLong),
        _ => whole.parse().map_err(|_| NotADuration::Text)?,
    };
    let kept = fraction.get(..fraction.len().min(15)).unwrap_or_default();
    let part: i128 = if kept.is_empty() { 0 } else { kept.parse().map_err(|_| NotADuration::Text)? };
    Ok(whole * unit + part * unit / 10_i128.pow(kept.len() as u32))
}

impl fmt::Display for Millis {
    /// The shortest form that reads back: `1d2h`, `1m30s`, `250ms`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.0.unsigned_abs();
        if rest == 0 {
            return f.write_str("0s");
        }
        if self.0 < 0 {
            f.write_str("-")?;
        }
        for (unit, name) in [(DAY, "d"), (HOUR, "h"), (MINUTE, "m"), (SECOND, "s"), (1, "ms")] {
            let unit = unit.unsigned_abs();
            if rest >= unit {
                write!(f, "{}{name}", rest / unit)?;
                rest %= unit;
            }
        }
        Ok(())
    }
}

impl Serialize for Millis {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Millis {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct DurationVisitor;
        impl Visitor<'_> for DurationVisitor {
            type Value = Millis;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a duration such as `30s` or `1m30s`")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Millis, E> {
                text.parse().map_err(|error| match error {
                    NotADuration::Text => E::invalid_value(Unexpected::Str(text), &self),
                    other => E::custom(other),
                })
            }

            // Zero needs no unit.
            fn visit_u64<E: Error>(self, number: u64) -> Result<Millis, E> {
                if number == 0 {
                    Ok(Millis::ZERO)
                } else {
                    Err(E::invalid_type(Unexpected::Unsigned(number), &self))
                }
            }
        }
        deserializer.deserialize_str(DurationVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_read_and_write() {
        for (text, millis, back) in [
            ("30s", 30_000, "30s"),
            ("1m30s", 90_000, "1m30s"),
            ("90s", 90_000, "1m30s"),
            ("300ms", 300, "300ms"),
            ("1.5h", 5_400_000, "1h30m"),
            ("30d", 30 * DAY, "30d"),
            ("2w", 14 * DAY, "14d"),
            ("0", 0, "0s"),
            ("0s", 0, "0s"),
            (".5s", 500, "500ms"),
            ("-5s", -5_000, "-5s"),
            ("1000000ns", 1, "1ms"),
        ] {
            assert_eq!(text.parse(), Ok(Millis(millis)), "{text}");
            assert_eq!(Millis(millis).to_string(), back);
        }
        for text in ["", "s", "1", "1x", "1.2.3s", "-", ".", "1 s", "five", "1s2"] {
            assert_eq!(text.parse::<Millis>(), Err(NotADuration::Text), "{text}");
        }
        assert_eq!("1ns".parse::<Millis>(), Err(NotADuration::TooFine));
        assert_eq!("99999999999h".parse::<Millis>(), Err(NotADuration::TooLong));
        assert_eq!("99999999999999999999999999h".parse::<Millis>(), Err(NotADuration::TooLong));
        let many = "9".repeat(15) + "w";
        assert_eq!(many.repeat(100).parse::<Millis>(), Err(NotADuration::TooLong));
    }

    #[test]
    fn times_are_rounded_down_to_seconds() {
        let at = |text: &str| -> Timestamp { text.parse().unwrap() };
        assert_eq!(to_the_second(at("2026-01-01T00:00:01.9Z")), at("2026-01-01T00:00:01Z"));
        assert_eq!(to_the_second(at("1960-01-01T00:00:01.9Z")), at("1960-01-01T00:00:01Z"));
    }
}
