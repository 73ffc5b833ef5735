//! Times in JSON: RFC 3339 in whole seconds, UTC; `null` if absent.

use std::fmt;

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::Offset;
use serde::de::{Deserializer, Visitor};
use serde::ser::Serializer;

/// Name of the newtype by which a deserializer recognizes times.
pub(crate) const NAME: &str = "Time";

/// Why a text is not a time, with the texts of Go's time package.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TimeError {
    /// The text does not follow the layout.
    #[error(
        "parsing time {} as \"2006-01-02T15:04:05Z07:00\": cannot parse {} as {}",
        quoted(.text), quoted(.rest), quoted(.element)
    )]
    Layout {
        /// The whole text.
        text: String,
        /// What was left when reading failed.
        rest: String,
        /// The element of the layout that was expected.
        element: &'static str,
    },
    /// A number is out of range.
    #[error("parsing time {}: {part} out of range", quoted(.text))]
    Range {
        /// The whole text.
        text: String,
        /// Name of the part.
        part: &'static str,
    },
    /// Text follows the time.
    #[error("parsing time {}: extra text: {}", quoted(.text), quoted(.extra))]
    Extra {
        /// The whole text.
        text: String,
        /// What follows.
        extra: String,
    },
}

/// A text as Go's time package quotes it: every byte outside of printable ASCII escaped.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for byte in text.bytes() {
        match byte {
            b'"' | b'\\' => out.extend(['\\', char::from(byte)]),
            b' '..=b'~' => out.push(char::from(byte)),
            _ => out.push_str(&format!("\\x{byte:02x}")),
        }
    }
    out.push('"');
    out
}

/// The time as the API writes it, e.g. `2026-01-01T00:00:30Z`. Every response contains times, so this function avoids a formatter.
pub fn format(time: Timestamp) -> String {
    let civil = Offset::UTC.to_datetime(time);
    let mut out = String::with_capacity("2026-01-01T00:00:30Z".len());
    let year = civil.year().unsigned_abs();
    if civil.year() < 0 {
        out.push('-');
    }
    let mut push = |number: u16, digits: &[u16], end: char| {
        out.extend(digits.iter().map(|place| char::from(b'0' + (number / place % 10) as u8)));
        out.push(end);
    };
    let short = civil.year() < 0 && year < 1000;
    push(year, if short { &[100, 10, 1] } else { &[1000, 100, 10, 1] }, '-');
    let two = |number: i8| u16::from(number.unsigned_abs());
    push(two(civil.month()), &[10, 1], '-');
    push(two(civil.day()), &[10, 1], 'T');
    push(two(civil.hour()), &[10, 1], ':');
    push(two(civil.minute()), &[10, 1], ':');
    push(two(civil.second()), &[10, 1], 'Z');
    out
}

/// Parses a time as the API does. Go's zero time (year 1) is an absent time.
pub fn parse(text: &str) -> Result<Option<Timestamp>, TimeError> {
    let time = TimeParser { text, rest: text }.instant()?;
    Ok((time != crate::time::GO_ZERO).then_some(time))
}

struct TimeParser<'a> {
    text: &'a str,
    rest: &'a str,
}

impl TimeParser<'_> {
    fn instant(mut self) -> Result<Timestamp, TimeError> {
        let year = self.number("2006", 4)?;
        self.literal("-")?;
        let month = self.number("01", 2)?;
        self.check((1..=12).contains(&month), "month")?;
        self.literal("-")?;
        let day = self.number("02", 2)?;
        self.literal("T")?;
        let hour = self.number("15", 2)?;
        self.check(hour < 24, "hour")?;
        self.literal(":")?;
        let minute = self.number("04", 2)?;
        self.check(minute < 60, "minute")?;
        self.literal(":")?;
        let second = self.number("05", 2)?;
        self.check(second < 60, "second")?;
        let nanosecond = self.fraction();
        let offset = self.offset()?;
        if !self.rest.is_empty() {
            return Err(TimeError::Extra { text: self.text.to_owned(), extra: self.rest.to_owned() });
        }
        let civil = DateTime::new(
            year as i16,
            month as i8,
            day as i8,
            hour as i8,
            minute as i8,
            second as i8,
            nanosecond,
        );
        let out_of_range = TimeError::Range { text: self.text.to_owned(), part: "day" };
        civil.and_then(|civil| offset.to_timestamp(civil)).map_err(|_| out_of_range)
    }

    fn fail(&self, element: &'static str) -> TimeError {
        TimeError::Layout { text: self.text.to_owned(), rest: self.rest.to_owned(), element }
    }

    fn check(&self, ok: bool, part: &'static str) -> Result<(), TimeError> {
        if ok { Ok(()) } else { Err(TimeError::Range { text: self.text.to_owned(), part }) }
    }

    fn literal(&mut self, mark: &'static str) -> Result<(), TimeError> {
        self.rest = self.rest.strip_prefix(mark).ok_or_else(|| self.fail(mark))?;
        Ok(())
    }

    fn number(&mut self, element: &'static str, digits: usize) -> Result<i32, TimeError> {
        match self.rest.split_at_checked(digits) {
            Some((number, rest)) if number.bytes().all(|b| b.is_ascii_digit()) => {
                self.rest = rest;
                number.parse().map_err(|_| self.fail(element))
            }
            _ => Err(self.fail(element)),
        }
    }

    /// A fraction of a second may follow although the layout has none; only its first nine digits count.
    fn fraction(&mut self) -> i32 {
        let Some(after) = self.rest.strip_prefix(['.', ',']) else { return 0 };
        let end = after.find(|c: char| !c.is_ascii_digit()).unwrap_or(after.len());
        let (digits, rest) = after.split_at(end);
        if digits.is_empty() {
            return 0;
        }
        self.rest = rest;
        let nine: String = digits.chars().chain("000000000".chars()).take(9).collect();
        nine.parse().unwrap_or(0)
    }

    fn offset(&mut self) -> Result<Offset, TimeError> {
        const ELEMENT: &str = "Z07:00";
        if let Some(rest) = self.rest.strip_prefix('Z') {
            self.rest = rest;
            return Ok(Offset::UTC);
        }
        let failed = self.fail(ELEMENT);
        let sign = match self.rest.chars().next() {
            Some('+') => 1,
            Some('-') => -1,
            _ => return Err(failed),
        };
        let number =
            |from: usize| self.rest.get(from..from + 2).and_then(|digits| digits.parse::<i32>().ok());
        let colon = self.rest.get(3..4) == Some(":");
        let (Some(hours), true, Some(minutes)) = (number(1), colon, number(4)) else { return Err(failed) };
        self.check(hours <= 24, "time zone offset hour")?;
        self.check(minutes < 60, "time zone offset minute")?;
        self.rest = self.rest.get(6..).unwrap_or_default();
        Offset::from_seconds(sign * (hours * 3600 + minutes * 60)).map_err(|_| failed)
    }
}

