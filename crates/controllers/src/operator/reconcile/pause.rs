//! Paused ScaledObjects (docs/spec/keda.md 2.4).

use api::keda::ScaledObject;
use keda::executor::ScaleResult;

use super::steps::{delete_hpa, resolve_target, scale, stop_polls};
use crate::operator::apply::Applier;
use crate::operator::decide::conditions::set_paused;
use crate::operator::effect::ScaleEffect;
use crate::operator::id::ResourceKind;
use crate::operator::object_state::ObjectEntry;
use crate::operator::validate::{self, ReconcileStep, StepFailure};

/// Stops polls, deletes the HPA, and scales the target to the count of the annotation.
pub(super) async fn pause(
    applier: Applier<'_>,
    entry: &ObjectEntry,
    object: &mut ScaledObject,
) -> Result<(), StepFailure> {
    record_pause(applier, object, true).await;
    stop_polls(applier, entry).await;
    delete_hpa(applier, entry, object)
        .await
        .map_err(|error| ReconcileStep::DeleteHpaForPause.failed(error.message))?;
    let wanted = validate::paused_replicas(object)?;
    if let Some(count) = wanted {
        scale_to_paused(applier, object, count).await?;
    }
    object.status.paused_replica_count = wanted;
    Ok(())
}

/// Updates the condition of an object that is paused in one direction only, or not at all: it is still polled.
pub(super) async fn update_partial_pause(applier: Applier<'_>, object: &mut ScaledObject) {
    record_pause(applier, object, object.is_scale_in_paused() || object.is_scale_out_paused()).await;
    object.status.paused_replica_count = None;
}

async fn record_pause(applier: Applier<'_>, object: &mut ScaledObject, is_paused: bool) {
    let event = set_paused(ResourceKind::Object, &mut object.status.conditions, is_paused);
    applier.log_failed_status(applier.apply_all(event.into_iter().collect()).await);
}

async fn scale_to_paused(
    applier: Applier<'_>,
    object: &mut ScaledObject,
    count: i32,
) -> Result<(), StepFailure> {
    let step = || ReconcileStep::ScaleToPausedReplicas;
    // Nothing else resolves the target of a paused object, and it may have changed.
    resolve_target(applier, object).await.map_err(|cause| step().failed(cause))?.write_to(object);
    let Some(target) = object.status.scale_target_gvkr.clone() else { return Ok(()) };
    let (namespace, name) = (&object.metadata.namespace, &object.spec.scale_target_ref.name);
    // The scale is read, not taken from the store: an HPA may have scaled a moment ago, and no poll corrects it later.
    match applier.context.client.scale(namespace, name, &target).await {
        Ok(held) if held.scale.spec_replicas == count => return Ok(()),
        Ok(_) => {}
        Err(error) => return Err(step().failed(error.message)),
    }
    match scale(applier, ScaleEffect { target, name: name.clone(), expected: None, to: count, why: None })
        .await
    {
        ScaleResult::Written { .. } => Ok(()),
        ScaleResult::NotRead(error) => Err(step().failed(error)),
        // KEDA writes this text twice.
        ScaleResult::NotWritten { error, .. } => {
            Err(step().failed(format!("failed to scale target to paused replica count: {error}")))
        }
    }
}
