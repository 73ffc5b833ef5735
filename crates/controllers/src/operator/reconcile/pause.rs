//! Paused ScaledObjects (docs/spec/keda.md 2.4).

use api::keda::ScaledObject;
use cluster::request::ApiError;
use keda::executor::ScaleResult;

use super::finalize::stop_polls;
use super::object::resolve_target;
use crate::operator::apply::{Applied, Applier, ScaleOutcome};
use crate::operator::decide::conditions::set_paused;
use crate::operator::decide::hpa;
use crate::operator::effect::{Effect, ScaleEffect};
use crate::operator::id::{NamespacedName, ResourceKind};
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

/// Writes a replica count, whatever the count is.
pub(super) async fn scale(applier: Applier<'_>, effect: ScaleEffect) -> ScaleResult {
    match applier.apply(Effect::Scale(effect)).await {
        Ok(Applied::Scaled(ScaleOutcome::Tried(scaled))) => scaled,
        Ok(Applied::Scaled(ScaleOutcome::Moved { to })) => {
            ScaleResult::NotWritten { from: to, error: format!("the count is {to}") }
        }
        Ok(_) => ScaleResult::NotRead("no replica count was written".to_owned()),
        Err(error) => ScaleResult::NotRead(error.message),
    }
}

/// Deletes the HPA of an object, if it has one and owns it.
pub(super) async fn delete_hpa(
    applier: Applier<'_>,
    entry: &ObjectEntry,
    object: &ScaledObject,
) -> Result<(), ApiError> {
    let name = hpa::name(object);
    let full = NamespacedName::new(&object.metadata.namespace, &name);
    let (is_known, owner) = {
        let store = applier.context.store();
        let found = store.hpas.get(&full);
        (found.is_some(), found.and_then(|hpa| hpa.owner.clone()))
    };
    // An HPA that was never adopted belongs to somebody else. One that the watch has not delivered yet may be ours.
    if is_known && owner.as_ref() != Some(applier.id) {
        return Ok(());
    }
    // The HPA may have been created a moment ago, even if the status does not name it.
    let is_created = entry.state().hpa.is_some();
    if is_known || is_created || !object.status.hpa_name.is_empty() {
        applier.apply(Effect::DeleteHpa(name)).await?;
    }
    entry.state().hpa = None;
    Ok(())
}