/// Serializes a time or `null`; for fields with `#[serde(with = "crate::instant")]`.
// Serde hands a reference.
#[allow(clippy::ref_option)]
pub(crate) fn serialize<S: Serializer>(time: &Option<Timestamp>, serializer: S) -> Result<S::Ok, S::Error> {
    match time {
        Some(time) => serializer.serialize_str(&format(*time)),
        None => serializer.serialize_none(),
    }
}

/// Deserializes a time or `null`.
pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Timestamp>, D::Error> {
    deserializer.deserialize_newtype_struct(NAME, TimeVisitor)
}

struct TimeVisitor;

impl<'de> Visitor<'de> for TimeVisitor {
    type Value = Option<Timestamp>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an RFC 3339 time")
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_option(self)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }

    fn visit_none<E>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Self::Value, E> {
        parse(text).map_err(E::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_time_is_written_as_by_a_formatter() {
        let seconds = (-377_000_000_000_i64..253_400_000_000).step_by(97_654_321);
        for second in seconds {
            let time = Timestamp::from_second(second).unwrap();
            let civil = Offset::UTC.to_datetime(time);
            let (year, month, day) = (civil.year(), civil.month(), civil.day());
            let (hour, minute, second) = (civil.hour(), civil.minute(), civil.second());
            let expected = format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z");
            assert_eq!(super::format(time), expected);
        }
    }

    #[test]
    fn reads_and_writes() {
        let cases = [
            ("2026-01-01T00:00:30Z", "2026-01-01T00:00:30Z"),
            ("2026-01-01T00:00:30.999Z", "2026-01-01T00:00:30Z"),
            ("2026-01-01T01:00:30,5+01:00", "2026-01-01T00:00:30Z"),
            ("0000-12-31T23:59:59-00:30", "0001-01-01T00:29:59Z"),
            ("2024-02-29T00:00:00Z", "2024-02-29T00:00:00Z"),
        ];
        for (text, expected) in cases {
            assert_eq!(format(parse(text).unwrap().unwrap()), expected);
        }
        assert_eq!(parse("0001-01-01T00:00:00Z"), Ok(None));
    }

    #[test]
    fn error_texts() {
        let as_layout = "as \"2006-01-02T15:04:05Z07:00\": cannot parse";
        let cases = [
            ("abc", format!("parsing time \"abc\" {as_layout} \"abc\" as \"2006\"")),
            ("2026-01-01", format!("parsing time \"2026-01-01\" {as_layout} \"\" as \"T\"")),
            ("2026-13-01T00:00:00Z", "parsing time \"2026-13-01T00:00:00Z\": month out of range".to_owned()),
            ("2026-02-30T00:00:00Z", "parsing time \"2026-02-30T00:00:00Z\": day out of range".to_owned()),
            ("2026-01-01T00:00:00Zx", "parsing time \"2026-01-01T00:00:00Zx\": extra text: \"x\"".to_owned()),
            (
                "2026-01-01T00:00:00",
                format!("parsing time \"2026-01-01T00:00:00\" {as_layout} \"\" as \"Z07:00\""),
            ),
        ];
        for (text, expected) in cases {
            assert_eq!(parse(text).unwrap_err().to_string(), expected);
        }
    }
}
