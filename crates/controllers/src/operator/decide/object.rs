//! The poll of a ScaledObject (docs/spec/keda.md 3.2, 3.6, 3.9).

use std::collections::HashSet;
use std::sync::Arc;

use api::keda::{ConditionStatus, ScaledObject, types};
use api::provider::Compat;
use jiff::Timestamp;
use keda::activity::{self, Formula, HpaObservations, TriggerResult};
use keda::event::Event;
use keda::executor::{self, ExecutorInput, ScaleReason, ScaleResult};
use keda::fallback::TargetFacts;
use keda::status::StatusChanges;

use super::last_active;
use crate::operator::effect::{Effect, ScaleEffect};

/// What a poll has found out.
#[derive(Clone, Copy)]
pub(crate) struct ObjectPoll<'a> {
    pub(crate) now: Timestamp,
    /// When the triggers were queried.
    pub(crate) queried_at: Timestamp,
    pub(crate) object: &'a Arc<ScaledObject>,
    pub(crate) samples: &'a [TriggerResult],
    /// What the HPA has observed: these metrics were not queried.
    pub(crate) observed: &'a HpaObservations,
    pub(crate) facts: &'a TargetFacts,
    pub(crate) formula: Formula<'a>,
    /// Why a scaler could not be built, if one could not.
    pub(crate) build_error: Option<&'a str>,
    /// When the object was last active, as far as this replica has seen.
    pub(crate) last_active: Option<Timestamp>,
    /// When the object was created, by the machine's clock as it is now.
    pub(crate) created: Option<Timestamp>,
    pub(crate) compat: Compat,
}

/// The activity of an object, and what follows from it.
pub(crate) struct Evaluation {
    pub(crate) activity: activity::ActivityState,
    pub(crate) effects: Vec<Effect>,
    pub(crate) next: NextStep,
}

/// How a poll goes on.
pub(crate) enum NextStep {
    /// The poll ends.
    Stop,
    /// The replica count is decided, for this object: it has the latest time of activity, and no fallback that cannot apply.
    Scale(Arc<ScaledObject>),
}

/// Why nothing is decided in a poll.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PollSkip {
    /// The poll ends without an event or a record.
    Silent,
    /// A scaler could not be built, which ends a poll of KEDA (docs/spec/keda.md 3.2).
    ScalerFailed(Event),
}

/// Whether a poll is skipped. `target_missing` says that the last reconcile did not find the target.
pub(crate) fn skip(
    object: &ScaledObject,
    formula: Formula<'_>,
    build_error: Option<&str>,
    target_missing: bool,
    compat: Compat,
) -> Option<PollSkip> {
    // KEDA builds no scaler for an object whose formula does not compile.
    let has_no_formula = compat.is_strict() && matches!(formula, Some(Err(_)));
    // The reconcile that is under way sets the condition and records the event of the pause.
    let is_pausing =
        object.is_paused() && object.status.conditions.state(types::PAUSED) != ConditionStatus::True;
    if object.metadata.deletion_timestamp.is_some() || has_no_formula || target_missing || is_pausing {
        return Some(PollSkip::Silent);
    }
    let error = build_error.filter(|_| compat.is_strict())?;
    Some(PollSkip::ScalerFailed(Event::warning("KEDAScalerFailed", error.to_owned())))
}

/// Evaluates the activity of all triggers.
pub(crate) fn evaluate(poll: &ObjectPoll<'_>) -> Evaluation {
    let ObjectPoll { now, object, compat, .. } = *poll;
    let round = activity::PollRound { now, object, formula: poll.formula };
    let activity = activity::activity_state_with(&round, poll.samples, poll.facts, poll.observed, compat);
    let mut effects: Vec<Effect> = activity.events.iter().cloned().map(Effect::Event).collect();
    // Times of activity are whole seconds. A push trigger that reported activity since the query is newer than the samples.
    let is_newer = |time: Timestamp| time.as_second() >= poll.queried_at.as_second();
    let is_outdated = !activity.active && !compat.is_strict() && poll.last_active.is_some_and(is_newer);
    if activity.skipped.is_some() || is_outdated {
        effects.push(Effect::MergeStatus(activity.changes.clone()));
        return Evaluation { activity, effects, next: NextStep::Stop };
    }
    let mut object = if activity.active || compat.is_strict() {
        Arc::clone(object)
    } else {
        last_active::latest(poll.last_active, poll.created, object, now)
    };
    // A trigger that cannot be built has no fallback: its error is reported.
    if poll.build_error.is_some() && !activity.is_falling_back && object.spec.fallback.is_some() {
        Arc::make_mut(&mut object).spec.fallback = None;
    }
    Evaluation { activity, effects, next: NextStep::Scale(object) }
}

/// The write of the replica count that a decision requires. A write that adds replicas must not remove those that another client
/// has added since the target was read, so it expects the count that was read.
pub(crate) fn scale_effect(
    input: &ExecutorInput<'_>,
    decision: &executor::ScaleDecision,
    compat: Compat,
) -> Option<ScaleEffect> {
    let (change, target) = decision.scale.zip(input.object.status.scale_target_gvkr.clone())?;
    let adds = change.why != ScaleReason::Deactivate && !compat.is_strict();
    Some(ScaleEffect {
        target,
        name: input.object.spec.scale_target_ref.name.clone(),
        expected: input.current.as_ref().ok().copied().filter(|_| adds),
        to: change.to,
        why: Some(change.why),
    })
}

/// Events and status after the write: `changes` of the evaluation, then those of the decision.
pub(crate) fn conclude(
    decision: executor::ScaleDecision,
    scaled: Option<&ScaleResult>,
    changes: StatusChanges,
) -> Vec<Effect> {
    let outcome = decision.finish(scaled);
    let events = outcome.events.into_iter().map(Effect::Event);
    events.chain([Effect::MergeStatus(changes.then(outcome.changes))]).collect()
}

/// Whether the HPA lacks metrics that triggers have. A trigger that does not list its metrics does not count.
pub(crate) fn is_hpa_stale(object: &ScaledObject, samples: &[TriggerResult]) -> bool {
    let known: HashSet<&str> = object.status.external_metric_names.iter().map(String::as_str).collect();
    samples.iter().flat_map(TriggerResult::samples).any(|sample| !known.contains(&*sample.name))
}
