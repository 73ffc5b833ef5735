//! ScaledJobs, step by step (docs/spec/keda.md 5.1, 5.5).

use std::sync::Arc;

use api::keda::{Condition, ConditionStatus, Conditions, FINALIZER, ScaledJob, annotations, types};
use keda::event::Event;
use keda::jobs::{OutdatedJobs, outdated};
use keda::{admission, status};
use serde_json::{Value, json};

use super::{ReconcileOutcome, StepFailure, end, users};
use crate::operator::context::{ObjectEntry, OperatorContext};
use crate::operator::event_recorder::EventSubject;
use crate::operator::id::Id;
use crate::operator::leader_client::ResourcePath;
use crate::operator::scalers_cache::ScaledResource;

const READY: &str = "ScaledJob is defined correctly and is ready to scaling";
const PAUSED: &str = "ScaledJob is paused, skipping reconcile loop";

pub(super) async fn reconcile(context: &OperatorContext, id: &Id) -> ReconcileOutcome {
    let entry = context.entry(id);
    let _alone = entry.gate.lock().await;
    let Some(job) = context.store().scaled_job(id) else { return ReconcileOutcome::Ended };
    if job.metadata.deletion_timestamp.is_some() {
        return end::job(context, id, &job).await;
    }
    if let Err(error) = adopt(context, id, &job).await {
        return super::unwritten(context, EventSubject::Job, &job.metadata, &error);
    }
    let Some(job) = context.store().scaled_job(id) else { return ReconcileOutcome::Ended };
    let mut new = (*job).clone();
    if !new.status.conditions.are_complete() {
        new.status.conditions = Conditions::initial();
    }
    let found = steps(context, id, &entry, &mut new).await;
    let outcome = judge(context, &job, &mut new, found);
    if let Some(patch) = difference(&job, &new)
        && let Err(error) = context.write_job(id, &patch, "status").await
    {
        return super::unwritten(context, EventSubject::Job, &job.metadata, &error);
    }
    let before = job.status.authentications_types.clone().unwrap_or_default();
    users::add(context, &ScaledResource::Job(job), &before).await;
    outcome
}

fn difference(old: &ScaledJob, new: &ScaledJob) -> Option<Value> {
    let (old, new) = (serde_json::to_value(&old.status).ok()?, serde_json::to_value(&new.status).ok()?);
    Some(json!({"status": status::merge_patch(&old, &new)?}))
}

async fn adopt(
    context: &OperatorContext,
    id: &Id,
    job: &Arc<ScaledJob>,
) -> Result<(), cluster::request::ApiError> {
    let metadata = &job.metadata;
    if end::is_held(metadata) {
        return Ok(());
    }
    let mut finalizers = metadata.finalizers.clone();
    finalizers.push(FINALIZER.to_owned());
    let patch = json!({"metadata": {"resourceVersion": metadata.resource_version, "finalizers": finalizers}});
    context.write_job(id, &patch, "").await
}

/// Whether it is paused, or else ready.
async fn steps(
    context: &OperatorContext,
    id: &Id,
    entry: &ObjectEntry,
    job: &mut ScaledJob,
) -> Result<bool, StepFailure> {
    if job.spec.job_target_ref.is_none() {
        let event = Event::warning("ScaledJobCheckFailed", "ScaledJob.spec.jobTargetRef not found");
        context.events.record_reconcile(EventSubject::Job, &job.metadata, &event);
        return Err(StepFailure::new("ScaledJob.spec.jobTargetRef not found", "it is missing"));
    }
    let is_paused = annotations::is_set(&job.metadata.annotations, annotations::PAUSED);
    turn(context, job, is_paused);
    if is_paused {
        end::stop(context, entry, EventSubject::Job, &job.metadata);
        return Ok(true);
    }
    admission::check_triggers(&job.spec.triggers).map_err(|denial| {
        StepFailure::new("ScaledJob doesn't have correct triggers specification", denial.message)
    })?;
    let (types, names) = super::types(&job.spec.triggers);
    (job.status.triggers_types, job.status.authentications_types) = (Some(types), Some(names));
    roll_out(context, id, job).await?;
    build(context, entry, job).await?;
    if job.spec.triggers.iter().any(|trigger| !trigger.metric_type.is_empty()) {
        let cause = "jobs have no HPA that would look at it";
        return Err(StepFailure::new("Cannot set metricType in ScaledJob triggers", cause));
    }
    let was_polled = std::mem::replace(&mut entry.state().polled, true);
    let is_restart =
        !entry.state().known && job.status.conditions.state(types::READY) == ConditionStatus::True;
    if !was_polled && !is_restart {
        let mut event = Event::normal("KEDAScalersStarted", "Started scalers watch");
        event.action = Some("ScalersWatchStarted");
        context.events.record_poll(EventSubject::Job, &job.metadata, &event);
    }
    Ok(false)
}

