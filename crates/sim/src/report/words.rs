//! Formatting of numbers and times for people.

use jiff::{SignedDuration, Timestamp};

use super::page::{PageUnit, ReportPage};

const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

/// The time this many seconds after the start: time of day in UTC, with the date where the page spans several days.
pub(super) fn moment(page: &ReportPage, seconds: f64) -> String {
    let at = instant(page, seconds);
    let date = if spans_days(page) { at.strftime("%a %-d %b ").to_string() } else { String::new() };
    let milli = at.subsec_millisecond().unsigned_abs();
    let fraction = if milli == 0 { String::new() } else { format!(".{milli:03}") };
    format!("{date}{}{fraction}", at.strftime("%H:%M:%S"))
}

/// The time from the first to the last moment, with dates: `Mon 5 Jan 2026, 00:00 – 00:30 UTC`.
pub(super) fn interval(page: &ReportPage) -> String {
    let (from, to) = (page.start, instant(page, page.seconds));
    let last = if spans_days(page) {
        to.strftime("%a %-d %b %Y, %H:%M").to_string()
    } else {
        to.strftime("%H:%M").to_string()
    };
    format!("{} – {last} UTC", from.strftime("%a %-d %b %Y, %H:%M"))
}

/// Whether the page spans more than one day.
fn spans_days(page: &ReportPage) -> bool {
    let end = instant(page, page.seconds - 0.001);
    page.start.strftime("%F").to_string() != end.strftime("%F").to_string()
}

fn instant(page: &ReportPage, seconds: f64) -> Timestamp {
    let length = SignedDuration::try_from_secs_f64(seconds).unwrap_or_default();
    page.start.checked_add(length).unwrap_or(page.start)
}

/// A length of time with its two largest units: `45 s`, `2 min 5 s`, `3 h 20 min`, `30 d`.
pub(super) fn length(seconds: f64) -> String {
    if !seconds.is_finite() {
        return "–".to_owned();
    }
    if seconds > 0.0 && seconds < 9.95 {
        return format!("{} s", fixed(seconds, 1));
    }
    let whole = seconds.round().max(0.0) as u64;
    let parts = match whole {
        _ if whole < 2 * MINUTE => [(whole, "s"), (0, "")],
        _ if whole < HOUR => [(whole / MINUTE, "min"), (whole % MINUTE, "s")],
        _ if whole < DAY => [(whole / HOUR, "h"), (whole % HOUR / MINUTE, "min")],
        _ => [(whole / DAY, "d"), (whole % DAY / HOUR, "h")],
    };
    let [(large, unit), (small, smaller)] = parts;
    if small == 0 { format!("{large} {unit}") } else { format!("{large} {unit} {small} {smaller}") }
}

/// At least three significant digits: `0.0123`, `2.93`, `12.3`, `1,234`.
pub(super) fn number(value: f64) -> String {
    let size = value.abs();
    let decimals = match size {
        _ if !size.is_finite() => return "–".to_owned(),
        _ if size == 0.0 || size >= 99.95 => 0,
        _ if size >= 9.995 => 1,
        _ if size >= 0.0995 => 2,
        _ if size >= 0.000_5 => 4,
        _ => return format!("{value:.1e}"),
    };
    fixed(value, decimals)
}

/// A share from 0 to 1 as a percentage. A value above zero is not shown as zero.
pub(super) fn percent(share: f64) -> String {
    let value = share * 100.0;
    if value > 0.0 && value < 0.01 {
        "<\u{a0}0.01\u{a0}%".to_owned()
    } else {
        let decimals = if value >= 9.95 { 1 } else { 2 };
        format!("{} %", fixed(value, decimals))
    }
}

/// A value of a metric.
pub(super) fn amount(unit: PageUnit, value: f64) -> String {
    const KIBI: f64 = 1024.0;
    match unit {
        PageUnit::Percent => format!("{} %", fixed(value, usize::from(value.abs() < 9.95))),
        PageUnit::Bytes => {
            let steps = [(KIBI.powi(4), "Ti"), (KIBI.powi(3), "Gi"), (KIBI.powi(2), "Mi"), (KIBI, "Ki")];
            let step = steps.into_iter().find(|(size, _)| value.abs() >= *size);
            step.map_or_else(|| number(value), |(size, name)| format!("{}{name}", number(value / size)))
        }
        PageUnit::Cores if value != 0.0 && value.abs() < 10.0 => format!("{}m", fixed(value * 1000.0, 0)),
        PageUnit::Cores | PageUnit::Plain => number(value),
    }
}

/// `1 change`, `2 changes`.
pub(super) fn plural(count: u64, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{} {noun}s", grouped(&count.to_string())) }
}

/// `1 pod-hour`, `2.5 pod-hours`.
pub(super) fn plural_number(value: f64, noun: &str) -> String {
    let number = number(value);
    let end = if number == "1" { "" } else { "s" };
    format!("{number} {noun}{end}")
}

/// A number with at most `decimals` decimals and groups of three digits.
fn fixed(value: f64, decimals: usize) -> String {
    if !value.is_finite() {
        return "–".to_owned();
    }
    let text = format!("{value:.decimals$}");
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
    let fraction = fraction.trim_end_matches('0');
    let whole = grouped(whole);
    let whole = if whole == "-0" && fraction.is_empty() { "0".to_owned() } else { whole };
    if fraction.is_empty() { whole } else { format!("{whole}.{fraction}") }
}

fn grouped(digits: &str) -> String {
    let (sign, digits) = digits.strip_prefix('-').map_or(("", digits), |rest| ("-", rest));
    let mut text = sign.to_owned();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_have_two_units() {
        for (seconds, text) in [
            (0.0, "0 s"),
            (0.25, "0.2 s"),
            (75.0, "75 s"),
            (119.6, "2 min"),
            (125.0, "2 min 5 s"),
            (3600.0, "1 h"),
            (12_000.0, "3 h 20 min"),
            (30.0 * 86_400.0, "30 d"),
            (f64::NAN, "–"),
        ] {
            assert_eq!(length(seconds), text, "{seconds}");
        }
    }

    #[test]
    fn numbers_keep_three_digits() {
        for (value, text) in [
            (0.0, "0"),
            (2.934, "2.93"),
            (12.34, "12.3"),
            (99.97, "100"),
            (1_234_567.0, "1,234,567"),
            (0.0123, "0.0123"),
        ] {
            assert_eq!(number(value), text);
        }
        for (share, text) in
            [(0.0, "0 %"), (0.0211, "2.11 %"), (0.000_01, "<\u{a0}0.01\u{a0}%"), (1.0, "100 %")]
        {
            assert_eq!(percent(share), text);
        }
        assert_eq!(amount(PageUnit::Bytes, 12.0 * 1024.0 * 1024.0), "12Mi");
        assert_eq!(amount(PageUnit::Cores, 0.25), "250m");
        assert_eq!(amount(PageUnit::Percent, 76.0), "76 %");
        assert_eq!(plural(1, "change") + ", " + &plural(2000, "change"), "1 change, 2,000 changes");
    }
}
