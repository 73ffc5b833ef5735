//! Explains where the samples of a metric came from.

use jiff::{SignedDuration, Timestamp};

use super::Rows;
use super::words::{amount, clock, plural};
use crate::decision::Decision;
use crate::provenance::{Provenance, ResponseSharing};
use crate::spec::{Metric, MetricSource, SeriesAggregator};
use crate::trigger_poll::SampleRead;

/// Adds the rows of metric number `index`.
pub(super) fn rows(rows: &mut Rows, name: &str, metric: &Metric, decision: &Decision, index: usize) {
    let succeeded = decision.evaluations.get(index).is_some_and(|evaluation| evaluation.result.is_ok());
    let rule = match metric.series {
        SeriesAggregator::Sum => None,
        SeriesAggregator::Max => Some("the largest series counts (seriesAggregator: max)"),
        SeriesAggregator::Min => Some("the smallest series counts (seriesAggregator: min)"),
        SeriesAggregator::Average => Some("the mean of the series counts (seriesAggregator: average)"),
    };
    if let Some(rule) = rule.filter(|_| succeeded) {
        rows.add(name, rule);
    }
    let Some(from) = decision.provenance.get(index) else { return };
    if from.samples > 0 {
        rows.add(name, taken(from, metric));
    }
    if !from.largest.is_empty() {
        let each = from.largest.iter().map(|one| format!("{} {}", one.name, amount(metric, one.milli)));
        rows.add(name, format!("largest: {}", each.collect::<Vec<_>>().join(" · ")));
    }
    if let Some(text) = answered(from) {
        rows.add(name, text);
    }
}

/// `3 samples, taken 02:09:41 to 02:09:44 over 15 s, at most 12 s old`.
fn taken(from: &Provenance, metric: &Metric) -> String {
    let noun = match &metric.source {
        MetricSource::External(_) => "series",
        _ => "sample",
    };
    let count = from.samples as i64;
    let mut text = if noun == "series" { format!("{count} series") } else { plural(count, noun) };
    match (from.oldest, from.newest) {
        (Some(oldest), Some(newest)) if clock(oldest) != clock(newest) => {
            text += &format!(", taken {} to {}", clock(oldest), clock(newest));
        }
        (Some(oldest), _) => text += &format!(", taken {}", clock(oldest)),
        _ => text += ", taken at a time that the server does not state",
    }
    if let Some(window) = from.window.filter(|window| !window.is_zero()) {
        text += &format!(" over {}", short(window));
    }
    if let Some(age) = from.age {
        let at_most = if from.oldest == from.newest { "" } else { "at most " };
        text += &if age.is_negative() {
            format!(", {} after the decision (the clocks differ)", short(age.abs()))
        } else {
            format!(", {at_most}{} old", short(age))
        };
    }
    text
}

/// `from metrics.k8s.io/v1beta1 (kubelets), in 4 ms`.
fn answered(from: &Provenance) -> Option<String> {
    if from.api.is_empty() {
        return None;
    }
    let mut text = format!("from {}", from.api);
    if let Some(source) = &from.source {
        text += &format!(" ({source})");
    }
    if let Some(took) = from.took {
        text += &format!(", in {}", short(took));
    }
    match from.response {
        ResponseSharing::Own => {}
        ResponseSharing::Joined => text += ", by a request that was under way for another query",
        ResponseSharing::Cached => text += ", with the response to an earlier query",
    }
    Some(text)
}

/// `read 02:09:44, 12 s old, in 4 ms`.
pub(super) fn sample_read(read: &SampleRead, decided: Timestamp) -> String {
    let mut text = format!("read {}", clock(read.at));
    let age = decided.duration_since(read.at);
    if age.as_secs() > 0 {
        text += &format!(", {} old", short(age));
    }
    text += &format!(", in {}", short(read.took));
    text + if read.shared { ", with the response to an earlier query" } else { "" }
}

/// A duration with two to four digits: `4 ms`, `1.25 s`, `300 s`.
fn short(duration: SignedDuration) -> String {
    let millis = duration.as_millis();
    match millis {
        ..1 => "less than 1 ms".to_owned(),
        1..1000 => format!("{millis} ms"),
        1000..10_000 if millis % 1000 != 0 => {
            format!("{}.{:02} s", millis / 1000, millis % 1000 / 10)
        }
        _ => format!("{} s", millis / 1000),
    }
}

#[cfg(test)]
mod tests {

    use super::*;
    use crate::provenance::LargestSample;

    #[test]
    fn durations_are_short() {
        let texts =
            [0, 7, 999, 1000, 1250, 9999, 12_345, 300_000].map(|ms| short(SignedDuration::from_millis(ms)));
        assert_eq!(texts, ["less than 1 ms", "7 ms", "999 ms", "1 s", "1.25 s", "9.99 s", "12 s", "300 s"]);
    }

    #[test]
    fn the_text_states_time_age_server_and_sharing() {
        let at = |text: &str| Some(format!("2026-01-01T{text}Z").parse::<Timestamp>().unwrap());
        let mut from = Provenance {
            api: "metrics.k8s.io/v1beta1".into(),
            source: Some("kubelets".into()),
            oldest: at("02:09:41"),
            newest: at("02:09:44"),
            window: Some(SignedDuration::from_secs(15)),
            samples: 3,
            largest: vec![LargestSample { name: "web-1".into(), milli: 300.into() }],
            response: ResponseSharing::Joined,
            ..Provenance::default()
        };
        from.decided("2026-01-01T02:09:53Z".parse().unwrap(), SignedDuration::from_millis(4));
        let metric = super::super::tests::cpu(50);
        assert_eq!(
            taken(&from, &metric),
            "3 samples, taken 02:09:41 to 02:09:44 over 15 s, at most 12 s old"
        );
        let expected = "from metrics.k8s.io/v1beta1 (kubelets), in 4 ms, by a request that was under way for another query";
        assert_eq!(answered(&from).unwrap(), expected);
        let (samples, newest) = (1, from.oldest);
        let one = Provenance { samples, newest, window: None, ..from.clone() };
        assert_eq!(taken(&one, &metric), "1 sample, taken 02:09:41, 12 s old");
        let unknown = Provenance { oldest: None, newest: None, age: None, ..from };
        assert!(taken(&unknown, &metric).contains("a time that the server does not state"));
        assert_eq!(answered(&Provenance::default()), None);
    }
}
