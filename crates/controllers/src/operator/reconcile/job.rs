//! Reconciles a ScaledJob (docs/spec/keda.md 5.1, 5.5).

use std::sync::Arc;

use api::diagnosis::trigger_causes;
use api::keda::{ConditionStatus, ScaledJob, annotations, types};
use cluster::request::ApiError;
use engine::TriggerPoll;
use keda::event::Event;
use keda::jobs::{OutdatedJobs, outdated};
use keda::status;
use serde_json::{Value, json};

use super::steps::stop_polls;
use super::{authentication_users, finalize, write_failed};
use crate::operator::apply::Applier;
use crate::operator::context::OperatorContext;
use crate::operator::decide::conditions::{
    ReconcileOutcome, Reconciled, adoption, complete, conclude_job, polls_started, scaler_built, set_paused,
    summarize,
};
use crate::operator::effect::Effect;
use crate::operator::id::{ResourceId, ResourceKind};
use crate::operator::object_state::ObjectEntry;
use crate::operator::record;
use crate::operator::scaled_resource::ScaledResource;
use crate::operator::validate::{self, ReconcileStep, StepFailure};

pub(super) async fn reconcile(context: &OperatorContext, id: &ResourceId) -> ReconcileOutcome {
    let entry = context.entry(id);
    let _lock = entry.decision_lock.lock().await;
    let Some(job) = context.store().scaled_job(id) else { return ReconcileOutcome::Deleted };
    if job.metadata.deletion_timestamp.is_some() {
        return finalize::job(context, id, &job).await;
    }
    if let Some(patch) = adoption(ResourceKind::Job, &job.metadata) {
        let applier = Applier { context, id, metadata: &job.metadata };
        if let Err(error) = applier.apply(Effect::PatchObject(patch)).await {
            record_refusal(applier, &entry, &job, &error);
            return write_failed(applier, error).await;
        }
    }
    let Some(job) = context.store().scaled_job(id) else { return ReconcileOutcome::Deleted };
    let applier = Applier { context, id, metadata: &job.metadata };
    let mut new = (*job).clone();
    complete(&mut new.status.conditions);
    let result = steps(applier, &entry, &mut new).await;
    if let Err(failure) = &result {
        tracing::warn!(
            namespace = &*id.namespace, name = id.record_name(), error = %failure,
            "failed to reconcile a ScaledJob"
        );
        record_failure(applier, &entry, &new, failure);
    }
    entry.state().reconcile_failure =
        result.as_ref().err().and_then(StepFailure::reconcile_failure).map(Box::new);
    let causes = result.as_ref().err().map(StepFailure::causes).unwrap_or_default();
    let (outcome, effects) = conclude_job(&job, &mut new, result, context.settings.compat);
    let patch = status_patch(&job, &new).map(Effect::PatchStatus);
    let effects = effects.into_iter().map(|effect| effect.because(&causes));
    if let Err(error) = applier.apply_all(effects.chain(patch).collect()).await {
        record_refusal(applier, &entry, &job, &error);
        return write_failed(applier, error).await;
    }
    let before = job.status.authentications_types.clone().unwrap_or_default();
    authentication_users::add(context, &ScaledResource::Job(job.clone()), &before).await;
    outcome
}

fn status_patch(old: &ScaledJob, new: &ScaledJob) -> Option<Value> {
    let (old, new) = (serde_json::to_value(&old.status).ok()?, serde_json::to_value(&new.status).ok()?);
    Some(json!({"status": status::merge_patch(&old, &new)?}))
}

async fn steps(
    applier: Applier<'_>,
    entry: &ObjectEntry,
    job: &mut ScaledJob,
) -> Result<Reconciled, StepFailure> {
    if let Err(failure) = validate::job_template(job) {
        let event = Event::warning("ScaledJobCheckFailed", failure.step.to_string());
        applier.log_failed_status(applier.apply(Effect::ReconcileEvent(event)).await);
        return Err(failure.of_spec());
    }
    let is_paused = annotations::is_set(&job.metadata.annotations, annotations::PAUSED);
    let event = set_paused(ResourceKind::Job, &mut job.status.conditions, is_paused);
    applier.log_failed_status(applier.apply_all(event.into_iter().collect()).await);
    if is_paused {
        stop_polls(applier, entry).await;
        return Ok(Reconciled::Paused);
    }
    validate::job_triggers(job).map_err(StepFailure::of_spec)?;
    let (types, names) = summarize(&job.spec.triggers);
    (job.status.triggers_types, job.status.authentications_types) = (Some(types), Some(names));
    roll_out(applier, job).await?;
    build_scalers(applier, entry, job).await?;
    validate::job_metric_types(job).map_err(StepFailure::of_spec)?;
    let was_polled = std::mem::replace(&mut entry.state().polled, true);
    if !was_polled && !is_restart(entry, job) {
        applier.log_failed_status(applier.apply(polls_started()).await);
    }
    Ok(Reconciled::Ready { broken_trigger: None })
}

