//! Formatting of numbers, times and names for people.

use std::fmt;
use std::sync::OnceLock;

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use quantity::{Format, Quantity};

use crate::spec::{Metric, MetricSource};
use crate::units::MilliValue;

/// The zone in which a program shows times to its user.
static ZONE: OnceLock<TimeZone> = OnceLock::new();

/// Shows all times of this process in a zone; without this call, in UTC. For programs that run for one person, not for servers.
pub fn show_times_in(zone: TimeZone) {
    // The first call counts, so that all times of an output are in the same zone.
    let _ = ZONE.set(zone);
}

/// The zone in which times are shown.
pub fn zone() -> TimeZone {
    ZONE.get().cloned().unwrap_or(TimeZone::UTC)
}

/// The short name of the zone at a time: `UTC`, `CEST`.
pub fn zone_name(at: Timestamp) -> String {
    zone().to_offset_info(at).abbreviation().to_owned()
}

/// Time of day, in UTC unless the program shows another zone.
pub fn clock(at: Timestamp) -> String {
    at.to_zoned(zone()).strftime("%H:%M:%S").to_string()
}

/// Time of day in UTC, with the fraction of a second if there is one: a decision before it is too early. A nanosecond, which
/// marks the end of an inclusive window, is left out.
pub(super) fn exact_clock(at: Timestamp) -> String {
    if at.subsec_millisecond() == 0 { clock(at) } else { at.strftime("%H:%M:%S%.3f").to_string() }
}

/// Short name of a metric: `cpu`, `cpu of app`, or the metric's own name.
pub fn short_name(metric: &Metric) -> String {
    metric.source.short_name()
}

/// `1 pod`, `2 pods`.
pub fn plural<N: Copy + fmt::Display + PartialEq + From<u8>>(count: N, noun: &str) -> String {
    if count == N::from(1) { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

/// `300 s`.
pub(super) fn seconds(duration: SignedDuration) -> String {
    let (whole, milli) = (duration.as_secs(), duration.subsec_millis());
    if milli == 0 { format!("{whole} s") } else { format!("{}.{:03} s", whole, milli.abs()) }
}

/// Formats a value: `610m` of cpu, `200Mi` of memory, `11.5` of anything else.
pub(super) fn amount(metric: &Metric, value: MilliValue) -> String {
    let resource = match &metric.source {
        MetricSource::Resource { name, .. } | MetricSource::ContainerResource { name, .. } => {
            Some(name.as_str())
        }
        _ => None,
    };
    match resource {
        Some("memory") => Quantity::from_milli(value.get(), Format::BinarySi).to_string(),
        Some(_) => Quantity::from_milli(value.get(), Format::DecimalSi).to_string(),
        None => plain_amount(value),
    }
}

/// Formats a value without a unit: `11.5`.
pub(super) fn plain_amount(value: MilliValue) -> String {
    trimmed(value.as_f64() / 1000.0, 3, 0).trim_end_matches('.').to_owned()
}

/// Formats a ratio with enough digits to compare it with its bounds.
pub(super) fn ratio(ratio: f64) -> String {
    if ratio.is_finite() { trimmed(ratio, 4, 2) } else { "not a finite number".to_owned() }
}

/// Formats with at most `most` and at least `least` decimals.
pub(super) fn trimmed(value: f64, most: usize, least: usize) -> String {
    let mut text = format!("{value:.most$}");
    let floor = text.len().saturating_sub(most - least);
    while text.len() > floor && text.ends_with('0') {
        text.pop();
    }
    text
}

/// How Go prints a selector inside messages.
const GO_SELECTOR: &str = "&LabelSelector{MatchLabels:map[string]string{";
/// What is between the labels and the expressions of such a selector.
const GO_EXPRESSIONS: &str = "},MatchExpressions:[]LabelSelectorRequirement{";
/// The average over no replicas that Kubernetes stores: a division by zero.
const AVERAGE_OF_NONE: &str = "-9223372036854775808m";

/// A message of Kubernetes as people write it: selectors as `a=2,b in (x,y)`, and no number for an average over no replicas. Texts
/// of status, conditions and events stay as Kubernetes writes them.
pub fn plain(text: &str) -> String {
    // Each text that is replaced has one of these characters.
    if !text.contains(['{', '-']) {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(GO_SELECTOR) {
        let Some((selector, after)) = selector(after) else { break };
        out.push_str(before);
        out.push_str(&selector);
        rest = after;
    }
    out.push_str(rest);
    out.replace(AVERAGE_OF_NONE, "<no replicas>")
}

/// The selector after [`GO_SELECTOR`], and the text after it.
fn selector(text: &str) -> Option<(String, &str)> {
    let (labels, rest) = text.split_once(GO_EXPRESSIONS)?;
    let (expressions, rest) = match rest.strip_prefix("},}") {
        Some(rest) => ("", rest),
        None => rest.split_once(",},},}")?,
    };
    let mut parts: Vec<String> = labels
        .split_terminator(',')
        .filter_map(|label| label.split_once(": "))
        .map(|(k, v)| format!("{k}={v}"))
        .collect();
    for one in expressions.split("LabelSelectorRequirement{Key:").skip(1) {
        let (key, one) = one.split_once(",Operator:")?;
        let (operator, one) = one.split_once(",Values:[")?;
        let values = one.split(']').next()?.replace(' ', ",");
        parts.push(match operator {
            "In" => format!("{key} in ({values})"),
            "NotIn" => format!("{key} notin ({values})"),
            "Exists" => key.to_owned(),
            "DoesNotExist" => format!("!{key}"),
            other => format!("{key} {other} ({values})"),
        });
    }
    let parts = if parts.is_empty() { "everything".to_owned() } else { parts.join(",") };
    Some((parts, rest))
}

#[cfg(test)]
mod tests {
    use super::plain;

    #[test]
    fn selectors_are_written_as_people_write_them() {
        let go = "unable to get external metric shop/queue/&LabelSelector{MatchLabels:map[string]string{a: 2,b: 1,},\
                  MatchExpressions:[]LabelSelectorRequirement{LabelSelectorRequirement{Key:t,Operator:NotIn,Values:[y x],},\
                  LabelSelectorRequirement{Key:s,Operator:Exists,Values:[],},},}: not found";
        assert_eq!(plain(go), "unable to get external metric shop/queue/a=2,b=1,t notin (y,x),s: not found");
        let labels = "metric q(&LabelSelector{MatchLabels:map[string]string{a: 2,},MatchExpressions:[]LabelSelectorRequirement{},}) above target";
        assert_eq!(plain(labels), "metric q(a=2) above target");
        let none = "q(&LabelSelector{MatchLabels:map[string]string{},MatchExpressions:[]LabelSelectorRequirement{},})";
        assert_eq!(plain(none), "q(everything)");
        for text in ["", "cpu 5 %", "&LabelSelector{MatchLabels:map[string]string{a: 2,"] {
            assert_eq!(plain(text), text, "other texts stay");
        }
        assert_eq!(plain("queue: -9223372036854775808m/100 (avg)"), "queue: <no replicas>/100 (avg)");
    }
}
