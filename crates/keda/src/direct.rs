//! Direct mode: a ScaledObject is scaled by Plimsoll's own engine, without an HPA.
//!
//! ```text
//! activity, cooldown, pauses          the engine
//! 0 or idle  ◄──────►  at least min  ◄──────►  max
//!              one step, one record, one write
//! ```
//!
//! The executor's decision about activity and the HPA's about metrics become one step: two writers cannot
//! conflict, activation scales directly to the recommended replicas, and the record that
//! `plimsoll why` reads contains both.

#[cfg(test)]
mod tests;

use api::autoscaling::Defaults as _;
use api::autoscaling::v2::MetricSpec;
use api::convert::spec_of_hpa;
use api::keda::{KedaProfile, ScaledObject};
use api::provider::Compat;
use engine::spec::MetricSource;
use engine::{
    Activation, ActivationVerdict, Decision, DecisionDetail, MetricSamples, MilliValue, Observation,
    Replicas, ScaleWriteResult, Spec, State,
};
use jiff::{SignedDuration, Timestamp};
use quantity::Quantity;

use crate::OperationError;
use crate::executor::{self, ScaleChange, ScaleReason, ScaleResult};
use crate::hpa::{self, GeneratedHpa, HpaStatusFields};

/// The engine's spec of a ScaledObject.
#[derive(Clone, Debug, PartialEq)]
pub struct DirectPlan {
    /// Spec of the metrics; its minimum is never zero.
    pub spec: Spec,
    /// Status fields that follow from the spec.
    pub status: HpaStatusFields,
}

/// The decision of one step; [`DirectStep::settle`] completes it.
#[derive(Clone, Debug)]
pub struct DirectStep {
    /// The record.
    pub decision: Decision,
    activity: executor::ScaleDecision,
}

/// A completed step.
#[derive(Clone, Debug)]
pub struct SettledStep {
    /// The record.
    pub decision: Decision,
    /// Events and status changes of the ScaledObject.
    pub outcome: executor::ExecutorOutcome,
}

/// The plan of a ScaledObject whose triggers have these metrics: the spec of the HPA that would be generated.
pub fn plan(
    object: &ScaledObject,
    triggers: &[Vec<MetricSpec>],
    compat: Compat,
) -> Result<DirectPlan, hpa::HpaError> {
    let GeneratedHpa { mut hpa, status } = hpa::generate(object, triggers, compat)?;
    hpa.set_defaults();
    let mut spec = spec_of_hpa(&hpa);
    // The record names the ScaledObject, not the HPA.
    spec.name.clone_from(&object.metadata.name);
    Ok(DirectPlan { spec, status })
}

/// The samples of a spec's external metrics, in order; `None` for pod metrics, which have another source.
/// A metric without a value is an error, not zero.
pub fn external_samples(
    spec: &Spec,
    read: impl Fn(&str) -> Option<Result<Vec<Quantity>, OperationError>>,
) -> Vec<Option<Result<MetricSamples, OperationError>>> {
    let sample = |name: &str| match read(name) {
        Some(Ok(values)) if !values.is_empty() => {
            Ok(MetricSamples::Totals(values.iter().map(MilliValue::from).collect()))
        }
        Some(Ok(_)) | None => Err(format!("no values of metric {name}").into()),
        Some(Err(error)) => Err(error),
    };
    spec.metrics
        .iter()
        .map(|metric| match &metric.source {
            MetricSource::External(id) => Some(sample(&id.name)),
            _ => None,
        })
        .collect()
}

/// Whether a step with this count uses pod metrics: not while the object is inactive.
pub fn needs_pods(input: &executor::ExecutorInput<'_>, current: i32, compat: Compat) -> bool {
    let input = input.clone().with(Ok(current), None);
    let activity = executor::decide(&input, compat);
    let activation = activation(&input, &activity, current);
    matches!(activation.verdict, ActivationVerdict::Metrics | ActivationVerdict::Cooling { .. })
}

/// Decides for a ScaledObject and an observation of its target. The caller performs the write of [`DirectStep::write`].
pub fn step(
    state: &mut State,
    seen: &Observation,
    input: &executor::ExecutorInput<'_>,
    compat: Compat,
    detail: DecisionDetail,
) -> DirectStep {
    let now = input.now;
    let current = match &seen.scale {
        Ok(scale) => Ok(scale.spec_replicas.get()),
        Err(failure) => Err(why_not(failure).into()),
    };
    let input = input.clone().with(current.clone(), None);
    let mut activity = executor::decide(&input, compat);
    let Ok(current) = current else {
        return DirectStep { decision: state.step_with(now, seen, detail), activity };
    };
    let activation = activation(&input, &activity, current);
    let decision = match (&activation.verdict, activity.scale) {
        (ActivationVerdict::Wakes, Some(ScaleChange { to, .. })) => {
            state.waking_step(now, seen, activation, to.into(), detail)
        }
        (_, Some(ScaleChange { to, .. })) => state.activity_step(now, seen, activation, to.into()),
        (ActivationVerdict::Metrics | ActivationVerdict::Cooling { .. }, None) => {
            let mut by_metrics = state.step_with(now, seen, detail);
            by_metrics.activation = Some(activation);
            by_metrics
        }
        (_, None) => state.activity_step(now, seen, activation, current.into()),
    };
    // Events report the value that is written.
    if let Some(change) = &mut activity.scale {
        change.to = decision.desired.get();
    }
    DirectStep { decision, activity }
}

