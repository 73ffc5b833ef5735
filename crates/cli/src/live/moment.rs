//! Times and ages as users write them. All times are UTC.

use engine::explain::clock;
use jiff::civil::{Date, DateTime, Time};
use jiff::tz::Offset;
use jiff::{SignedDuration, Timestamp};
use sim::Millis;

use crate::failure::Failure;

/// The moment that `text` means: `09:10` or `09:10:30` (the last time it was that late), a full time, or an age.
pub(crate) fn moment(text: &str, now: Timestamp) -> Result<Timestamp, Failure> {
    let found = time_of_day(text, now).or_else(|| full(text)).or_else(|| age(text, now));
    let found = found.ok_or_else(|| {
        Failure::input(format!(
            "--at {text}: write a time of day in UTC such as 09:10 or 09:10:30, a full time such as {}, or how long ago, \
             such as 10m",
            api::instant::format(now)
        ))
    })?;
    if found > now {
        return Err(Failure::input(format!(
            "--at {text}: that is in the future; it is {} UTC",
            stamp(now, now)
        )));
    }
    Ok(found)
}

/// A length of time an option names.
pub(crate) fn length(option: &str, text: &str) -> Result<SignedDuration, Failure> {
    match text.parse::<Millis>() {
        Ok(length) if length > Millis::ZERO => Ok(length.duration()),
        Ok(_) => Err(Failure::input(format!("{option} {text}: it must be longer than nothing"))),
        Err(error) => Err(Failure::input(format!("{option} {text}: {error}"))),
    }
}

/// A moment in UTC: the time of day, and the date unless it is today.
pub(crate) fn stamp(at: Timestamp, now: Timestamp) -> String {
    let date = date(at);
    if date == self::date(now) { clock(at) } else { format!("{date} {}", clock(at)) }
}

fn date(at: Timestamp) -> Date {
    Offset::UTC.to_datetime(at).date()
}

fn time_of_day(text: &str, now: Timestamp) -> Option<Timestamp> {
    let mut parts = text.split(':').map(|part| {
        let digits = (1..=2).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit());
        if digits { part.parse::<i8>().ok() } else { None }
    });
    let (hour, minute) = (parts.next()??, parts.next()??);
    let second = match parts.next() {
        None => 0,
        Some(second) => second?,
    };
    if parts.next().is_some() {
        return None;
    }
    let time = Time::new(hour, minute, second, 0).ok()?;
    let today = Offset::UTC.to_timestamp(DateTime::from_parts(date(now), time)).ok()?;
    // A time later than now means yesterday.
    if today > now { today.checked_sub(SignedDuration::from_hours(24)).ok() } else { Some(today) }
}

fn full(text: &str) -> Option<Timestamp> {
    if let Ok(at) = text.parse() {
        return Some(at);
    }
    Offset::UTC.to_timestamp(text.parse::<DateTime>().ok()?).ok()
}

fn age(text: &str, now: Timestamp) -> Option<Timestamp> {
    let age: Millis = text.parse().ok()?;
    now.checked_sub(age.duration()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    #[test]
    fn moments() {
        let now = at("2026-01-05T09:14:45Z");
        for (text, expected) in [
            ("09:10", "2026-01-05T09:10:00Z"),
            ("9:10:30", "2026-01-05T09:10:30Z"),
            ("09:14:45", "2026-01-05T09:14:45Z"),
            ("23:50", "2026-01-04T23:50:00Z"),
            ("10m", "2026-01-05T09:04:45Z"),
            ("1h30m", "2026-01-05T07:44:45Z"),
            ("2026-01-04T10:00:00+02:00", "2026-01-04T08:00:00Z"),
            ("2026-01-04 10:00:00", "2026-01-04T10:00:00Z"),
            ("2026-01-04T10:00", "2026-01-04T10:00:00Z"),
        ] {
            assert_eq!(moment(text, now).unwrap(), at(expected), "{text}");
        }
        for text in ["", "25:00", "09:60", "9", "noon", "09:10:30:1", ":", "2026-01-06T00:00:00Z", "-5m"] {
            assert!(moment(text, now).is_err(), "{text}");
        }
    }

    #[test]
    fn times_of_another_day_have_a_date() {
        let now = at("2026-01-05T00:00:10Z");
        assert_eq!(stamp(at("2026-01-05T00:00:00Z"), now), "00:00:00");
        assert_eq!(stamp(at("2026-01-04T23:59:55Z"), now), "2026-01-04 23:59:55");
    }

    #[test]
    fn lengths() {
        assert_eq!(length("--since", "1h").unwrap(), SignedDuration::from_hours(1));
        for text in ["0", "-1m", "soon", ""] {
            assert!(length("--since", text).is_err(), "{text}");
        }
    }
}
