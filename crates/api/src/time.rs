//! Times and durations as Go and the Kubernetes API write them.

use jiff::{SignedDuration, Timestamp};

/// Go's zero time, which stands for an absent time.
pub const GO_ZERO: Timestamp = Timestamp::constant(-62_135_596_800, 0);

/// Parses a Go duration (`15.084s`, `1m0s`, `-1.5h`; `0`).
pub fn parse_go_duration(text: &str) -> Option<SignedDuration> {
    let (negative, mut rest) = match text.as_bytes().first()? {
        b'-' => (true, text.get(1..)?),
        b'+' => (false, text.get(1..)?),
        _ => (false, text),
    };
    if rest == "0" {
        return Some(SignedDuration::ZERO);
    }
    if rest.is_empty() {
        return None;
    }
    let mut nanos = 0_i128;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let (number, tail) = rest.split_at_checked(digits)?;
        let unit = tail.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(tail.len());
        let (unit, next) = tail.split_at_checked(unit)?;
        nanos = nanos.checked_add(scaled(number, unit_nanos(unit)?)?)?;
        rest = next;
    }
    let nanos = i64::try_from(if negative { -nanos } else { nanos }).ok()?;
    Some(SignedDuration::from_nanos(nanos))
}

/// A duration as Go prints it (`15.084s`, `1m0s`, `-1h30m0s`).
pub fn go_duration(duration: SignedDuration) -> String {
    let nanos = duration.as_nanos().unsigned_abs();
    let sign = if duration.is_negative() { "-" } else { "" };
    let decimal = |whole: u128, part: u128, digits: usize| {
        let fraction = format!("{part:0digits$}");
        let fraction = fraction.trim_end_matches('0');
        if fraction.is_empty() { whole.to_string() } else { format!("{whole}.{fraction}") }
    };
    let text = match nanos {
        0 => "0s".to_owned(),
        1..1_000 => format!("{nanos}ns"),
        1_000..1_000_000 => format!("{}µs", decimal(nanos / 1_000, nanos % 1_000, 3)),
        1_000_000..1_000_000_000 => format!("{}ms", decimal(nanos / 1_000_000, nanos % 1_000_000, 6)),
        _ => {
            let (seconds, part) = (nanos / 1_000_000_000, nanos % 1_000_000_000);
            let (hours, minutes) = (seconds / 3600, seconds / 60 % 60);
            let seconds = decimal(seconds % 60, part, 9);
            match (hours, minutes) {
                (0, 0) => format!("{seconds}s"),
                (0, _) => format!("{minutes}m{seconds}s"),
                _ => format!("{hours}h{minutes}m{seconds}s"),
            }
        }
    };
    format!("{sign}{text}")
}

fn unit_nanos(unit: &str) -> Option<i128> {
    Some(match unit {
        "ns" => 1,
        "us" | "µs" | "μs" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        _ => return None,
    })
}

/// `number × unit`, fractions cut to whole nanoseconds.
fn scaled(number: &str, unit: i128) -> Option<i128> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() && fraction.is_empty() || fraction.contains('.') {
        return None;
    }
    let whole = if whole.is_empty() { 0 } else { whole.parse::<i128>().ok()? };
    // More digits than a nanosecond of an hour has cannot change the result.
    let kept = fraction.get(..fraction.len().min(18))?;
    let part = if kept.is_empty() { 0 } else { kept.parse::<i128>().ok()? };
    let divisor = 10_i128.checked_pow(u32::try_from(kept.len()).ok()?)?;
    whole.checked_mul(unit)?.checked_add(part.checked_mul(unit)? / divisor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn go_durations() {
        let nanos = |text| parse_go_duration(text).map(|d| d.as_nanos());
        for (text, expected) in [
            ("15s", 15_000_000_000),
            ("15.084s", 15_084_000_000),
            ("1m0s", 60_000_000_000),
            ("1h2m3.5s", 3_723_500_000_000),
            ("-1.5h", -5_400_000_000_000),
            ("300ms", 300_000_000),
            ("1µs", 1_000),
            (".5s", 500_000_000),
            ("0", 0),
        ] {
            assert_eq!(nanos(text), Some(expected), "{text}");
        }
        for text in ["0s", "15s", "1m0s", "1h0m0s", "20m34.567890123s", "-1h30m0s", "999ms", "1.5µs", "7ns"]
        {
            assert_eq!(parse_go_duration(text).map(go_duration).as_deref(), Some(text));
        }
        for text in ["", "s", "1", "1x", "1.2.3s", "-", "99999999999h", "."] {
            assert_eq!(nanos(text), None, "{text}");
        }
    }
}
