//! A decision in one line, for tables, logs and the tooltips of charts.

use super::words::{amount, clock, plain, plural, short_name};
use crate::decision::{Course, Decision, ScaleOutcome};
use crate::evaluate::{Arithmetic, AssumedUsage, NoChangeReason, PerPodArithmetic};
use crate::normalize::{ScalingLimit, StabilizationHold};
use crate::spec::{Metric, Spec};
use crate::units::MilliValue;

/// Explains a decision in one line.
pub fn sentence(spec: &Spec, decision: &Decision) -> String {
    let by_course = by_course(spec, decision);
    let text = match &decision.activation {
        Some(activation) => super::activity::sentence(activation, decision, &by_course),
        None => by_course,
    };
    plain(&text)
}

fn by_course(spec: &Spec, decision: &Decision) -> String {
    match (&decision.course, &decision.outcome) {
        (Course::NoScale(_), _) => "held: the target's scale cannot be read".to_owned(),
        (Course::Disabled, _) => "paused: the target was scaled to zero".to_owned(),
        (Course::AboveMax, _) => format!("above max {}", spec.max),
        (Course::BelowMin, _) => format!("below min {}", spec.min),
        (Course::Metrics, ScaleOutcome::Failed) => failed(spec, decision),
        (Course::Metrics | Course::Activity, ScaleOutcome::WriteFailed(error)) => {
            format!("held: writing {} failed: {error}", decision.desired)
        }
        (Course::Activity, _) => String::new(),
        (Course::Metrics, _) => by_metrics(spec, decision),
    }
}

fn failed(spec: &Spec, decision: &Decision) -> String {
    let missing: Vec<String> = decision
        .evaluations
        .iter()
        .zip(&spec.metrics)
        .filter(|(e, _)| e.result.is_err())
        .map(|(_, m)| short_name(m))
        .collect();
    if missing.is_empty() {
        "held: the selector does not identify the target's pods".to_owned()
    } else {
        format!("held: {} cannot be read", missing.join(", "))
    }
}

fn by_metrics(spec: &Spec, decision: &Decision) -> String {
    let Some(normalized) = &decision.normalized else { return String::new() };
    let source = decision.recommendation.as_ref().and_then(|r| r.winner);
    let name = source.and_then(|w| spec.metrics.get(w)).map_or_else(|| "metrics".to_owned(), short_name);
    let stabilized = &normalized.stabilized;
    let mut parts = vec![format!("{name} wants {}", stabilized.recommended)];
    if stabilized.hold != StabilizationHold::None {
        let until = stabilized.holds_until().map(|t| format!(" until {}", clock(t))).unwrap_or_default();
        parts.push(format!("window holds {}{until}", stabilized.replicas));
    }
    match normalized.limited.limit {
        ScalingLimit::Up => parts.push(format!("scale-up limit is {} this time", decision.desired)),
        ScalingLimit::Down => parts.push(format!("scale-down limit is {} this time", decision.desired)),
        ScalingLimit::TooMany => parts.push(format!("max is {}", spec.max)),
        ScalingLimit::TooFew => parts.push(format!("min is {}", spec.min)),
        ScalingLimit::Within => {}
    }
    if parts.len() > 1 {
        return parts.join("; ");
    }
    source
        .and_then(|w| Some((decision.evaluations.get(w)?, spec.metrics.get(w)?)))
        .and_then(|(e, m)| Some(reading(m, &e.result.as_ref().ok()?.sum)))
        .unwrap_or_else(|| parts.concat())
}

/// `cpu 76 % of 50 %`, and the reason if it causes no change.
fn reading(metric: &Metric, sum: &Arithmetic) -> String {
    let name = short_name(metric);
    let milli = |thousandths| amount(metric, MilliValue::new(thousandths));
    let (text, kept) = match sum {
        Arithmetic::PerPod(s) if s.requests.is_some() => {
            (format!("{name} {} % of {} %", s.found, s.target), s.kept)
        }
        Arithmetic::PerPod(s) => (format!("{name} {} of {} each", milli(s.found), milli(s.target)), s.kept),
        Arithmetic::Total(s) => {
            (format!("{name} {} of {}", amount(metric, s.usage), amount(metric, s.target)), s.kept)
        }
        Arithmetic::PerReplica(s) => {
            let (usage, target) = (amount(metric, s.usage), amount(metric, s.target));
            let replicas = plural(i64::from(s.replicas.get()), "replica");
            (format!("{name} {usage} for {replicas}, target {target} each"), s.kept)
        }
    };
    let assumed = match sum {
        Arithmetic::PerPod(PerPodArithmetic { assumed: Some(assumed), .. }) => assumption(assumed),
        _ => String::new(),
    };
    match kept {
        None => text,
        Some(NoChangeReason::WithinTolerance) if assumed.is_empty() => format!("{text}: close enough"),
        Some(NoChangeReason::WithinTolerance) => format!("{text}; close enough with {assumed}"),
        Some(NoChangeReason::DirectionFlips | NoChangeReason::CountFlips) => {
            format!("{text}; the direction is not certain with {assumed}")
        }
    }
}

/// `1 pod not yet ready counted as idle and 2 pods without metrics`.
fn assumption(assumed: &AssumedUsage) -> String {
    let mut parts = Vec::new();
    if assumed.unready > 0 {
        parts.push(format!("{} not yet ready counted as idle", plural(assumed.unready, "pod")));
    }
    if assumed.missing > 0 {
        parts.push(format!("{} without metrics", plural(assumed.missing, "pod")));
    }
    parts.join(" and ")
}