fn turn(context: &OperatorContext, job: &mut ScaledJob, is_paused: bool) {
    let was = job.status.conditions.state(types::PAUSED) == ConditionStatus::True;
    if was == is_paused {
        return;
    }
    let (state, reason, message) = if is_paused {
        (ConditionStatus::True, "ScaledJobPaused", "ScaledJob is paused")
    } else {
        (ConditionStatus::False, "ScaledJobUnpaused", "ScaledJob is unpaused")
    };
    job.status.conditions.set(Condition::new(types::PAUSED, state, reason, message));
    context.events.record_reconcile(EventSubject::Job, &job.metadata, &Event::normal(reason, message));
}

/// Jobs of an older generation go.
async fn roll_out(context: &OperatorContext, id: &Id, job: &ScaledJob) -> Result<(), StepFailure> {
    let jobs = context.store().jobs.of(&id.full_name());
    let Some(old) = outdated(job, &jobs) else { return Ok(()) };
    context.events.record_reconcile(EventSubject::Job, &job.metadata, &old.started());
    for name in &old.jobs {
        let path = ResourcePath::job(&id.namespace, name);
        if let Err(error) = context.client.delete(path, old.propagation.as_str()).await {
            context.events.record_reconcile(
                EventSubject::Job,
                &job.metadata,
                &OutdatedJobs::failed(name, &error.message),
            );
            return Err(StepFailure::new(format!("Not able to delete job: {name}"), error.message));
        }
    }
    context.events.record_reconcile(EventSubject::Job, &job.metadata, &old.completed());
    Ok(())
}

async fn build(context: &OperatorContext, entry: &ObjectEntry, job: &ScaledJob) -> Result<(), StepFailure> {
    let owner = ScaledResource::Job(Arc::new(job.clone()));
    let is_new = !entry.triggers().is_some_and(|known| known.are_of(&owner));
    let is_restart =
        !entry.state().known && job.status.conditions.state(types::READY) == ConditionStatus::True;
    let triggers = context.triggers(entry, &owner);
    let told = triggers.specs(&context.builder, &owner, context.settings.source_deadline).await;
    let (mut failed, mut worked) = (None, false);
    for (slot, told) in triggers.slots().iter().zip(told) {
        // To the original it is enough that a trigger can be built.
        let told = told.map(drop).or_else(|error| {
            if slot.is_built() && context.settings.compat.is_strict() { Ok(()) } else { Err(error) }
        });
        match told {
            Ok(()) => {
                worked = true;
                if is_new && !is_restart {
                    let note = format!("Scaler {} is built", slot.trigger().type_);
                    let event = Event::normal("KEDAScalersStarted", note);
                    context.events.record_poll(EventSubject::Job, &job.metadata, &event);
                }
            }
            Err(error) => {
                context.counters.failed(&job.metadata, EventSubject::Job);
                let event = Event::warning("KEDAScalerFailed", error.clone());
                context.events.record_poll(EventSubject::Job, &job.metadata, &event);
                failed.get_or_insert(error);
            }
        }
    }
    match failed {
        // One that works is worth polling; the poll says which does not.
        Some(error) if !worked || context.settings.compat.is_strict() => {
            Err(StepFailure::new("Failed to ensure ScaledJob is correctly created", error))
        }
        _ => Ok(()),
    }
}

fn judge(
    context: &OperatorContext,
    old: &ScaledJob,
    new: &mut ScaledJob,
    found: Result<bool, StepFailure>,
) -> ReconcileOutcome {
    let metadata = &old.metadata;
    let conditions = &mut new.status.conditions;
    match found {
        Ok(is_paused) => {
            if old.status.conditions.state(types::READY) != ConditionStatus::True {
                let event = Event::normal("ScaledJobReady", "ScaledJob is ready for scaling");
                context.events.record_reconcile(EventSubject::Job, metadata, &event);
            }
            let message = if is_paused { PAUSED } else { READY };
            conditions.set(Condition::new(types::READY, ConditionStatus::True, "ScaledJobReady", message));
            if is_paused { ReconcileOutcome::Still } else { ReconcileOutcome::Polled }
        }
        Err(StepFailure { step, cause }) => {
            // The original does not say why.
            let message = if context.settings.compat.is_strict() {
                step.into_owned()
            } else {
                format!("{step}: {cause}")
            };
            tracing::warn!(
                namespace = metadata.namespace,
                name = metadata.name,
                message,
                "a ScaledJob is not right"
            );
            let event = Event::warning("ScaledJobCheckFailed", message.clone());
            context.events.record_reconcile(EventSubject::Job, metadata, &event);
            conditions.set(Condition::new(
                types::READY,
                ConditionStatus::False,
                "ScaledJobCheckFailed",
                message,
            ));
            let unknown = "ScaledJob check failed";
            conditions.set(Condition::new(types::ACTIVE, ConditionStatus::Unknown, "UnknownState", unknown));
            ReconcileOutcome::Failed
        }
    }
}
