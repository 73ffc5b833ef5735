//! Times and ages as users write them, in the zone in which times are shown.

use engine::explain::{clock, zone, zone_name};
use jiff::civil::{Date, DateTime, Time};
use jiff::{SignedDuration, Timestamp};
use sim::Millis;

use crate::failure::Failure;

/// The moment that `text` means: `09:10` or `09:10:30` (the last time it was that late), a full time, or an age. A time without fractions
/// means the whole second, so that a time copied from a table finds the pass that was made in that second.
pub(crate) fn moment(text: &str, now: Timestamp) -> Result<Timestamp, Failure> {
    let (found, precision) = read(text, now)?;
    if found > now {
        return Err(Failure::input(format!("--at {text}: that is in the future; it is {}", zoned(now, now))));
    }
    Ok(found.checked_add(precision).unwrap_or(found))
}

/// Checks how a moment is written, before the time of its cluster is known.
pub(crate) fn check_form(text: &str, now: Timestamp) -> Result<(), Failure> {
    read(text, now).map(|_| ())
}

/// The first instant that `text` means, and how much later it may be.
fn read(text: &str, now: Timestamp) -> Result<(Timestamp, SignedDuration), Failure> {
    let written = time_of_day(text, now).or_else(|| full(text));
    let found = written.or_else(|| age(text, now)).ok_or_else(|| {
        Failure::input(format!(
            "--at {text}: write a time of day in {} such as 09:10 or 09:10:30, a full time such as {}, or how long ago, \
             such as 10m",
            zone_name(now),
            api::instant::format(now)
        ))
    })?;
    Ok((found, if written.is_some() { unwritten(text) } else { SignedDuration::ZERO }))
}

/// How much later a time may be that is written like this.
fn unwritten(text: &str) -> SignedDuration {
    let digits = text
        .split_once('.')
        .map_or(0, |(_, fraction)| fraction.bytes().take_while(u8::is_ascii_digit).count());
    let exponent = u32::try_from(9_usize.saturating_sub(digits)).unwrap_or(0);
    SignedDuration::from_nanos(10_i64.pow(exponent) - 1)
}

/// A length of time an option names.
pub(crate) fn length(option: &str, text: &str) -> Result<SignedDuration, Failure> {
    match text.parse::<Millis>() {
        Ok(length) if length > Millis::ZERO => Ok(length.duration()),
        Ok(_) => Err(Failure::input(format!("{option} {text}: it must be longer than nothing"))),
        Err(error) => Err(Failure::input(format!("{option} {text}: {error}"))),
    }
}

/// A moment: the time of day, and the date unless it is today.
pub(crate) fn stamp(at: Timestamp, now: Timestamp) -> String {
    let date = date(at);
    if date == self::date(now) { clock(at) } else { format!("{date} {}", clock(at)) }
}

/// A moment with milliseconds.
pub(crate) fn precise(at: Timestamp, now: Timestamp) -> String {
    format!("{}.{:03}", stamp(at, now), at.subsec_millisecond().unsigned_abs())
}

/// A moment with its zone: `09:14:45 UTC`.
pub(crate) fn zoned(at: Timestamp, now: Timestamp) -> String {
    format!("{} {}", stamp(at, now), zone_name(at))
}

fn date(at: Timestamp) -> Date {
    at.to_zoned(zone()).date()
}

fn time_of_day(text: &str, now: Timestamp) -> Option<Timestamp> {
    let digits = |part: &str| {
        let few = (1..=2).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit());
        if few { part.parse::<i8>().ok() } else { None }
    };
    let (clock, fraction) =
        text.split_once('.').map_or((text, None), |(clock, fraction)| (clock, Some(fraction)));
    let mut parts = clock.split(':');
    let (hour, minute) = (digits(parts.next()?)?, digits(parts.next()?)?);
    let second = parts.next();
    if parts.next().is_some() || (second.is_none() && fraction.is_some()) {
        return None;
    }
    let second = second.map_or(Some(0), digits)?;
    let nanos = match fraction {
        None => 0,
        Some(fraction)
            if (1..=9).contains(&fraction.len()) && fraction.bytes().all(|byte| byte.is_ascii_digit()) =>
        {
            format!("{fraction:0<9}").parse().ok()?
        }
        Some(_) => return None,
    };
    let time = Time::new(hour, minute, second, nanos).ok()?;
    let on =
        |date: Date| DateTime::from_parts(date, time).to_zoned(zone()).ok().map(|zoned| zoned.timestamp());
    let today = on(date(now))?;
    // A time later than now means yesterday.
    if today > now { on(date(now).yesterday().ok()?) } else { Some(today) }
}

fn full(text: &str) -> Option<Timestamp> {
    if let Ok(at) = text.parse() {
        return Some(at);
    }
    text.parse::<DateTime>().ok()?.to_zoned(zone()).ok().map(|zoned| zoned.timestamp())
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
    fn clock_times_ages_and_timestamps_are_moments() {
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
            let exact = moment(text, now).unwrap();
            let second = Timestamp::from_second(exact.as_second()).unwrap();
            assert_eq!(second, at(expected), "{text}");
        }
        for text in ["", "25:00", "09:60", "9", "noon", "09:10:30:1", ":", "2026-01-06T00:00:00Z", "-5m"] {
            assert!(moment(text, now).is_err(), "{text}");
        }
    }

    #[test]
    fn form_is_checked_before_the_time_of_the_cluster_is_known() {
        let now = at("2026-01-05T09:14:45Z");
        for text in ["09:10", "10m", "2026-01-06T00:00:00Z"] {
            assert!(check_form(text, now).is_ok(), "{text}");
        }
        for text in ["", "25:00", "noon"] {
            assert!(check_form(text, now).is_err(), "{text}");
        }
    }

    #[test]
    fn time_means_all_that_is_shown_like_it() {
        let now = at("2026-01-05T09:14:45Z");
        for (text, expected) in [
            ("09:10:30", "2026-01-05T09:10:30.999999999Z"),
            ("09:10:30.25", "2026-01-05T09:10:30.259999999Z"),
            ("09:10:30.123", "2026-01-05T09:10:30.123999999Z"),
            ("2026-01-05T09:10:30.123456789Z", "2026-01-05T09:10:30.123456789Z"),
            ("2026-01-05T10:10:30+01:00", "2026-01-05T09:10:30.999999999Z"),
            ("10m", "2026-01-05T09:04:45Z"),
        ] {
            assert_eq!(moment(text, now).unwrap(), at(expected), "{text}");
        }
    }

    #[test]
    fn times_of_another_day_have_a_date() {
        let now = at("2026-01-05T00:00:10Z");
        assert_eq!(stamp(at("2026-01-05T00:00:00Z"), now), "00:00:00");
        assert_eq!(stamp(at("2026-01-04T23:59:55Z"), now), "2026-01-04 23:59:55");
    }

    #[test]
    fn lengths_are_positive_durations() {
        assert_eq!(length("--since", "1h").unwrap(), SignedDuration::from_hours(1));
        for text in ["0", "-1m", "soon", ""] {
            assert!(length("--since", text).is_err(), "{text}");
        }
    }
}