/// Whether the operator has restarted and the object was ready before: its scalers are not new.
fn is_restart(entry: &ObjectEntry, job: &ScaledJob) -> bool {
    !entry.state().reconciled && job.status.conditions.state(types::READY) == ConditionStatus::True
}

/// Deletes jobs of an older generation, if the rollout strategy requires it.
async fn roll_out(applier: Applier<'_>, job: &ScaledJob) -> Result<(), StepFailure> {
    let jobs = applier.context.store().jobs.of(&applier.id.full_name());
    let Some(old) = outdated(job, &jobs) else { return Ok(()) };
    let record = async |event: Event| {
        applier.log_failed_status(applier.apply(Effect::ReconcileEvent(event)).await);
    };
    record(old.started()).await;
    for name in &old.jobs {
        let effect = Effect::DeleteJob { name: name.clone(), propagation: old.propagation };
        if let Err(error) = applier.apply(effect).await {
            record(OutdatedJobs::failed(name, &error.message)).await;
            let failure = record::refused(format!("Job {name}"), &error);
            return Err(ReconcileStep::DeleteJob(name.clone()).failed(error.message).of_reconcile(failure));
        }
    }
    record(old.completed()).await;
    Ok(())
}

async fn build_scalers(
    applier: Applier<'_>,
    entry: &ObjectEntry,
    job: &ScaledJob,
) -> Result<(), StepFailure> {
    let context = applier.context;
    let owner = ScaledResource::Job(Arc::new(job.clone()));
    let is_new = !entry.scalers().is_some_and(|known| known.are_of(&owner));
    let is_restart = is_restart(entry, job);
    let scalers = context.scalers(entry, &owner);
    let listed = scalers.list_metrics(&context.builder, &owner, context.settings.source_deadline).await;
    let unlisted = record::unlisted(&job.spec.triggers, &listed);
    let causes = trigger_causes(&unlisted);
    let (mut first_error, mut works) = (None, false);
    for (scaler, listed) in scalers.scalers().iter().zip(listed) {
        // In KEDA it is enough that a scaler can be built.
        let error = listed.specs.err().filter(|_| !(listed.is_built && context.settings.compat.is_strict()));
        if let Some(error) = error {
            context.counters.count_build_failure(ResourceKind::Job, &job.metadata);
            let event = Effect::Event(Event::warning("KEDAScalerFailed", error.to_string()));
            applier.log_failed_status(applier.apply(event.because(&causes)).await);
            first_error.get_or_insert(error);
            continue;
        }
        works = true;
        if is_new && !is_restart {
            applier.log_failed_status(applier.apply(scaler_built(scaler.trigger())).await);
        }
    }
    match first_error {
        // With one scaler that works the object is polled; the poll reports those that do not.
        Some(error) if !works || context.settings.compat.is_strict() => {
            Err(ReconcileStep::BuildJobScalers.failed(error).of_triggers(unlisted))
        }
        _ => Ok(()),
    }
}

/// Records why a reconcile failed, unless polls record it.
fn record_failure(applier: Applier<'_>, entry: &ObjectEntry, job: &ScaledJob, failure: &StepFailure) {
    let is_polled = entry.state().polled;
    if let Some(round) = failure.record.as_deref().filter(|_| !is_polled) {
        let (context, id) = (applier.context, applier.id);
        record::keep_unpolled_job(context, id, job, &failure.to_string(), round.clone());
    }
}

/// Records that a write of the object itself was refused.
fn record_refusal(applier: Applier<'_>, entry: &ObjectEntry, job: &ScaledJob, error: &ApiError) {
    if error.is_not_found() {
        return;
    }
    let Some(failure) = record::refused(applier.id.to_string(), error) else {
        return;
    };
    entry.state().reconcile_failure = Some(Box::new(failure.clone()));
    if entry.state().polled {
        return;
    }
    let round = TriggerPoll { reconcile: Some(failure), ..TriggerPoll::default() };
    record::keep_unpolled_job(applier.context, applier.id, job, &error.message, round);
}
