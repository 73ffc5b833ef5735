//! What is left behind when an object is deleted (docs/spec/keda.md 2.9, 5.1).

use std::sync::Arc;

use api::keda::{FINALIZER, ScaledJob, ScaledObject};
use api::meta::ObjectMeta;
use cluster::request::ApiError;
use keda::event::Event;
use keda::executor::ScaleResult;
use serde_json::{Value, json};

use super::{ReconcileOutcome, pause, users};
use crate::operator::context::{ObjectEntry, OperatorContext};
use crate::operator::event_recorder::EventSubject;
use crate::operator::id::Id;
use crate::operator::leader_client::ResourcePath;
use crate::operator::scalers_cache::ScaledResource;

/// SampleQuery often it is tried to restore the first count of a target.
const RESTORES: u32 = 6;

/// Cleans up behind a ScaledObject and lets it go.
pub(super) async fn object(
    context: &OperatorContext,
    id: &Id,
    object: &Arc<ScaledObject>,
) -> ReconcileOutcome {
    if !is_held(&object.metadata) {
        return ReconcileOutcome::Ended;
    }
    let entry = context.entry(id);
    stop(context, &entry, EventSubject::Object, &object.metadata);
    if wants_first_count(object) {
        if !context.settings.compat.is_strict() {
            // Its HPA lives until somebody collects it, and would scale what was just restored.
            let mut gone = (**object).clone();
            if let Err(error) = pause::delete_hpa(context, id, &entry, &mut gone).await {
                tracing::warn!(object = %id, error, "failed to delete the HPA of an object that goes");
            }
        }
        if let Err(error) = restore(context, object).await {
            tracing::warn!(object = %id, error, "failed to restore the first count of a target");
            // A server that is away for a moment is no reason to leave the target as it is for good; one that never lets us is
            // none to keep the object.
            let failures = entry.state().failures;
            if failures < RESTORES && !context.settings.compat.is_strict() {
                return ReconcileOutcome::Failed;
            }
        }
    }
    let path = ResourcePath::keda("scaledobjects", &id.namespace, &id.name);
    let event = Event::warning("ScaledObjectDeleted", "ScaledObject was deleted");
    end(context, ScaledResource::Object(Arc::clone(object)), path, EventSubject::Object, &event).await
}

/// Cleans up behind a ScaledJob and lets it go; its jobs go with it.
pub(super) async fn job(context: &OperatorContext, id: &Id, job: &Arc<ScaledJob>) -> ReconcileOutcome {
    if !is_held(&job.metadata) {
        return ReconcileOutcome::Ended;
    }
    stop(context, &context.entry(id), EventSubject::Job, &job.metadata);
    let path = ResourcePath::keda("scaledjobs", &id.namespace, &id.name);
    let event = Event::warning("ScaledJobDeleted", "ScaledJob was deleted");
    end(context, ScaledResource::Job(Arc::clone(job)), path, EventSubject::Job, &event).await
}

/// Nobody asks its sources from now on; that is told if somebody did.
pub(super) fn stop(
    context: &OperatorContext,
    entry: &ObjectEntry,
    subject: EventSubject,
    metadata: &ObjectMeta,
) {
    entry.drop_triggers();
    if std::mem::take(&mut entry.state().polled) {
        let event = Event::normal("KEDAScalersStopped", "Stopped scalers watch");
        context.events.record_poll(subject, metadata, &event);
    }
}

async fn end(
    context: &OperatorContext,
    owner: ScaledResource,
    path: ResourcePath<'_>,
    subject: EventSubject,
    event: &Event,
) -> ReconcileOutcome {
    if let Err(error) = release(context, path, owner.metadata()).await {
        tracing::warn!(object = %owner.id(), %error, "failed to let an object go");
        return ReconcileOutcome::Failed;
    }
    users::remove(context, &owner).await;
    context.events.record_reconcile(subject, owner.metadata(), event);
    ReconcileOutcome::Ended
}

pub(super) fn is_held(metadata: &ObjectMeta) -> bool {
    metadata.finalizers.iter().any(|finalizer| finalizer == FINALIZER)
}

/// Lets an object go, as far as it is for us to say.
pub(super) async fn release(
    context: &OperatorContext,
    path: ResourcePath<'_>,
    metadata: &ObjectMeta,
) -> Result<(), ApiError> {
    let others: Vec<&String> = metadata.finalizers.iter().filter(|own| *own != FINALIZER).collect();
    let patch = json!({"metadata": {"resourceVersion": metadata.resource_version, "finalizers": others}});
    match context.client.merge::<Value>(path, "", &patch).await {
        Err(error) if !error.is_not_found() => Err(error),
        _ => Ok(()),
    }
}

fn wants_first_count(object: &ScaledObject) -> bool {
    object.spec.advanced.as_ref().is_some_and(|advanced| advanced.restore_to_original_replica_count)
}

/// The first count comes back; where nobody may bring it back, or there is nothing left, that is all.
async fn restore(context: &OperatorContext, object: &ScaledObject) -> Result<(), String> {
    let (Some(target), Some(count)) =
        (&object.status.scale_target_gvkr, object.status.original_replica_count)
    else {
        return Ok(());
    };
    let (namespace, name) = (&object.metadata.namespace, &object.spec.scale_target_ref.name);
    match context.client.scale(namespace, name, target).await {
        Ok(held) if held.scale.spec_replicas == count => return Ok(()),
        Ok(_) => {}
        Err(error) if error.is_not_found() => return Ok(()),
        Err(error) => return Err(error.message),
    }
    match context.client.scale_to(namespace, name, target, count).await {
        ScaleResult::Written { .. } => Ok(()),
        ScaleResult::NotRead(error) | ScaleResult::NotWritten { error, .. } => Err(error),
    }
}
