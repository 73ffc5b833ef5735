//! ScaledObjects that shall do nothing (docs/spec/keda.md 2.4).

use std::num::IntErrorKind;

use api::keda::{Condition, ConditionStatus, ScaledObject, annotations, types};
use keda::event::Event;
use keda::executor::ScaleResult;

use super::StepFailure;
use crate::operator::context::{ObjectEntry, OperatorContext};
use crate::operator::event_recorder::EventSubject;
use crate::operator::id::Id;
use crate::operator::leader_client::ResourcePath;

/// Sets or clears the condition; tells when it turns.
fn turn(context: &OperatorContext, object: &mut ScaledObject, is_paused: bool) {
    let was = object.status.conditions.state(types::PAUSED) == ConditionStatus::True;
    if was == is_paused {
        return;
    }
    let (state, reason, message) = if is_paused {
        (ConditionStatus::True, "ScaledObjectPaused", "ScaledObject is paused")
    } else {
        (ConditionStatus::False, "ScaledObjectUnpaused", "pause annotation removed for ScaledObject")
    };
    object.status.conditions.set(Condition::new(types::PAUSED, state, reason, message));
    context.events.record_reconcile(EventSubject::Object, &object.metadata, &Event::normal(reason, message));
}

/// Stops everything, and brings the target to the count that is asked for.
pub(super) async fn stop(
    context: &OperatorContext,
    id: &Id,
    entry: &ObjectEntry,
    object: &mut ScaledObject,
) -> Result<(), StepFailure> {
    turn(context, object, true);
    super::end::stop(context, entry, EventSubject::Object, &object.metadata);
    delete_hpa(context, id, entry, object)
        .await
        .map_err(|cause| StepFailure::new("failed to delete HPA for paused ScaledObject", cause))?;
    let wanted = object.metadata.annotations.get(annotations::PAUSED_REPLICAS);
    let wanted = match wanted.map(|text| text.parse::<i32>().map_err(|error| (text, error))) {
        None => None,
        Some(Ok(count)) => Some(count),
        Some(Err((text, error))) => {
            // In the words of the original.
            let why = match error.kind() {
                IntErrorKind::PosOverflow | IntErrorKind::NegOverflow => "value out of range",
                _ => "invalid syntax",
            };
            let cause =
                format!("failed to parse paused replica count: strconv.ParseInt: parsing {text:?}: {why}");
            return Err(StepFailure::new("failed to scale target to paused replica count", cause));
        }
    };
    if let Some(count) = wanted {
        pin(context, object, count)
            .await
            .map_err(|cause| StepFailure::new("failed to scale target to paused replica count", cause))?;
    }
    object.status.paused_replica_count = wanted;
    Ok(())
}

/// What is only paused in one direction goes on; what is paused no longer is no longer said to be.
pub(super) fn note(context: &OperatorContext, object: &mut ScaledObject) {
    turn(context, object, object.is_scale_in_paused() || object.is_scale_out_paused());
    object.status.paused_replica_count = None;
}

async fn pin(context: &OperatorContext, object: &mut ScaledObject, count: i32) -> Result<(), String> {
    // Nobody resolves what a paused object names, also if it names something else by now.
    super::target::resolve(context, object).await?;
    let Some(target) = &object.status.scale_target_gvkr else { return Ok(()) };
    let (namespace, name) = (&object.metadata.namespace, &object.spec.scale_target_ref.name);
    // Read, not remembered: an HPA may have scaled a moment ago, and nobody looks again later.
    match context.client.scale(namespace, name, target).await {
        Ok(held) if held.scale.spec_replicas == count => return Ok(()),
        Ok(_) => {}
        Err(error) => return Err(error.message),
    }
    match context.client.scale_to(namespace, name, target, count).await {
        ScaleResult::Written { .. } => Ok(()),
        ScaleResult::NotRead(error) => Err(error),
        // The original says it twice.
        ScaleResult::NotWritten { error, .. } => {
            Err(format!("failed to scale target to paused replica count: {error}"))
        }
    }
}

/// Deletes the HPA of an object, if there is one that is its own.
pub(super) async fn delete_hpa(
    context: &OperatorContext,
    id: &Id,
    entry: &ObjectEntry,
    object: &mut ScaledObject,
) -> Result<(), String> {
    let name = match object.status.hpa_name.as_str() {
        "" => object.hpa_name(),
        known => known.to_owned(),
    };
    let full = crate::operator::id::Name::new(&object.metadata.namespace, &name);
    let (known, owner) = {
        let store = context.store();
        let found = store.hpas.get(&full);
        (found.is_some(), found.and_then(|hpa| hpa.owner.clone()))
    };
    // One that was never adopted is somebody else's. One that is not seen yet may still be ours.
    if known && owner.as_ref() != Some(id) {
        return Ok(());
    }
    // BuiltScaler a moment ago, whether that could be noted in the status or not.
    let is_made = entry.state().hpa.is_some();
    if known || is_made || !object.status.hpa_name.is_empty() {
        let path = ResourcePath::hpa(&object.metadata.namespace, &name);
        context.client.delete(path, "Background").await.map_err(|error| error.message)?;
    }
    entry.state().hpa = None;
    Ok(())
}
