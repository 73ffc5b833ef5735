//! One number for the whole target: Object and External metrics (docs/spec/hpa.md 5.7, 5.8).

use super::{Arithmetic, Context, NoChangeReason, PerReplicaArithmetic, Proposal, TotalArithmetic, shown};
use crate::pod::{ConditionStatus, PodPhase};
use crate::report::CurrentMetricValue;

/// The one value of an object metric.
pub(super) fn single(values: &[i64]) -> i64 {
    values.first().copied().unwrap_or_default()
}

/// Sum of series for a target value: stops at the largest value instead of overflowing.
pub(super) fn sum(values: &[i64]) -> i64 {
    let mut total = 0_i64;
    for &value in values {
        match total.checked_add(value) {
            Some(sum) => total = sum,
            None if value > 0 => return i64::MAX,
            None => return i64::MIN,
        }
    }
    total
}

/// Sum of series for a per-replica target: a running sum below zero counts as overflow (T31).
pub(super) fn running_sum(values: &[i64]) -> i64 {
    let mut total = 0_i64;
    for &value in values {
        total = total.wrapping_add(value);
        if total < 0 {
            return i64::MAX;
        }
    }
    total
}

/// A target for the whole (docs/spec/hpa.md 5.7).
pub(super) fn against_total(context: &Context<'_>, usage: i64, target: i64) -> Result<Proposal, String> {
    let ratio = usage as f64 / target as f64;
    let mut sum = TotalArithmetic { usage, target, ratio, ready: None, kept: None };
    let replicas = if context.current == 0 {
        ceil(ratio)
    } else if context.tolerances.contain(ratio) {
        sum.kept = Some(NoChangeReason::WithinTolerance);
        context.current
    } else {
        let ready = ready_pods(context)?;
        sum.ready = Some(ready);
        ceil(ratio * ready as f64)
    };
    let reading = CurrentMetricValue { value: Some(shown(usage)), ..CurrentMetricValue::default() };
    Ok(Proposal { replicas, reading, sum: Arithmetic::Total(sum) })
}

/// A target per replica that exists (docs/spec/hpa.md 5.8). `capped`: a sum that ran over is shown as it is, not per replica.
pub(super) fn per_replica(context: &Context<'_>, usage: i64, target: i64, capped: bool) -> Proposal {
    let existing = context.status_replicas;
    // No tolerance protects zero.
    let ratio = (existing != 0).then(|| usage as f64 / (target as f64 * f64::from(existing)));
    let within = ratio.is_some_and(|ratio| context.tolerances.contain(ratio));
    let replicas = if within { existing } else { ceil(usage as f64 / target as f64) };
    // Kubernetes divides by zero replicas here; what its usual platform makes of that is what people see (T30).
    let average = match existing {
        _ if capped && usage as f64 >= i64::MAX as f64 => i64::MAX,
        0 => i64::MIN,
        _ => (usage as f64 / f64::from(existing)).ceil() as i64,
    };
    let sum = PerReplicaArithmetic {
        usage,
        target,
        replicas: existing,
        ratio,
        kept: within.then_some(NoChangeReason::WithinTolerance),
    };
    let reading = CurrentMetricValue { average_value: Some(shown(average)), ..CurrentMetricValue::default() };
    Proposal { replicas, reading, sum: Arithmetic::PerReplica(sum) }
}

/// Pods that run and are ready; those being deleted too (T10).
fn ready_pods(context: &Context<'_>) -> Result<i64, String> {
    let pods = &context.seen.pods;
    if pods.is_empty() {
        return Err(
            "unable to calculate ready pods: no pods returned by selector while calculating replica count"
                .into(),
        );
    }
    let ready = |p: &&crate::pod::Pod| {
        p.phase == PodPhase::Running && p.ready.is_some_and(|ready| ready.status == ConditionStatus::True)
    };
    Ok(pods.iter().filter(ready).count() as i64)
}

/// Rounds up into a replica count; what does not fit is the largest count, never the smallest (see docs/compatibility).
pub(super) fn ceil(value: f64) -> i32 {
    value.ceil() as i32
}
