//! Cleans up after a deleted object and removes its finalizer (docs/spec/keda.md 2.9, 5.1).

use std::sync::Arc;

use api::keda::{ScaledJob, ScaledObject};
use keda::event::Event;
use keda::executor::ScaleResult;

use super::authentication_users;
use super::steps::{delete_hpa, scale, stop_polls};
use crate::operator::apply::Applier;
use crate::operator::context::OperatorContext;
use crate::operator::decide::conditions::{ReconcileOutcome, has_finalizer, without_finalizer};
use crate::operator::effect::{Effect, ScaleEffect};
use crate::operator::id::ResourceId;
use crate::operator::scaled_resource::ScaledResource;

/// Attempts to restore the original replica count of a target.
const MAX_RESTORE_ATTEMPTS: u32 = 6;

/// The original replica count could not be restored.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct RestoreError(String);

/// Finalizes a ScaledObject.
pub(super) async fn object(
    context: &OperatorContext,
    id: &ResourceId,
    object: &Arc<ScaledObject>,
) -> ReconcileOutcome {
    if !has_finalizer(&object.metadata) {
        return ReconcileOutcome::Deleted;
    }
    let entry = context.entry(id);
    let applier = Applier { context, id, metadata: &object.metadata };
    stop_polls(applier, &entry).await;
    if restores_replicas(object) {
        if !context.settings.compat.is_strict() {
            // The HPA exists until it is garbage-collected, and would scale the restored target.
            if let Err(error) = delete_hpa(applier, &entry, object).await {
                tracing::warn!(
                    namespace = &*id.namespace, name = id.record_name(), %error,
                    "failed to delete the HPA of a deleted object"
                );
            }
        }
        if let Err(error) = restore_replicas(applier, object).await {
            tracing::warn!(
                namespace = &*id.namespace, name = id.record_name(), %error,
                "failed to restore the original replica count"
            );
            // A short outage of the API server must not leave the target as it is; a permanent refusal must not block the
            // deletion.
            let failures = entry.state().failures;
            if failures < MAX_RESTORE_ATTEMPTS && !context.settings.compat.is_strict() {
                return ReconcileOutcome::Failed;
            }
        }
    }
    let event = Event::warning("ScaledObjectDeleted", "ScaledObject was deleted");
    finish(applier, ScaledResource::Object(Arc::clone(object)), event).await
}

/// Finalizes a ScaledJob; its jobs are garbage-collected.
pub(super) async fn job(
    context: &OperatorContext,
    id: &ResourceId,
    job: &Arc<ScaledJob>,
) -> ReconcileOutcome {
    if !has_finalizer(&job.metadata) {
        return ReconcileOutcome::Deleted;
    }
    let applier = Applier { context, id, metadata: &job.metadata };
    stop_polls(applier, &context.entry(id)).await;
    let event = Event::warning("ScaledJobDeleted", "ScaledJob was deleted");
    finish(applier, ScaledResource::Job(Arc::clone(job)), event).await
}

async fn finish(applier: Applier<'_>, owner: ScaledResource, event: Event) -> ReconcileOutcome {
    let patch = without_finalizer(owner.metadata());
    if let Err(error) = applier.apply(Effect::RemoveFinalizer(patch)).await {
        tracing::warn!(
            namespace = &*owner.id().namespace, name = owner.id().record_name(), %error,
            "failed to remove the finalizer"
        );
        return ReconcileOutcome::Failed;
    }
    authentication_users::remove(applier.context, &owner).await;
    applier.log_failed_status(applier.apply(Effect::ReconcileEvent(event)).await);
    ReconcileOutcome::Deleted
}

fn restores_replicas(object: &ScaledObject) -> bool {
    object.spec.advanced.as_ref().is_some_and(|advanced| advanced.restore_to_original_replica_count)
}

/// Restores the original replica count; nothing is done if the target is gone.
async fn restore_replicas(applier: Applier<'_>, object: &ScaledObject) -> Result<(), RestoreError> {
    let (Some(target), Some(count)) =
        (&object.status.scale_target_gvkr, object.status.original_replica_count)
    else {
        return Ok(());
    };
    let (namespace, name) = (&object.metadata.namespace, &object.spec.scale_target_ref.name);
    match applier.context.client.scale(namespace, name, target).await {
        Ok(held) if held.scale.spec_replicas == count => return Ok(()),
        Ok(_) => {}
        Err(error) if error.is_not_found() => return Ok(()),
        Err(error) => return Err(RestoreError(error.message)),
    }
    let effect =
        ScaleEffect { target: target.clone(), name: name.clone(), expected: None, to: count, why: None };
    match scale(applier, effect).await {
        ScaleResult::Written { .. } => Ok(()),
        ScaleResult::NotRead(error) | ScaleResult::NotWritten { error, .. } => Err(RestoreError(error)),
    }
}
