//! Schedules in five fields and their next times, compatible with robfig/cron v3, which KEDA uses.
//!
//! Implemented here because crates have other rules. On the day on which 02:30 does not exist, `croner` 4.0.2 runs `30 2 * * *` at 03:00,
//! robfig/cron the next day; `croner` refuses `5/10 * * * *`. `cronexpr` 1.7.0 refuses `0 0 ? * 1`. Both accept `0 0 * * 7`, which
//! robfig/cron refuses.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::{Offset, TimeZone};

use crate::ParseError;

/// Number of years that are searched for the next time.
const SEARCHED_YEARS: i16 = 5;

/// Minute, hour, day of month, month, day of week.
#[derive(Clone, Debug)]
pub struct CronSchedule {
    minutes: CronField,
    hours: CronField,
    days: CronField,
    months: CronField,
    weekdays: CronField,
    /// Time zone given in the schedule, which overrides that of the trigger.
    zone: Option<TimeZone>,
}

/// The numbers that one field matches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct CronField {
    bits: u64,
    /// Whether the field is `*`, which changes how days of month and week combine.
    any: bool,
}

impl CronField {
    fn has(self, number: i8) -> bool {
        u32::try_from(number).is_ok_and(|number| self.bits >> number.min(63) & 1 == 1)
    }
}

const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const WEEKDAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

/// A time zone by its exact name. As in Go no name is UTC; so is `Local`, the zone of KEDA's image.
pub fn zone(name: &str) -> Option<TimeZone> {
    if matches!(name, "" | "Local") {
        return Some(TimeZone::UTC);
    }
    let zone = TimeZone::get(name).ok()?;
    // The time zone database ignores case, KEDA does not.
    (zone.iana_name() == Some(name)).then_some(zone)
}

impl CronSchedule {
    /// Parses five fields, optionally after `TZ=zone`.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        let (mut rest, mut own) = (text.trim(), None);
        if let Some(named) = rest.strip_prefix("TZ=").or_else(|| rest.strip_prefix("CRON_TZ=")) {
            let (name, after) = named.split_once(' ').ok_or("a schedule must follow the time zone")?;
            let found =
                zone(name).ok_or_else(|| format!("provided bad location {name}: unknown time zone"))?;
            // `Local` is the zone of the trigger here.
            own = (name != "Local").then_some(found);
            rest = after.trim();
        }
        if rest.is_empty() {
            return Err("empty spec string".into());
        }
        if rest.starts_with('@') {
            return Err(format!("parser does not accept descriptors: {rest}").into());
        }
        let fields: Vec<&str> = rest.split_whitespace().collect();
        let [minute, hour, day, month, weekday] = *fields else {
            let (count, all) = (fields.len(), fields.join(" "));
            return Err(format!("expected exactly 5 fields, found {count}: [{all}]").into());
        };
        Ok(Self {
            minutes: field(minute, 0, 59, &[])?,
            hours: field(hour, 0, 23, &[])?,
            days: field(day, 1, 31, &[])?,
            months: field(month, 1, 12, &MONTHS)?,
            weekdays: field(weekday, 0, 6, &WEEKDAYS)?,
            zone: own,
        })
    }

    /// The first time after `now` that matches; none if there is none within [`SEARCHED_YEARS`].
    ///
    /// Local times that a clock change skips never match; of local times that occur twice the first matches.
    pub fn next(&self, now: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        let zone = self.zone.as_ref().unwrap_or(zone);
        let mut at = ZonedSecond { second: now.as_second().checked_add(1)?, zone };
        let last_year = at.local()?.year().checked_add(SEARCHED_YEARS)?;
        let mut cut = false;
        'again: loop {
            let mut local = at.local()?;
            if local.year() > last_year {
                return None;
            }
            while !self.months.has(local.month()) {
                if !cut {
                    cut = true;
                    at = at.set(local.date().first_of_month().to_datetime(jiff::civil::Time::midnight()))?;
                }
                at = at.next_month()?;
                local = at.local()?;
                if local.month() == 1 {
                    continue 'again;
                }
            }
            while !self.has_day(local) {
                if !cut {
                    cut = true;
                    at = at.set(local.date().to_datetime(jiff::civil::Time::midnight()))?;
                }
                at = at.next_day()?;
                local = at.local()?;
                if local.day() == 1 {
                    continue 'again;
                }
            }
            while !self.hours.has(local.hour()) {
                if !cut {
                    cut = true;
                    at = at.set(local.date().at(local.hour(), 0, 0, 0))?;
                }
                at.second += 3600;
                local = at.local()?;
                if local.hour() == 0 {
                    continue 'again;
                }
            }
            while !self.minutes.has(local.minute()) {
                if !cut {
                    cut = true;
                    at.second -= at.second.rem_euclid(60);
                }
                at.second += 60;
                local = at.local()?;
                if local.minute() == 0 {
                    continue 'again;
                }
            }
            while local.second() != 0 {
                cut = true;
                at.second += 1;
                local = at.local()?;
                if local.second() == 0 {
                    continue 'again;
                }
            }
            return Timestamp::from_second(at.second).ok();
        }
    }

    /// Whether the day matches: both day fields must match if one of them is `*`, otherwise one is enough.
    fn has_day(&self, local: DateTime) -> bool {
        let day = self.days.has(local.day());
        let weekday = self.weekdays.has(local.weekday().to_sunday_zero_offset());
        if self.days.any || self.weekdays.any { day && weekday } else { day || weekday }
    }
}

