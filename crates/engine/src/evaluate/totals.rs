//! Metrics with one value for the whole target: Object and External (docs/spec/hpa.md 5.7, 5.8).

use super::{
    Arithmetic, Context, EvaluationError, NoChangeReason, PerReplicaArithmetic, Proposal, TotalArithmetic,
    shown,
};
use crate::failure::FailureCause;
use crate::pod::{ConditionStatus, Pod, PodPhase};
use crate::report::CurrentMetricValue;
use crate::spec::SeriesAggregator;
use crate::units::{MilliValue, Replicas};

/// The value of an Object metric.
pub(super) fn single(values: &[MilliValue]) -> MilliValue {
    values.first().copied().unwrap_or_default()
}

/// Sum of all series for a target of type `Value`. An overflow gives the largest or smallest value.
pub(super) fn sum(values: &[MilliValue]) -> MilliValue {
    let mut total = 0_i64;
    for value in values {
        match total.checked_add(value.get()) {
            Some(sum) => total = sum,
            None if value.get() > 0 => return MilliValue::MAX,
            None => return MilliValue::MIN,
        }
    }
    MilliValue::new(total)
}

/// Sum of all series for a target of type `AverageValue`. A running sum below zero counts as overflow (T31).
pub(super) fn running_sum(values: &[MilliValue]) -> MilliValue {
    let mut total = 0_i64;
    for value in values {
        total = total.wrapping_add(value.get());
        if total < 0 {
            return MilliValue::MAX;
        }
    }
    MilliValue::new(total)
}

/// The value of several series by a rule other than the sum of Kubernetes; absent for the sum and without series.
pub(super) fn aggregated(rule: SeriesAggregator, values: &[MilliValue]) -> Option<MilliValue> {
    match rule {
        SeriesAggregator::Sum => None,
        SeriesAggregator::Max => values.iter().copied().max(),
        SeriesAggregator::Min => values.iter().copied().min(),
        SeriesAggregator::Average => {
            let count = i128::try_from(values.len()).ok().filter(|count| *count > 0)?;
            let sum: i128 = values.iter().map(|value| i128::from(value.get())).sum();
            Some(MilliValue::clamp(sum.div_euclid(count) + i128::from(sum.rem_euclid(count) > 0)))
        }
    }
}

/// Evaluates a target for the whole workload (docs/spec/hpa.md 5.7).
pub(super) fn against_total(
    context: &Context<'_>,
    usage: MilliValue,
    target: MilliValue,
) -> Result<Proposal, EvaluationError> {
    let ratio = usage.as_f64() / target.as_f64();
    let mut sum = TotalArithmetic { usage, target, ratio, ready: None, kept: None };
    let replicas = if context.current == 0 {
        Replicas::ceil(ratio)
    } else if context.tolerances.contain(ratio) {
        sum.kept = Some(NoChangeReason::WithinTolerance);
        context.current
    } else {
        let ready = ready_pods(context)?;
        sum.ready = Some(ready);
        Replicas::ceil(ratio * ready as f64)
    };
    let reading = CurrentMetricValue { value: Some(shown(usage)), ..CurrentMetricValue::default() };
    Ok(Proposal { replicas, reading, sum: Arithmetic::Total(sum) })
}

/// Evaluates a target per replica that exists (docs/spec/hpa.md 5.8). `capped`: the status shows a sum that overflowed as it
/// is, not divided by the replicas.
pub(super) fn per_replica(
    context: &Context<'_>,
    usage: MilliValue,
    target: MilliValue,
    capped: bool,
) -> Proposal {
    let existing = context.status_replicas;
    let replica_count = f64::from(existing.get());
    // Without replicas there is no ratio, so no tolerance applies.
    let ratio = (existing != 0).then(|| usage.as_f64() / (target.as_f64() * replica_count));
    let within = ratio.is_some_and(|ratio| context.tolerances.contain(ratio));
    let replicas = if within { existing } else { Replicas::ceil(usage.as_f64() / target.as_f64()) };
    // Kubernetes divides by zero replicas here. The result on amd64, which users see, is the smallest value (T30).
    let average = match existing.get() {
        _ if capped && usage.as_f64() >= MilliValue::MAX.as_f64() => MilliValue::MAX,
        0 => MilliValue::MIN,
        _ => MilliValue::new((usage.as_f64() / replica_count).ceil() as i64),
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

/// Number of running and ready pods, including those that are being deleted (T10).
fn ready_pods(context: &Context<'_>) -> Result<i64, EvaluationError> {
    let pods = &context.seen.pods;
    if pods.is_empty() {
        let text =
            "unable to calculate ready pods: no pods returned by selector while calculating replica count";
        return Err(EvaluationError::from(text).with_cause(FailureCause::NoPods));
    }
    let ready = |p: &&Pod| {
        p.phase == PodPhase::Running && p.ready.is_some_and(|ready| ready.status == ConditionStatus::True)
    };
    Ok(pods.iter().filter(ready).count() as i64)
}
