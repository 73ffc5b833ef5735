//! Explains what would change the outcome, and when.

use jiff::SignedDuration;

use super::words::{amount, exact_clock, seconds, short_name};
use crate::decision::{Course, Decision, ScaleOutcome};
use crate::evaluate::{Arithmetic, NoChangeReason};
use crate::normalize::ScalingLimit;
use crate::spec::Spec;
use crate::units::MilliValue;

pub(super) fn text(spec: &Spec, decision: &Decision, period: SignedDuration) -> String {
    let soon = format!("in {}", seconds(period));
    match (&decision.course, &decision.outcome) {
        (Course::NoScale(_), _) | (Course::Activity, ScaleOutcome::WriteFailed(_)) => {
            return format!("{soon}, tried again");
        }
        (Course::Activity, _) => return super::activity::next(decision, &soon),
        (Course::Disabled, _) => {
            return "no change until the target is scaled to at least 1".to_owned();
        }
        (_, ScaleOutcome::Failed) if decision.selection.is_some() => {
            return format!(
                "{soon}, tried again; the count changes once the selector identifies the target's pods"
            );
        }
        (_, ScaleOutcome::Failed) => {
            return format!(
                "{soon}, tried again; the count changes once the metric can be read, or when another proposes more than {}",
                decision.current()
            );
        }
        (_, ScaleOutcome::WriteFailed(_)) => return format!("{soon}, tried again"),
        _ => {}
    }
    let Some(normalized) = &decision.normalized else {
        return format!("{soon}, metrics decide again");
    };
    let wanted = normalized.stabilized.recommended;
    let to = decision.desired;
    if let Some(next) = normalized.next {
        let provided = format!("if the proposal stays {wanted}");
        return if next.at <= decision.at {
            format!("{soon}, {to} → {} {provided}", next.replicas)
        } else {
            format!("{to} stays until {}, then {}, {provided}", exact_clock(next.at), next.replicas)
        };
    }
    if normalized.next_unknown {
        return format!(
            "{soon}, decided again; too many policies and recommendations limit the count to say when it changes"
        );
    }
    match normalized.limited.limit {
        ScalingLimit::Up | ScalingLimit::Down if to != wanted => {
            return format!(
                "stays at {to} as long as the proposal is {wanted}: its scaling policies allow no change"
            );
        }
        ScalingLimit::TooMany => {
            return format!("stays at max {} until the proposal falls below it", spec.max);
        }
        ScalingLimit::TooFew => {
            return format!("stays at min {} until the proposal rises above it", spec.min);
        }
        _ => {}
    }
    tolerance_band(spec, decision).map_or_else(|| soon.clone(), |band| format!("{soon}; {band}"))
}

/// The values at which a metric within tolerance leads to a change.
fn tolerance_band(spec: &Spec, decision: &Decision) -> Option<String> {
    let winner = decision.recommendation.as_ref()?.winner?;
    let (evaluation, metric) = (decision.evaluations.get(winner)?, spec.metrics.get(winner)?);
    let Arithmetic::PerPod(sum) = &evaluation.result.as_ref().ok()?.sum else { return None };
    match sum.kept {
        Some(NoChangeReason::WithinTolerance) => {}
        Some(NoChangeReason::DirectionFlips | NoChangeReason::CountFlips) => {
            return Some("more can be said once all pods are ready and have metrics".to_owned());
        }
        None => return None,
    }
    let edge = |factor: f64| {
        let at = sum.target as f64 * factor;
        if sum.requests.is_some() {
            format!("{} %", super::words::trimmed(at, 1, 0).trim_end_matches('.'))
        } else {
            amount(metric, MilliValue::new(at as i64))
        }
    };
    let (low, high) = (edge(1.0 - decision.tolerances.down), edge(1.0 + decision.tolerances.up));
    Some(format!("{} counts again below {low} or above {high}", short_name(metric)))
}