fn why_not(failure: &engine::ScaleReadError) -> String {
    failure.text().to_owned()
}

/// The activation decision for a target with this count (docs/spec/keda.md 3.6).
pub fn activation(
    input: &executor::ExecutorInput<'_>,
    activity: &executor::ScaleDecision,
    current: i32,
) -> Activation {
    let object = input.object;
    let is_active = input.active || object.is_forced();
    let by = if object.is_forced() {
        vec!["annotation force-activation".to_owned()]
    } else if input.active {
        input.active_triggers.to_vec()
    } else {
        Vec::new()
    };
    let spec = &object.spec;
    let (min, idle) = (spec.min_replica_count.unwrap_or(0).max(0), spec.idle_replica_count);
    // Without an idle count the object rests at its minimum.
    let rest = idle.unwrap_or(min);
    let held = |why: &str| ActivationVerdict::Held(format!("{why} by annotation"));
    let verdict = match activity.scale.map(|change| change.why) {
        Some(ScaleReason::Activate) => ActivationVerdict::Wakes,
        Some(ScaleReason::LiftToMinimum) => ActivationVerdict::Lifts,
        Some(ScaleReason::Deactivate) => ActivationVerdict::Rests { since: object.status.last_active_time },
        None if object.is_paused() => held("it is paused"),
        None if current < object.hpa_min() && is_active && object.is_scale_out_paused() => {
            held("scaling out is paused")
        }
        None if current > object.hpa_max() && object.is_scale_in_paused() => held("scaling in is paused"),
        None if is_active => ActivationVerdict::Metrics,
        None if current == 0 || idle.is_some_and(|idle| current <= idle) => ActivationVerdict::Resting,
        None if current < object.hpa_min() && object.is_scale_out_paused() => held("scaling out is paused"),
        None => match cooldown_end(object) {
            Some(until)
                if until >= input.now && current > rest && rest < object.hpa_min() && !is_kept(input) =>
            {
                ActivationVerdict::Cooling { until }
            }
            _ => ActivationVerdict::Metrics,
        },
    };
    Activation { by, rest: rest.into(), verdict }
}

/// Whether something other than the cooldown prevents deactivation.
fn is_kept(input: &executor::ExecutorInput<'_>) -> bool {
    input.object.is_scale_in_paused() || input.error.is_some()
}

/// End of the cooldown, from the last activity, or from creation if there was none.
fn cooldown_end(object: &ScaledObject) -> Option<Timestamp> {
    let (since, period) = match object.status.last_active_time {
        Some(time) => (time, object.spec.cooldown_period.unwrap_or(300)),
        None => (object.metadata.creation_timestamp?, object.spec.initial_cooldown_period.unwrap_or(0)),
    };
    Some(since.checked_add(SignedDuration::from_secs(period.into())).unwrap_or(Timestamp::MAX))
}

impl DirectStep {
    /// The step, with the events and conditions of this release of KEDA.
    #[must_use]
    pub fn in_profile(self, profile: KedaProfile) -> Self {
        Self { activity: self.activity.in_profile(profile), ..self }
    }

    /// The replicas to write to the target's scale, if any.
    pub fn write(&self) -> Option<i32> {
        self.decision.write().map(Replicas::get)
    }

    /// Completes the step with the result of the write, if there was one.
    pub fn settle(
        self,
        state: &mut State,
        now: Timestamp,
        seen: &Observation,
        written: Option<ScaleWriteResult>,
    ) -> SettledStep {
        let Self { mut decision, activity } = self;
        let from = decision.current().get();
        let scaled = match &written {
            Some(ScaleWriteResult::Done) => Some(ScaleResult::Written { from }),
            Some(ScaleWriteResult::Failed(error)) => {
                Some(ScaleResult::NotWritten { from, error: error.text.clone() })
            }
            Some(ScaleWriteResult::DryRun) | None => None,
        };
        if let Some(written) = written {
            state.settle(now, seen, &mut decision, written);
        }
        SettledStep { decision, outcome: activity.finish(scaled.as_ref()) }
    }
}
