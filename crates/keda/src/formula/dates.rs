//! Durations and dates in Go's formats.

use api::time::parse_go_duration;
use jiff::civil::DateTime;
use jiff::tz::{Offset, TimeZone};
use jiff::{Timestamp, Zoned};

use super::error::EvalError;

/// `1h30m`, `-1.5h`, `300ms`: nanoseconds.
pub(super) fn parse_span(text: &str) -> Result<i64, EvalError> {
    parse_go_duration(text)
        .and_then(|span| i64::try_from(span.as_nanos()).ok())
        .ok_or_else(|| format!("time: invalid duration {text:?}").into())
}

/// The layouts that a date without one may have.
const LAYOUTS: [&str; 7] = [
    "2006-01-02",
    "15:04:05",
    "2006-01-02 15:04:05",
    "2006-01-02T15:04:05Z07:00",
    "02 Jan 06 15:04 MST",
    "Monday, 02-Jan-06 15:04:05 MST",
    "Mon, 02 Jan 2006 15:04:05 MST",
];

/// Elements of Go's layouts and their strftime equivalents; longer elements first.
const PARTS: [(&str, &str); 35] = [
    ("2006", "%Y"),
    ("January", "%B"),
    ("Monday", "%A"),
    ("Z07:00", "Z"),
    ("-07:00", "%:z"),
    ("-0700", "%z"),
    (".000000000", ".%9f"),
    (".000000", ".%6f"),
    (".000", ".%3f"),
    (".999999999", "%.f"),
    (".999999", "%.f"),
    (".999", "%.f"),
    ("002", "%j"),
    ("Jan", "%b"),
    ("Mon", "%a"),
    ("MST", "%Z"),
    ("15", "%H"),
    ("01", "%m"),
    ("02", "%d"),
    ("03", "%I"),
    ("04", "%M"),
    ("05", "%S"),
    ("06", "%y"),
    ("_2", "%e"),
    ("PM", "%p"),
    ("pm", "%P"),
    ("%", "%%"),
    ("1", "%-m"),
    ("2", "%-d"),
    ("3", "%-I"),
    ("4", "%-M"),
    ("5", "%-S"),
    ("T", "T"),
    (" ", " "),
    (",", ","),
];

/// Converts a Go layout to `strftime`.
fn translated(layout: &str) -> String {
    let mut out = String::new();
    let mut rest = layout;
    while let Some(first) = rest.chars().next() {
        let (taken, put) = PARTS
            .iter()
            .find(|(part, _)| rest.starts_with(part))
            .map_or((first.len_utf8(), None), |(part, put)| (part.len(), Some(*put)));
        match put {
            // `Z` for UTC, else an offset: parsing tries both.
            Some("Z") => out.push_str("%:z"),
            Some(put) => out.push_str(put),
            None => out.push(first),
        }
        rest = rest.get(taken..).unwrap_or_default();
    }
    out
}

/// Reads a date.
pub(super) fn parse_date(text: &str, layout: Option<&str>, zone: &TimeZone) -> Result<Zoned, EvalError> {
    if text.len() > 200 || layout.is_some_and(|layout| layout.len() > 200) {
        return Err("invalid date: text is too long".into());
    }
    match layout {
        Some(layout) => parse_with(text, layout, zone)
            .ok_or_else(|| format!("parsing time {text:?} as {layout:?}: cannot parse").into()),
        None => LAYOUTS
            .iter()
            .find_map(|layout| parse_with(text, layout, zone))
            .ok_or_else(|| format!("invalid date {text}").into()),
    }
}

fn parse_with(text: &str, layout: &str, zone: &TimeZone) -> Option<Zoned> {
    let (text, layout) = match (layout.contains("Z07:00"), text.strip_suffix('Z')) {
        (true, Some(text)) => (format!("{text}+00:00"), layout.to_owned()),
        _ => (text.to_owned(), layout.to_owned()),
    };
    // A zone abbreviation is used if it is UTC and ignored otherwise, as in Go.
    let (text, layout, named) = match layout.strip_suffix(" MST").zip(text.rsplit_once(' ')) {
        Some((layout, (text, name))) => {
            let utc = matches!(name, "UTC" | "GMT" | "Z");
            (text.to_owned(), layout.to_owned(), utc.then_some(TimeZone::UTC))
        }
        None => (text, layout, None),
    };
    // Go parses fractional seconds even if the layout has none.
    let mut format = translated(&layout);
    if format.contains("%S") && !format.contains("%S.") && !format.contains("%S%.f") {
        format = format.replace("%S", "%S%.f");
    }
    let broken = jiff::fmt::strtime::parse(&format, &text).ok()?;
    let date = broken.to_date().unwrap_or(jiff::civil::date(0, 1, 1));
    let time = broken.to_time().unwrap_or(jiff::civil::Time::midnight());
    let civil = DateTime::from_parts(date, time);
    let zone = match (broken.offset(), named) {
        (Some(offset), _) if offset == Offset::UTC => TimeZone::UTC,
        (Some(offset), _) => TimeZone::fixed(offset),
        (None, Some(zone)) => zone,
        (None, None) => zone.clone(),
    };
    civil.to_zoned(zone).ok()
}

/// Writes a date.
pub(super) fn format_date(time: &Zoned, layout: &str) -> Result<String, EvalError> {
    if layout.len() > 200 {
        return Err("layout is too long".into());
    }
    let format = translated(layout);
    let is_utc = layout.contains("Z07:00") && time.offset() == Offset::UTC;
    let format = if is_utc { format.replace("%:z", "Z") } else { format };
    jiff::fmt::strtime::format(&format, time).map_err(|error| error.to_string().into())
}

/// The time zone with this name; `UTC` and `Local` are UTC.
pub(super) fn zone(name: &str) -> Result<TimeZone, EvalError> {
    match name {
        "" | "UTC" | "Local" => Ok(TimeZone::UTC),
        _ => TimeZone::get(name).map_err(|_| format!("unknown time zone {name}").into()),
    }
}

/// An instant so many nanoseconds after 1970.
pub(super) fn instant(nanoseconds: i128) -> Result<Timestamp, EvalError> {
    Timestamp::from_nanosecond(nanoseconds).map_err(|_| "time is out of range".into())
}
