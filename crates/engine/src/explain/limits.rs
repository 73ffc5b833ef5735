//! Explains stabilization windows, rate limits and bounds, in the order in which they apply.

use super::words::{clock, seconds};
use super::{Decider, Rows, decider};
use crate::decision::{Course, Decision};
use crate::normalize::{Normalized, RateLimit, ScalingLimit, StabilizationHold, Stabilized};
use crate::spec::{ScalingPolicyType, ScalingRules, SelectPolicy, Spec};

pub(super) fn rows(rows: &mut Rows, spec: &Spec, decision: &Decision) {
    let decider = decider(decision);
    let (min, max) = (spec.min, spec.max);
    match (&decision.course, &decision.normalized) {
        (Course::AboveMax, _) => {
            let text =
                format!("{} is above max {max}: straight to {max}, whatever metrics say", decision.current());
            rows.push("limits", text, true);
        }
        (Course::BelowMin, _) => {
            let text =
                format!("{} is below min {min}: straight to {min}, whatever metrics say", decision.current());
            rows.push("limits", text, true);
        }
        (Course::Metrics, Some(normalized)) => {
            rows.push("limits", window(decision, &normalized.stabilized), decider == Decider::Window);
            if let Some(rate) = &normalized.limited.rate {
                rows.push("limits", self::rate(spec, decision, normalized, rate), decider == Decider::Limit);
            }
            rows.push("limits", bounds(spec, decision, normalized), decider == Decider::Bounds);
        }
        _ => {}
    }
}

fn window(decision: &Decision, s: &Stabilized) -> String {
    let (n, current) = (s.recommended, decision.current());
    let because = s.by.map(|by| format!("{} ({})", by.replicas, clock(by.at)));
    match (s.hold, because) {
        (StabilizationHold::Down, Some(by)) => {
            let note = if s.replicas > current { ", even if that grows" } else { "" };
            format!(
                "scale-down window {}: the highest proposal in it is {by}: {} holds{note}",
                seconds(s.down_window),
                s.replicas
            )
        }
        (StabilizationHold::Up, Some(by)) => {
            let window = s.up_window.map(seconds).unwrap_or_default();
            format!("scale-up window {window}: the lowest proposal in it is {by}: {} holds", s.replicas)
        }
        (StabilizationHold::Down | StabilizationHold::Up, None) => {
            format!("earlier proposals hold {}", s.replicas)
        }
        (StabilizationHold::None, _) if n > current => match s.up_window.filter(|w| !w.is_zero()) {
            Some(window) => format!("scale-up window {}: no lower proposal in it", seconds(window)),
            None => format!("scale-down window {}: not used when growing", seconds(s.down_window)),
        },
        (StabilizationHold::None, _) if s.down_window.is_zero() => "no scale-down window".to_owned(),
        (StabilizationHold::None, _) => {
            format!("scale-down window {}: no higher proposal in it", seconds(s.down_window))
        }
    }
}

fn rate(spec: &Spec, decision: &Decision, normalized: &Normalized, rate: &RateLimit) -> String {
    let current = decision.current();
    let wanted = normalized.stabilized.replicas;
    let Some(behavior) = &spec.behavior else {
        let text = format!("no behavior set: at most max(2 × {current}, 4) = {} in one step", rate.replicas);
        return if wanted > rate.replicas { text } else { format!("{text}: {wanted} passes") };
    };
    let growing = wanted > current;
    let (rules, name) = if growing { (&behavior.up, "scaleUp") } else { (&behavior.down, "scaleDown") };
    if rules.select == SelectPolicy::Disabled {
        return format!("{name} is disabled: {current} stays");
    }
    let verb = if growing { "at most" } else { "at least" };
    let stays = if normalized.limited.limit == ScalingLimit::Within {
        format!(": {wanted} passes")
    } else {
        String::new()
    };
    match rate.policy.and_then(|index| rules.policies.get(index)) {
        Some(policy) => {
            let each = match policy.kind {
                ScalingPolicyType::Pods => format!("{} pods", policy.value),
                ScalingPolicyType::Percent => format!("{} %", policy.value),
            };
            let among = among(rules);
            let start = rate.period_start;
            let from =
                if start == current { format!("from {start}") } else { format!("from {start} at its start") };
            format!(
                "{name} {each} in {}{among}, {from}: {verb} {}{stays}",
                seconds(policy.period),
                rate.replicas
            )
        }
        None => format!("{name}: {verb} {}{stays}", rate.replicas),
    }
}

fn among(rules: &ScalingRules) -> String {
    match (rules.policies.len(), rules.select) {
        (0 | 1, _) => String::new(),
        (n, SelectPolicy::Min) => format!(" (the strictest of {n} policies)"),
        (n, _) => format!(" (the most generous of {n} policies)"),
    }
}

fn bounds(spec: &Spec, decision: &Decision, normalized: &Normalized) -> String {
    let n = match normalized.limited.limit {
        ScalingLimit::TooFew | ScalingLimit::TooMany => normalized.stabilized.replicas,
        _ => normalized.limited.replicas,
    };
    let text = format!("min {}, max {}", spec.min, spec.max);
    let result = decision.desired;
    if n == result { format!("{text}: {n} stays") } else { format!("{text}: {n} becomes {result}") }
}
