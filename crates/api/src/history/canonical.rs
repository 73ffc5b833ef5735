//! Reads times and durations in the only form in which they are printed, so that none has to be printed again to be compared.

use jiff::civil::DateTime;
use jiff::tz::Offset;

const NANOS_PER_SECOND: i64 = 1_000_000_000;

/// Nanoseconds since 1970 of a time such as `2026-01-01T12:00:15.25Z`.
pub(super) fn time(text: &[u8]) -> Option<i64> {
    let (date, clock) = text.split_at_checked(10)?;
    let (
        [y1, y2, y3, y4, b'-', mo1, mo2, b'-', d1, d2],
        [b'T', h1, h2, b':', mi1, mi2, b':', s1, s2, rest @ ..],
    ) = (date, clock)
    else {
        return None;
    };
    let rest = rest.strip_suffix(b"Z")?;
    let nanos = if rest.is_empty() { 0 } else { fraction(rest)? };
    let year = number(&[*y1, *y2, *y3, *y4])?;
    let pair = |tens: &u8, ones: &u8| i8::try_from(number(&[*tens, *ones])?).ok();
    let date_time = DateTime::new(
        i16::try_from(year).ok()?,
        pair(mo1, mo2)?,
        pair(d1, d2)?,
        pair(h1, h2)?,
        pair(mi1, mi2)?,
        pair(s1, s2)?,
        i32::try_from(nanos).ok()?,
    );
    i64::try_from(Offset::UTC.to_timestamp(date_time.ok()?).ok()?.as_nanosecond()).ok()
}

/// Nanoseconds of a duration such as `PT1H2M3.5S`, of which the first two letters are removed.
pub(super) fn duration(text: &[u8]) -> Option<i64> {
    if text == b"0S" {
        return Some(0);
    }
    let (mut rest, mut total) = (text, 0_i64);
    for (unit, seconds, limit) in [(b'H', 3600, i64::MAX), (b'M', 60, 60)] {
        if let Some(end) = rest.iter().position(|byte| *byte == unit) {
            let (digits, after) = rest.split_at_checked(end)?;
            let count = component(digits, limit)?;
            total = total.checked_add(count.checked_mul(seconds * NANOS_PER_SECOND)?)?;
            rest = after.get(1..)?;
        }
    }
    if rest.is_empty() {
        return (!text.is_empty()).then_some(total);
    }
    let seconds = rest.strip_suffix(b"S")?;
    let point = seconds.iter().position(|byte| *byte == b'.').unwrap_or(seconds.len());
    let (whole, fractional) = seconds.split_at_checked(point)?;
    let nanos = if fractional.is_empty() { 0 } else { fraction(fractional)? };
    // Zero whole seconds are printed only before a fraction, as in `PT0.5S`.
    let whole = if whole == b"0" && nanos > 0 { 0 } else { component(whole, 60)? };
    total.checked_add(whole * NANOS_PER_SECOND + nanos)
}

/// A component of a duration, which is not zero.
fn component(digits: &[u8], limit: i64) -> Option<i64> {
    if digits.first() == Some(&b'0') {
        return None;
    }
    number(digits).filter(|count| *count < limit)
}

/// The nanoseconds of a fraction such as `.25`, which does not end with a zero.
fn fraction(text: &[u8]) -> Option<i64> {
    let digits = text.strip_prefix(b".")?;
    if digits.len() > 9 || digits.last() == Some(&b'0') {
        return None;
    }
    Some(number(digits)? * 10_i64.pow(9 - digits.len() as u32))
}

fn number(digits: &[u8]) -> Option<i64> {
    if digits.is_empty() || digits.len() > 18 {
        return None;
    }
    digits.iter().try_fold(0, |value: i64, digit| {
        digit.is_ascii_digit().then(|| value * 10 + i64::from(*digit - b'0'))
    })
}

#[cfg(test)]
mod tests {
    use jiff::{SignedDuration, Timestamp};
    use proptest::prelude::*;

    use super::*;

    fn assert_time(text: &str) {
        let printed = text.parse::<Timestamp>().ok().filter(|time| time.to_string() == text);
        let nanos = printed.and_then(|time| i64::try_from(time.as_nanosecond()).ok());
        assert_eq!(time(text.as_bytes()), nanos, "{text}");
    }

    fn assert_duration(text: &str) {
        let printed = text.parse::<SignedDuration>().ok().filter(|duration| duration.to_string() == text);
        let nanos = printed.and_then(|duration| i64::try_from(duration.as_nanos()).ok());
        assert_eq!(text.strip_prefix("PT").and_then(|rest| duration(rest.as_bytes())), nanos, "{text}");
    }

    #[test]
    fn only_the_printed_form_is_read() {
        for text in [
            "2026-01-01T12:00:15Z",
            "2026-01-01T12:00:15.250Z",
            "2026-01-01T12:00:15.25Z",
            "2026-01-01T12:00:15.Z",
            "2026-01-01T12:00:60Z",
            "2026-02-30T12:00:15Z",
            "2026-02-28T24:00:00Z",
            "2024-02-29T12:00:15.123456789Z",
            "1969-12-31T23:59:59.5Z",
            "1600-01-01T00:00:00Z",
            "9999-01-01T00:00:00Z",
        ] {
            assert_time(text);
        }
        for text in [
            "PT",
            "PT0S",
            "PT1S",
            "PT01S",
            "PT60S",
            "PT59.5S",
            "PT0.5S",
            "PT0.50S",
            "PT.5S",
            "PT1.S",
            "PT1M0S",
            "PT1M",
            "PT60M",
            "PT1M30S",
            "PT1H0.5S",
            "PT100H59M59.999999999S",
            "PT1H1H",
            "PT1M1H",
            "PT9999999999H",
            "PT1S1M",
        ] {
            assert_duration(text);
        }
    }

    proptest! {
        #[test]
        fn every_printed_time_is_read(nanos in any::<i64>(), digits in 0_u32..10) {
            let nanos = nanos - nanos % 10_i64.pow(digits);
            let time = Timestamp::from_nanosecond(nanos.into()).unwrap().to_string();
            assert_time(&time);
            prop_assert!(super::time(time.as_bytes()).is_some());
        }

        #[test]
        fn every_printed_duration_is_read(nanos in 0..i64::MAX, digits in 0_u32..14) {
            let text = SignedDuration::from_nanos(nanos - nanos % 10_i64.pow(digits)).to_string();
            assert_duration(&text);
            prop_assert!(duration(&text.as_bytes()[2..]).is_some());
        }
    }
}
