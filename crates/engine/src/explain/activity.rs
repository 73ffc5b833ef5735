//! Explains the activation phase: scaling between the idle count and the lower bound.

use super::words::clock;
use super::{Decider, Rows, decider};
use crate::activation::{Activation, ActivationVerdict};
use crate::decision::{Course, Decision, ScaleOutcome};

pub(super) fn rows(rows: &mut Rows, decision: &Decision) {
    if let Some(activation) = &decision.activation {
        rows.push("activity", text(activation, decision), decider(decision) == Decider::Activity);
    }
}

fn text(activation: &Activation, decision: &Decision) -> String {
    let (current, rest) = (decision.current(), activation.rest);
    let active = match activation.by.as_slice() {
        [] => "nothing is active".to_owned(),
        [one] => format!("{one} is active"),
        several => format!("{} are active", several.join(", ")),
    };
    match &activation.verdict {
        ActivationVerdict::Wakes => format!("{active}: {current} is left"),
        ActivationVerdict::Lifts => format!("{active}; {current} is below the lower bound"),
        ActivationVerdict::Rests { since: Some(since) } => {
            format!("{active}, and nothing was since {}: {current} goes to {rest}", clock(*since))
        }
        ActivationVerdict::Rests { since: None } => {
            format!("{active}, and nothing was before: {current} goes to {rest}")
        }
        ActivationVerdict::Resting => format!("{active}: {current} stays"),
        ActivationVerdict::Cooling { until } => {
            format!("{active}; cooldown until {}, then {rest}", clock(*until))
        }
        ActivationVerdict::Metrics => format!("{active}: metrics decide"),
        ActivationVerdict::Held(why) => format!("{active}, but {why}"),
    }
}

/// The decision in one line. `by_course` is the line without the activation phase.
pub(super) fn sentence(activation: &Activation, decision: &Decision, by_course: &str) -> String {
    if matches!(decision.outcome, ScaleOutcome::Failed | ScaleOutcome::WriteFailed(_)) {
        return by_course.to_owned();
    }
    let (from, to) = (decision.current(), decision.desired);
    let and = if by_course.is_empty() { String::new() } else { format!("; {by_course}") };
    match &activation.verdict {
        ActivationVerdict::Wakes => format!("{from} → {to}: {}{and}", activation.reason()),
        ActivationVerdict::Lifts => format!("{from} → {to}: below the lower bound"),
        ActivationVerdict::Rests { since: Some(since) } => {
            format!("{from} → {to}: nothing active since {}", clock(*since))
        }
        ActivationVerdict::Rests { since: None } => format!("{from} → {to}: nothing active"),
        ActivationVerdict::Resting => "at rest: nothing active".to_owned(),
        ActivationVerdict::Cooling { until } => {
            let held = format!("held: cooldown until {}", clock(*until));
            if from == to { held } else { format!("{by_course}; cooldown until {}", clock(*until)) }
        }
        ActivationVerdict::Metrics => by_course.to_owned(),
        ActivationVerdict::Held(why) => format!("held: {why}"),
    }
}

/// What would change the outcome, for a decision of the activation phase.
pub(super) fn next(decision: &Decision, soon: &str) -> String {
    debug_assert_eq!(decision.course, Course::Activity, "`next::text` explains decisions by metrics");
    match decision.activation.as_ref().map(|activation| &activation.verdict) {
        Some(ActivationVerdict::Wakes | ActivationVerdict::Lifts) => format!("{soon}, metrics decide"),
        Some(ActivationVerdict::Held(_)) => "stays until the reason for holding it is gone".to_owned(),
        _ => "stays until something is active".to_owned(),
    }
}
