//! ScaledObjects that shall do nothing (docs/spec/keda.md 2.4).

use std::num::IntErrorKind;

use api::keda::{Condition, ScaledObject, State, annotations, types};
use keda::event::Event;
use keda::executor::Scaled;

use super::Fault;
use crate::operator::core::{Core, Item};
use crate::operator::hand::Place;
use crate::operator::id::Id;
use crate::operator::tell::Subject;

/// Sets or clears the condition; tells when it turns.
fn turn(core: &Core, object: &mut ScaledObject, is_paused: bool) {
    let was = object.status.conditions.state(types::PAUSED) == State::True;
    if was == is_paused {
        return;
    }
    let (state, reason, message) = if is_paused {
        (State::True, "ScaledObjectPaused", "ScaledObject is paused")
    } else {
        (State::False, "ScaledObjectUnpaused", "pause annotation removed for ScaledObject")
    };
    object.status.conditions.set(Condition::new(types::PAUSED, state, reason, message));
    core.tell.controller(Subject::Object, &object.metadata, &Event::normal(reason, message));
}

/// Stops everything, and brings the target to the count that is asked for.
pub(super) async fn stop(core: &Core, id: &Id, item: &Item, object: &mut ScaledObject) -> Result<(), Fault> {
    turn(core, object, true);
    super::end::stop(core, item, Subject::Object, &object.metadata);
    delete_hpa(core, id, item, object)
        .await
        .map_err(|cause| Fault::new("failed to delete HPA for paused ScaledObject", cause))?;
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
            return Err(Fault::new("failed to scale target to paused replica count", cause));
        }
    };
    if let Some(count) = wanted {
        pin(core, object, count)
            .await
            .map_err(|cause| Fault::new("failed to scale target to paused replica count", cause))?;
    }
    object.status.paused_replica_count = wanted;
    Ok(())
}

/// What is only paused in one direction goes on; what is paused no longer is no longer said to be.
pub(super) fn note(core: &Core, object: &mut ScaledObject) {
    turn(core, object, object.is_scale_in_paused() || object.is_scale_out_paused());
    object.status.paused_replica_count = None;
}

async fn pin(core: &Core, object: &mut ScaledObject, count: i32) -> Result<(), String> {
    // Nobody resolves what a paused object names, also if it names something else by now.
    super::target::resolve(core, object).await?;
    let Some(target) = &object.status.scale_target_gvkr else { return Ok(()) };
    let (namespace, name) = (&object.metadata.namespace, &object.spec.scale_target_ref.name);
    // Read, not remembered: an HPA may have scaled a moment ago, and nobody looks again later.
    match core.hand.scale(namespace, name, target).await {
        Ok(held) if held.scale.spec_replicas == count => return Ok(()),
        Ok(_) => {}
        Err(error) => return Err(error.message),
    }
    match core.hand.scale_to(namespace, name, target, count).await {
        Scaled::Written { .. } => Ok(()),
        Scaled::NotRead(error) => Err(error),
        // The original says it twice.
        Scaled::NotWritten { error, .. } => {
            Err(format!("failed to scale target to paused replica count: {error}"))
        }
    }
}

/// Deletes the HPA of an object, if there is one that is its own.
pub(super) async fn delete_hpa(
    core: &Core,
    id: &Id,
    item: &Item,
    object: &mut ScaledObject,
) -> Result<(), String> {
    let name = match object.status.hpa_name.as_str() {
        "" => object.hpa_name(),
        known => known.to_owned(),
    };
    let full = crate::operator::id::Name::new(&object.metadata.namespace, &name);
    let (known, owner) = {
        let world = core.world();
        let found = world.hpas.get(&full);
        (found.is_some(), found.and_then(|hpa| hpa.owner.clone()))
    };
    // One that was never adopted is somebody else's. One that is not seen yet may still be ours.
    if known && owner.as_ref() != Some(id) {
        return Ok(());
    }
    // Made a moment ago, whether that could be noted in the status or not.
    let is_made = item.notes().hpa.is_some();
    if known || is_made || !object.status.hpa_name.is_empty() {
        let place = Place::hpa(&object.metadata.namespace, &name);
        core.hand.delete(place, "Background").await.map_err(|error| error.message)?;
    }
    item.notes().hpa = None;
    Ok(())
}
