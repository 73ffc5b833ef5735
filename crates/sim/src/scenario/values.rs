//! Values with their own text form.

use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde::de::{self, Deserialize, Deserializer, Unexpected, Visitor};
use serde::{Serialize, Serializer};

use crate::load::Amplitude;
use crate::time::Millis;

/// One day.
pub(crate) const DAY: Millis = Millis::from_hours(24);
/// One week.
pub(crate) const WEEK: Millis = Millis::from_hours(24 * 7);

/// A time of the day, as `15:00`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeOfDay(pub Millis);

/// A time of the week, as `Wed 12:00`, counted from Monday.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeOfWeek(pub Millis);

/// Largest deviation of noise: a number of units, or a percentage.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Extent(pub Amplitude);

const DAYS: [&str; 7] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];

impl FromStr for TimeOfDay {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let mut parts = text.split(':');
        let mut part = |most: i64, needed: bool| match parts.next() {
            Some(text) if text.len() == 2 && text.bytes().all(|b| b.is_ascii_digit()) => {
                text.parse().ok().filter(|n: &i64| *n <= most).ok_or(())
            }
            None if !needed => Ok(0),
            _ => Err(()),
        };
        let (hours, minutes, seconds) = (part(23, true)?, part(59, true)?, part(59, false)?);
        let rest = parts.next();
        let time = Millis::from_hours(hours) + Millis::from_mins(minutes) + Millis::from_secs(seconds);
        if rest.is_none() { Ok(Self(time)) } else { Err(()) }
    }
}

impl FromStr for TimeOfWeek {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (day, time) = text.split_once(' ').ok_or(())?;
        let index =
            DAYS.iter().position(|name| day.len() >= 3 && full_name(name).starts_with(day)).ok_or(())?;
        let TimeOfDay(time) = time.trim().parse()?;
        Ok(Self(DAY * index as i64 + time))
    }
}

fn full_name(day: &str) -> &'static str {
    match day {
        "Mon" => "Monday",
        "Tue" => "Tuesday",
        "Wed" => "Wednesday",
        "Thu" => "Thursday",
        "Fri" => "Friday",
        "Sat" => "Saturday",
        _ => "Sunday",
    }
}

impl TimeOfDay {
    /// The time of day of a timestamp, in UTC.
    pub fn of(at: Timestamp) -> Self {
        Self(Millis(at.as_millisecond().rem_euclid(DAY.0)))
    }
}

impl TimeOfWeek {
    /// The time of the week of a timestamp, in UTC.
    pub fn of(at: Timestamp) -> Self {
        let day = at.to_zoned(TimeZone::UTC).weekday().to_monday_zero_offset();
        Self(DAY * i64::from(day) + TimeOfDay::of(at).0)
    }
}

impl fmt::Display for TimeOfDay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0.0 / 1000;
        write!(f, "{:02}:{:02}", seconds / 3600, seconds / 60 % 60)?;
        if seconds % 60 == 0 { Ok(()) } else { write!(f, ":{:02}", seconds % 60) }
    }
}

impl fmt::Display for TimeOfWeek {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let day = usize::try_from(self.0.0 / DAY.0).ok().and_then(|day| DAYS.get(day)).unwrap_or(&"Mon");
        write!(f, "{day} {}", TimeOfDay(Millis(self.0.0 % DAY.0)))
    }
}

impl fmt::Display for Extent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Amplitude::Units(units) => write!(f, "{units}"),
            Amplitude::Share(share) => write!(f, "{}%", share * 100.0),
        }
    }
}

macro_rules! as_text {
    ($($type:ty: $words:literal)*) => {$(
        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct TextVisitor;
                impl Visitor<'_> for TextVisitor {
                    type Value = $type;

                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        f.write_str($words)
                    }

                    fn visit_str<E: de::Error>(self, text: &str) -> Result<$type, E> {
                        text.parse().map_err(|()| E::invalid_value(Unexpected::Str(text), &self))
                    }
                }
                deserializer.deserialize_str(TextVisitor)
            }
        }
    )*};
}

as_text! {
    TimeOfDay: "a time of the day such as `15:00`"
    TimeOfWeek: "a time of the week such as `Wed 12:00`"
}

impl Serialize for Extent {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Amplitude::Units(units) => serializer.serialize_f64(units),
            Amplitude::Share(_) => serializer.collect_str(self),
        }
    }
}

impl<'de> Deserialize<'de> for Extent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct NumberOrPercent;
        impl Visitor<'_> for NumberOrPercent {
            type Value = Extent;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number or a percentage such as `10%`")
            }

            fn visit_f64<E: de::Error>(self, units: f64) -> Result<Extent, E> {
                Ok(Extent(Amplitude::Units(units)))
            }

            fn visit_u64<E: de::Error>(self, units: u64) -> Result<Extent, E> {
                Ok(Extent(Amplitude::Units(units as f64)))
            }

            fn visit_i64<E: de::Error>(self, units: i64) -> Result<Extent, E> {
                Ok(Extent(Amplitude::Units(units as f64)))
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Extent, E> {
                let percent = text.strip_suffix('%').and_then(|n| n.trim().parse::<f64>().ok());
                let share = percent.filter(|n| n.is_finite()).map(|n| n / 100.0);
                share
                    .map(|share| Extent(Amplitude::Share(share)))
                    .ok_or_else(|| E::invalid_value(Unexpected::Str(text), &self))
            }
        }
        deserializer.deserialize_any(NumberOrPercent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_day_and_week() {
        let day = |text: &str| text.parse::<TimeOfDay>().map(|t| t.0);
        assert_eq!(day("15:00"), Ok(Millis::from_hours(15)));
        assert_eq!(day("00:00:05"), Ok(Millis::from_secs(5)));
        for text in ["", "15", "24:00", "12:60", "1:00", "12:00:00:00", "ab:cd", "-1:00"] {
            assert_eq!(day(text), Err(()), "{text}");
        }
        let week = |text: &str| text.parse::<TimeOfWeek>().map(|t| t.0);
        assert_eq!(week("Mon 00:00"), Ok(Millis::ZERO));
        assert_eq!(week("Wednesday 12:00"), Ok(Millis::from_hours(60)));
        for text in ["Wed", "W 12:00", "Foo 12:00", "12:00", "wed 12:00"] {
            assert_eq!(week(text), Err(()), "{text}");
        }
        assert_eq!(TimeOfWeek(Millis::from_hours(60)).to_string(), "Wed 12:00");
        let at: Timestamp = "2026-01-07T12:00:00Z".parse().unwrap();
        assert_eq!(TimeOfWeek::of(at), TimeOfWeek(Millis::from_hours(60)));
    }
}
