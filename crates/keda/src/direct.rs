//! A ScaledObject for our own engine, without an HPA.
//!
//! ```text
//! activity, cooldown, pauses          the engine
//! 0 or idle  ◄──────►  at least min  ◄──────►  max
//!              one step, one record, one write
//! ```
//!
//! What [`crate::executor`] says of activity and what the HPA would do with metrics become one step here: there are no
//! two writers who fight over a count, rest is left for as many replicas as there is work for, and the record that
//! `plimsoll why` reads tells of both.

#[cfg(test)]
mod tests;

use api::autoscaling::Defaults as _;
use api::autoscaling::v2::MetricSpec;
use api::convert::spec_of_hpa;
use api::keda::ScaledObject;
use api::provider::Compat;
use engine::spec::MetricSource;
use engine::{
    Activation, ActivationVerdict, Decision, DecisionDetail, MetricSamples, Observation, ScaleWriteResult,
    Spec, State,
};
use jiff::{SignedDuration, Timestamp};
use quantity::Quantity;

use crate::executor::{self, Change, Scaled, Why};
use crate::hpa::{self, Made, Parts};

/// A ScaledObject as the engine sees it.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// What is decided between the bounds; the lower one is never zero.
    pub spec: Spec,
    /// Parts of the status.
    pub status: Parts,
}

/// What one step decided; [`Step::settle`] completes it.
#[derive(Clone, Debug)]
pub struct Step {
    /// The record.
    pub decision: Decision,
    activity: executor::Decision,
}

/// A step that came to its end.
#[derive(Clone, Debug)]
pub struct Settled {
    /// The record.
    pub decision: Decision,
    /// What is told, and written into the status of the ScaledObject.
    pub outcome: executor::Outcome,
}

/// The engine's view of a ScaledObject whose triggers have these metrics: that of the HPA which would be made.
pub fn plan(object: &ScaledObject, triggers: &[Vec<MetricSpec>], compat: Compat) -> Result<Plan, hpa::Error> {
    let Made { mut hpa, status } = hpa::make(object, triggers, compat)?;
    hpa.set_defaults();
    let mut spec = spec_of_hpa(&hpa);
    // What is recorded is recorded of the ScaledObject.
    spec.name.clone_from(&object.metadata.name);
    Ok(Plan { spec, status })
}

/// What external metrics of a spec were found to be, in its order; `None` for metrics of pods, which somebody else knows.
/// A metric of which nothing was heard is an error, not zero.
pub fn external_samples(
    spec: &Spec,
    read: impl Fn(&str) -> Option<Result<Vec<Quantity>, String>>,
) -> Vec<Option<Result<MetricSamples, String>>> {
    let sample = |name: &str| match read(name) {
        Some(Ok(values)) if !values.is_empty() => {
            Ok(MetricSamples::Totals(values.iter().map(Quantity::milli_value).collect()))
        }
        Some(Ok(_)) | None => Err(format!("no values of metric {name}")),
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

/// Whether a step with this count will look at metrics of pods: at rest it does not.
pub fn needs_pods(input: &executor::Input<'_>, current: i32, compat: Compat) -> bool {
    let input = input.clone().with(Ok(current), None);
    let activity = executor::decide(&input, compat);
    let activation = activation(&input, &activity, current);
    matches!(activation.verdict, ActivationVerdict::Metrics | ActivationVerdict::Cooling { .. })
}

/// Decides, for a ScaledObject and what was seen of its target. If [`Step::write`] asks for a write, carry it out.
pub fn step(
    state: &mut State,
    seen: &Observation,
    input: &executor::Input<'_>,
    compat: Compat,
    detail: DecisionDetail,
) -> Step {
    let now = input.now;
    let current = match &seen.scale {
        Ok(scale) => Ok(scale.spec_replicas),
        Err(failure) => Err(why_not(failure)),
    };
    let input = input.clone().with(current.clone(), None);
    let mut activity = executor::decide(&input, compat);
    let Ok(current) = current else {
        return Step { decision: state.step_with(now, seen, detail), activity };
    };
    let activation = activation(&input, &activity, current);
    let decision = match (&activation.verdict, activity.scale) {
        (ActivationVerdict::Wakes, Some(Change { to, .. })) => {
            state.waking_step(now, seen, activation, to, detail)
        }
        (_, Some(Change { to, .. })) => state.activity_step(now, seen, activation, to),
        (ActivationVerdict::Metrics | ActivationVerdict::Cooling { .. }, None) => {
            let mut by_metrics = state.step_with(now, seen, detail);
            by_metrics.activation = Some(activation);
            by_metrics
        }
        (_, None) => state.activity_step(now, seen, activation, current),
    };
    // What is told is what is written.
    if let Some(change) = &mut activity.scale {
        change.to = decision.desired;
    }
    Step { decision, activity }
}

fn why_not(failure: &engine::ScaleReadError) -> String {
    use engine::ScaleReadError as F;
    let (F::InvalidApiVersion(why) | F::UnknownKind(why) | F::Query(why)) = failure;
    why.clone()
}

/// What follows from activity for a target with this count (docs/spec/keda.md 3.6).
pub fn activation(input: &executor::Input<'_>, activity: &executor::Decision, current: i32) -> Activation {
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
    // Where metrics decide all the time there is no rest below the lower bound.
    let rest = idle.unwrap_or(min);
    let held = |why: &str| ActivationVerdict::Held(format!("{why} by annotation"));
    let verdict = match activity.scale.map(|change| change.why) {
        Some(Why::Activate) => ActivationVerdict::Wakes,
        Some(Why::LiftToMinimum) => ActivationVerdict::Lifts,
        Some(Why::Deactivate) => ActivationVerdict::Rests { since: object.status.last_active_time },
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
    Activation { by, rest, verdict }
}

/// Whether something else than the cooldown keeps the count from rest.
fn is_kept(input: &executor::Input<'_>) -> bool {
    input.object.is_scale_in_paused() || input.error.is_some()
}

/// When rest is allowed: so long after the last activity, or after creation if there was none.
fn cooldown_end(object: &ScaledObject) -> Option<Timestamp> {
    let (since, period) = match object.status.last_active_time {
        Some(time) => (time, object.spec.cooldown_period.unwrap_or(300)),
        None => (object.metadata.creation_timestamp?, object.spec.initial_cooldown_period.unwrap_or(0)),
    };
    Some(since.checked_add(SignedDuration::from_secs(period.into())).unwrap_or(Timestamp::MAX))
}

impl Step {
    /// The count to write to the target's scale, if any.
    pub fn write(&self) -> Option<i32> {
        self.decision.write()
    }

    /// Completes the step. `written` says how the write went, where one was asked for.
    pub fn settle(
        self,
        state: &mut State,
        now: Timestamp,
        seen: &Observation,
        written: Option<ScaleWriteResult>,
    ) -> Settled {
        let Self { mut decision, activity } = self;
        let from = decision.current();
        let scaled = match &written {
            Some(ScaleWriteResult::Done) => Some(Scaled::Written { from }),
            Some(ScaleWriteResult::Failed(error)) => {
                Some(Scaled::NotWritten { from, error: error.text.clone() })
            }
            Some(ScaleWriteResult::DryRun) | None => None,
        };
        if let Some(written) = written {
            state.settle(now, seen, &mut decision, written);
        }
        Settled { decision, outcome: activity.finish(scaled.as_ref()) }
    }
}
