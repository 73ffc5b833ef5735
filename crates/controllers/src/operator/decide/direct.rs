//! Scaling mode `direct`: the engine decides the replica count from 0 to N, without an HPA.

use api::keda::ScaledObject;
use engine::act::ScaleWriteError;
use engine::{DecisionDetail, Observation, ScaleWriteResult};
use keda::direct::{DirectStep, SettledStep, step};
use keda::executor::{ExecutorInput, ScaleResult, TARGET_NOT_RESOLVED};
use keda::status::StatusChanges;

use crate::operator::effect::{Effect, ScaleEffect};

/// Decides the replica count.
pub(crate) fn decide(
    state: &mut engine::State,
    observation: &Observation,
    input: &ExecutorInput<'_>,
    compat: api::provider::Compat,
) -> DirectStep {
    step(state, observation, input, compat, DecisionDetail::Uncounted)
}

/// The write that a step requires; an error if the target is not resolved.
pub(crate) fn scale_effect(
    object: &ScaledObject,
    observation: &Observation,
    step: &DirectStep,
) -> Option<Result<ScaleEffect, ScaleWriteResult>> {
    let to = step.write()?;
    let Some(target) = object.status.scale_target_gvkr.clone() else {
        return Some(Err(failed(TARGET_NOT_RESOLVED.to_owned())));
    };
    let expected = observation.scale.as_ref().ok().map(|scale| scale.spec_replicas.get());
    let name = object.spec.scale_target_ref.name.clone();
    Some(Ok(ScaleEffect { target, name, expected, to, why: None }))
}

/// The result of a write, as the engine takes it.
pub(crate) fn written(scaled: ScaleResult) -> ScaleWriteResult {
    match scaled {
        ScaleResult::Written { .. } => ScaleWriteResult::Done,
        ScaleResult::NotRead(error) | ScaleResult::NotWritten { error, .. } => failed(error),
    }
}

/// Events and status after the write.
pub(crate) fn conclude(settled: &SettledStep, changes: StatusChanges) -> Vec<Effect> {
    let events = settled.outcome.events.iter().cloned().map(Effect::Event);
    let engine_events = settled.decision.events.iter().cloned();
    let engine_events = engine_events.map(|event| Effect::EngineEvent(event, Vec::new()));
    let status = Effect::MergeStatus(changes.then(settled.outcome.changes.clone()));
    events.chain(engine_events).chain([status]).collect()
}

fn failed(text: String) -> ScaleWriteResult {
    ScaleWriteResult::Failed(ScaleWriteError { text, conflict: false })
}
