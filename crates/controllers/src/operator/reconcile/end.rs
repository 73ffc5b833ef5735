//! What is left behind when an object is deleted (docs/spec/keda.md 2.9, 5.1).

use std::sync::Arc;

use api::keda::{FINALIZER, ScaledJob, ScaledObject};
use api::meta::ObjectMeta;
use cluster::request::ApiError;
use keda::event::Event;
use keda::executor::Scaled;
use serde_json::{Value, json};

use super::{Reconciled, pause, users};
use crate::operator::core::{Core, Item};
use crate::operator::hand::Place;
use crate::operator::id::Id;
use crate::operator::tell::Subject;
use crate::operator::triggers::Owner;

/// How often it is tried to restore the first count of a target.
const RESTORES: u32 = 6;

/// Cleans up behind a ScaledObject and lets it go.
pub(super) async fn object(core: &Core, id: &Id, object: &Arc<ScaledObject>) -> Reconciled {
    if !is_held(&object.metadata) {
        return Reconciled::Ended;
    }
    let item = core.item(id);
    stop(core, &item, Subject::Object, &object.metadata);
    if wants_first_count(object) {
        if !core.settings.compat.is_strict() {
            // Its HPA lives until somebody collects it, and would scale what was just restored.
            let mut gone = (**object).clone();
            if let Err(error) = pause::delete_hpa(core, id, &item, &mut gone).await {
                tracing::warn!(object = %id, error, "failed to delete the HPA of an object that goes");
            }
        }
        if let Err(error) = restore(core, object).await {
            tracing::warn!(object = %id, error, "failed to restore the first count of a target");
            // A server that is away for a moment is no reason to leave the target as it is for good; one that never lets us is
            // none to keep the object.
            let failures = item.notes().failures;
            if failures < RESTORES && !core.settings.compat.is_strict() {
                return Reconciled::Failed;
            }
        }
    }
    let place = Place::keda("scaledobjects", &id.namespace, &id.name);
    let event = Event::warning("ScaledObjectDeleted", "ScaledObject was deleted");
    end(core, Owner::Object(Arc::clone(object)), place, Subject::Object, &event).await
}

/// Cleans up behind a ScaledJob and lets it go; its jobs go with it.
pub(super) async fn job(core: &Core, id: &Id, job: &Arc<ScaledJob>) -> Reconciled {
    if !is_held(&job.metadata) {
        return Reconciled::Ended;
    }
    stop(core, &core.item(id), Subject::Job, &job.metadata);
    let place = Place::keda("scaledjobs", &id.namespace, &id.name);
    let event = Event::warning("ScaledJobDeleted", "ScaledJob was deleted");
    end(core, Owner::Job(Arc::clone(job)), place, Subject::Job, &event).await
}

/// Nobody asks its sources from now on; that is told if somebody did.
pub(super) fn stop(core: &Core, item: &Item, subject: Subject, metadata: &ObjectMeta) {
    item.drop_triggers();
    if std::mem::take(&mut item.notes().polled) {
        let event = Event::normal("KEDAScalersStopped", "Stopped scalers watch");
        core.tell.round(subject, metadata, &event);
    }
}

async fn end(core: &Core, owner: Owner, place: Place<'_>, subject: Subject, event: &Event) -> Reconciled {
    if let Err(error) = release(core, place, owner.metadata()).await {
        tracing::warn!(object = %owner.id(), %error, "failed to let an object go");
        return Reconciled::Failed;
    }
    users::remove(core, &owner).await;
    core.tell.controller(subject, owner.metadata(), event);
    Reconciled::Ended
}

pub(super) fn is_held(metadata: &ObjectMeta) -> bool {
    metadata.finalizers.iter().any(|finalizer| finalizer == FINALIZER)
}

/// Lets an object go, as far as it is for us to say.
pub(super) async fn release(core: &Core, place: Place<'_>, metadata: &ObjectMeta) -> Result<(), ApiError> {
    let others: Vec<&String> = metadata.finalizers.iter().filter(|own| *own != FINALIZER).collect();
    let patch = json!({"metadata": {"resourceVersion": metadata.resource_version, "finalizers": others}});
    match core.hand.merge::<Value>(place, "", &patch).await {
        Err(error) if !error.is_not_found() => Err(error),
        _ => Ok(()),
    }
}

fn wants_first_count(object: &ScaledObject) -> bool {
    object.spec.advanced.as_ref().is_some_and(|advanced| advanced.restore_to_original_replica_count)
}

/// The first count comes back; where nobody may bring it back, or there is nothing left, that is all.
async fn restore(core: &Core, object: &ScaledObject) -> Result<(), String> {
    let (Some(target), Some(count)) =
        (&object.status.scale_target_gvkr, object.status.original_replica_count)
    else {
        return Ok(());
    };
    let (namespace, name) = (&object.metadata.namespace, &object.spec.scale_target_ref.name);
    match core.hand.scale(namespace, name, target).await {
        Ok(held) if held.scale.spec_replicas == count => return Ok(()),
        Ok(_) => {}
        Err(error) if error.is_not_found() => return Ok(()),
        Err(error) => return Err(error.message),
    }
    match core.hand.scale_to(namespace, name, target, count).await {
        Scaled::Written { .. } => Ok(()),
        Scaled::NotRead(error) | Scaled::NotWritten { error, .. } => Err(error),
    }
}