/// A Unix time in seconds, in a time zone.
#[derive(Clone, Copy)]
struct ZonedSecond<'a> {
    second: i64,
    zone: &'a TimeZone,
}

impl ZonedSecond<'_> {
    fn local(&self) -> Option<DateTime> {
        let instant = Timestamp::from_second(self.second).ok()?;
        Some(self.zone.to_datetime(instant))
    }

    /// The time with this local date and time. For local times that are skipped or occur twice, the offset is found as Go
    /// finds it: the offset in effect at the UTC time obtained with the first guess of the offset.
    fn set(self, local: DateTime) -> Option<Self> {
        let plain = Offset::UTC.to_timestamp(local).ok()?.as_second();
        let offset = |second: i64| {
            let instant = Timestamp::from_second(second).ok()?;
            Some(i64::from(self.zone.to_offset(instant).seconds()))
        };
        let second = plain - offset(plain - offset(plain)?)?;
        Some(Self { second, ..self })
    }

    /// The same day and time in the next month; only called for the first of a month.
    fn next_month(self) -> Option<Self> {
        let local = self.local()?;
        let (year, month) = match local.month() {
            12 => (local.year().checked_add(1)?, 1),
            month => (local.year(), month + 1),
        };
        let first = jiff::civil::Date::new(year, month, 1).ok()?;
        let days = jiff::Span::new().try_days(i64::from(local.day()) - 1).ok()?;
        self.set(first.checked_add(days).ok()?.to_datetime(local.time()))
    }

    /// The same time on the next day, corrected to midnight if a clock change lies between.
    fn next_day(self) -> Option<Self> {
        let local = self.local()?;
        let mut next = self.set(local.date().tomorrow().ok()?.to_datetime(local.time()))?;
        match i64::from(next.local()?.hour()) {
            0 => {}
            hour @ 13.. => next.second += (24 - hour) * 3600,
            hour => next.second -= hour * 3600,
        }
        Some(next)
    }
}

/// Parses numbers, ranges and steps, separated by commas.
fn field(text: &str, least: u64, most: u64, names: &[&str]) -> Result<CronField, ParseError> {
    let mut all = CronField::default();
    for range in text.split(',').filter(|range| !range.is_empty()) {
        let found = self::range(range, least, most, names)?;
        all.bits |= found.bits;
        all.any |= found.any;
    }
    Ok(all)
}

fn range(text: &str, least: u64, most: u64, names: &[&str]) -> Result<CronField, ParseError> {
    let parts: Vec<&str> = text.split('/').collect();
    let (range, step) = match *parts {
        [range] => (range, None),
        [range, step] => (range, Some(step)),
        _ => return Err(format!("too many slashes: {text}").into()),
    };
    let ends: Vec<&str> = range.split('-').collect();
    let (first, mut last, mut any) = match *ends {
        ["*" | "?", ..] => (least, most, true),
        [one] => (named(one, least, names)?, named(one, least, names)?, false),
        [first, last] => (named(first, least, names)?, named(last, least, names)?, false),
        _ => return Err(format!("too many hyphens: {text}").into()),
    };
    let step = match step {
        None => 1,
        Some(step) => {
            let step = number(step)?;
            if let [_] = *ends {
                last = most;
            }
            any &= step <= 1;
            step
        }
    };
    if first < least {
        return Err(format!("beginning of range ({first}) below minimum ({least}): {text}").into());
    }
    if last > most {
        return Err(format!("end of range ({last}) above maximum ({most}): {text}").into());
    }
    if first > last {
        return Err(format!("beginning of range ({first}) beyond end of range ({last}): {text}").into());
    }
    if step == 0 {
        return Err(format!("step of range should be a positive number: {text}").into());
    }
    let step = usize::try_from(step).unwrap_or(usize::MAX);
    let bits = (first..=last).step_by(step).fold(0, |bits, number| bits | 1 << number);
    Ok(CronField { bits, any })
}

fn named(text: &str, least: u64, names: &[&str]) -> Result<u64, ParseError> {
    let lower = text.to_lowercase();
    match names.iter().position(|name| *name == lower) {
        Some(at) => Ok(at as u64 + least),
        None => number(text),
    }
}

fn number(text: &str) -> Result<u64, ParseError> {
    // Go parses these as int64.
    let number =
        text.parse::<i64>().map_err(|_| format!("failed to parse int from {text}: it is no whole number"))?;
    u64::try_from(number).map_err(|_| format!("negative number ({number}) not allowed: {text}").into())
}
