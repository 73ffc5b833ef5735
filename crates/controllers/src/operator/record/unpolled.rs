//! Records of objects whose triggers are not polled, because a reconcile or a poll ended before.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use api::keda::{ScaledJob, ScaledObject, Trigger as Written};
use cluster::request::ApiError;
use engine::trigger_poll::{FormulaResult, PolledTrigger, ReconcileFailure, TriggerPoll};
use engine::{Activation, ActivationVerdict, RecordedError, Replicas, Scale, ScaleReadError, State, Status};
use keda::OperationError;
use keda::activity::TriggerResult;
use keda::jobs::{JobPoll, JobQueue};

use super::{
    JobRecord, MAX_ERROR_CHARS, MAX_FORMULA_CHARS, NOT_POLLED, collect_exact, keep, keep_job, observation,
    request_failure, spec_of, trigger, truncate,
};
use crate::operator::context::OperatorContext;
use crate::operator::id::ResourceId;
use crate::operator::scalers_cache::TriggerMetrics;
use crate::operator::trigger_failure::classify;

/// Records that a target keeps its count, because the triggers of the object are not polled. It is tried again after `interval`.
pub(crate) async fn keep_unpolled(
    context: &OperatorContext,
    id: &ResourceId,
    interval: Duration,
    object: &ScaledObject,
    round: TriggerPoll,
) {
    let scale = match context.reader.current(object).await {
        Ok(current) => {
            let replicas = Replicas::new(current);
            Ok(Scale { spec_replicas: replicas, status_replicas: replicas, selector: String::new() })
        }
        Err(error) => Err(unread(&OperationError::from_error(error))),
    };
    let current = scale.as_ref().map_or(Replicas::ZERO, |scale| scale.spec_replicas);
    let spec = Arc::new(spec_of(object));
    let seen = observation(context, &spec, scale);
    let verdict = ActivationVerdict::Held(NOT_POLLED.to_owned());
    let activation = Activation { by: Vec::new(), rest: current, verdict };
    let mut decision = State::default().activity_step(context.clock.now(), &seen, activation, current);
    // The status of the decision is that of an HPA, and this object has its own.
    decision.status = Status::default();
    keep(context, id, interval, &spec, &decision, round);
}

/// Records that no jobs are created, because the triggers of a ScaledJob are not polled.
pub(crate) fn keep_unpolled_job(
    context: &OperatorContext,
    id: &ResourceId,
    job: &ScaledJob,
    cause: &str,
    round: TriggerPoll,
) {
    let jobs = context.store().jobs.of(&id.full_name());
    let poll = JobPoll {
        queue: JobQueue { active: false, length: 0, max_value: 0.0 },
        errors: Vec::new(),
        cause: Some(cause.to_owned()),
        activity: BTreeMap::new(),
    };
    let record = JobRecord {
        now: context.clock.now(),
        job,
        triggers: round.triggers,
        reconcile: round.reconcile,
        round: &poll,
        is_polled: false,
        jobs: &jobs,
        wanted: 0,
        created: &[],
    };
    keep_job(context, id, record);
}

/// What is recorded of a request of the operator that failed; none if it is only retried.
pub(crate) fn refused(object: String, error: &ApiError) -> Option<ReconcileFailure> {
    if error.is_conflict() || error.is_not_leading() {
        return None;
    }
    let text = truncate(&error.message, MAX_ERROR_CHARS);
    Some(ReconcileFailure::Request { object, error: RecordedError::new(text, Some(error.failure())) })
}

/// The triggers that do not list their metrics, as they are recorded.
pub(crate) fn unlisted(triggers: &[Written], listed: &[TriggerMetrics]) -> Vec<PolledTrigger> {
    let one = |listed: &TriggerMetrics| {
        let error = listed.specs.as_ref().err()?.clone();
        Some(failed(triggers.get(listed.index)?, &OperationError::from_error(error)))
    };
    collect_exact(listed.iter().filter_map(one))
}

/// The triggers that failed as a whole in a poll, as they are recorded.
pub(crate) fn failed_triggers(object: &ScaledObject, results: &[TriggerResult]) -> TriggerPoll {
    let one = |result: &TriggerResult| {
        let written = object.spec.triggers.get(result.trigger)?;
        Some(failed(written, result.metrics.as_ref().err()?))
    };
    let triggers = collect_exact(results.iter().filter_map(one));
    TriggerPoll { triggers, ..TriggerPoll::default() }
}

/// A formula that does not compile, as it is recorded.
pub(crate) fn broken_formula(object: &ScaledObject, error: &str) -> TriggerPoll {
    let formula = object.modifiers().map(|modifiers| FormulaResult {
        text: truncate(&modifiers.formula, MAX_FORMULA_CHARS),
        value: Err(truncate(error, MAX_ERROR_CHARS).into()),
        target: truncate(&modifiers.target, MAX_FORMULA_CHARS),
        activation: truncate(&modifiers.activation_target, MAX_FORMULA_CHARS),
        active: false,
    });
    TriggerPoll { formula, ..TriggerPoll::default() }
}

fn failed(written: &Written, error: &OperationError) -> PolledTrigger {
    PolledTrigger {
        failure: Some(truncate(error.as_str(), MAX_ERROR_CHARS)),
        cause: Some(classify(error)),
        ..trigger(written)
    }
}

/// Why the scale of a target could not be read, as it is recorded.
pub(super) fn unread(error: &OperationError) -> ScaleReadError {
    let text = truncate(error.as_str(), MAX_ERROR_CHARS);
    ScaleReadError::Query(RecordedError::new(text, request_failure(error)))
}
