//! ScaledObjects, step by step (docs/spec/keda.md 2.2, 2.3). Everything that is said in the status is said in one patch at the end.

use std::sync::Arc;

use api::keda::{Condition, Conditions, FINALIZER, ScaledObject, State, annotations, types};
use keda::event::Event;
use keda::{admission, fallback, status};
use serde_json::json;

use super::{Fault, Reconciled, end, hpa, pause, target, users};
use crate::operator::core::Core;
use crate::operator::id::Id;
use crate::operator::settings::Act;
use crate::operator::tell::Subject;
use crate::operator::triggers::Owner;

/// What is said when all is well.
const READY: &str = "ScaledObject is defined correctly and is ready for scaling";
const PAUSED: &str = "ScaledObject is paused";

/// What the steps have found.
pub(super) enum Found {
    /// It is paused.
    Paused,
    /// It is ready, or would be but for these triggers.
    Ready { broken: Option<String> },
}

pub(super) async fn reconcile(core: &Core, id: &Id) -> Reconciled {
    let item = core.item(id);
    let _alone = item.gate.lock().await;
    let Some(object) = core.world().object(id) else { return Reconciled::Ended };
    if object.metadata.deletion_timestamp.is_some() {
        return end::object(core, id, &object).await;
    }
    if let Err(error) = adopt(core, id, &object).await {
        return super::unwritten(core, Subject::Object, &object.metadata, &error);
    }
    // As it is after that.
    let Some(object) = core.world().object(id) else { return Reconciled::Ended };
    let mut new = (*object).clone();
    if !new.status.conditions.are_complete() {
        new.status.conditions = Conditions::initial();
    }
    let found = steps(core, id, &item, &mut new).await;
    let outcome = judge(core, &object, &mut new, found);
    if let Some(patch) = status::difference(&object.status, &new.status)
        && let Err(error) = core.write_object(id, &patch, "status").await
    {
        return super::unwritten(core, Subject::Object, &object.metadata, &error);
    }
    let before = object.status.authentications_types.clone().unwrap_or_default();
    users::add(core, &Owner::Object(object), &before).await;
    outcome
}

/// Holds the object until we have cleaned up behind it, and labels it with its name: both in one write.
async fn adopt(core: &Core, id: &Id, object: &Arc<ScaledObject>) -> Result<(), cluster::request::ApiError> {
    let metadata = &object.metadata;
    let held = metadata.finalizers.iter().any(|finalizer| finalizer == FINALIZER);
    let labelled = metadata.labels.get(annotations::SCALED_OBJECT_NAME) == Some(&metadata.name);
    if held && labelled {
        return Ok(());
    }
    let mut finalizers = metadata.finalizers.clone();
    if !held {
        finalizers.push(FINALIZER.to_owned());
    }
    let patch = json!({"metadata": {
        // Whoever adds one of their own meanwhile keeps it.
        "resourceVersion": metadata.resource_version,
        "finalizers": finalizers,
        "labels": {annotations::SCALED_OBJECT_NAME: metadata.name},
    }});
    core.write_object(id, &patch, "").await
}

/// Spec 2.3: the first failure wins.
async fn steps(
    core: &Core,
    id: &Id,
    item: &crate::operator::core::Item,
    object: &mut ScaledObject,
) -> Result<Found, Fault> {
    if object.is_paused() {
        pause::stop(core, id, item, object).await?;
        return Ok(Found::Paused);
    }
    pause::note(core, object);
    if object.spec.scale_target_ref.name.is_empty() {
        let cause = "ScaledObject.spec.scaleTargetRef.name is missing";
        return Err(Fault::new("ScaledObject doesn't have correct scaleTargetRef specification", cause));
    }
    target::resolve(core, object).await.map_err(|cause| {
        Fault::new("ScaledObject doesn't have correct scaleTargetRef specification", cause)
    })?;
    admission::check_bounds(object).map_err(|cause| {
        Fault::new("ScaledObject doesn't have correct Idle/Min/Max Replica Counts specification", cause)
    })?;
    admission::check_triggers(&object.spec.triggers)
        .map_err(|cause| Fault::new("ScaledObject doesn't have correct triggers specification", cause))?;
    let (types, names) = super::types(&object.spec.triggers);
    (object.status.triggers_types, object.status.authentications_types) = (Some(types), Some(names));
    let broken = hpa::ensure(core, item, object)
        .await
        .map_err(|cause| Fault::new("failed to ensure HPA is correctly created for ScaledObject", cause))?;
    Ok(Found::Ready { broken })
}

/// Conditions and events that follow (docs/spec/keda.md 2.2, steps 7 to 9), and whether it is polled.
fn judge(core: &Core, old: &ScaledObject, new: &mut ScaledObject, found: Result<Found, Fault>) -> Reconciled {
    let metadata = &old.metadata;
    let was_ready = old.status.conditions.state(types::READY) == State::True;
    let conditions = &mut new.status.conditions;
    let outcome = match found {
        Ok(found) => {
            let (message, outcome) = match &found {
                Found::Paused => (PAUSED, Reconciled::Still),
                Found::Ready { .. } => (READY, Reconciled::Polled),
            };
            let broken = match found {
                Found::Ready { broken } => broken,
                Found::Paused => None,
            };
            if let Some(cause) = broken {
                let words = "Some triggers defined in ScaledObject are not working correctly";
                let message = format!("{words}: {cause}");
                conditions.set(Condition::new(types::READY, State::Unknown, "PartialTriggerError", message));
            } else {
                if !was_ready {
                    let event = Event::normal("ScaledObjectReady", "ScaledObject is ready for scaling");
                    core.tell.controller(Subject::Object, metadata, &event);
                }
                conditions.set(Condition::new(types::READY, State::True, "ScaledObjectReady", message));
            }
            outcome
        }
        Err(Fault { step, cause }) => {
            let message = format!("{step}: {cause}");
            tracing::warn!(
                namespace = metadata.namespace,
                name = metadata.name,
                message,
                "a ScaledObject is not right"
            );
            let event = Event::warning("ScaledObjectCheckFailed", message.clone());
            core.tell.controller(Subject::Object, metadata, &event);
            conditions.set(Condition::new(types::READY, State::False, "ScaledObjectCheckFailed", message));
            let unknown = "ScaledObject check failed";
            conditions.set(Condition::new(types::ACTIVE, State::Unknown, "UnknownState", unknown));
            Reconciled::Failed
        }
    };
    if fallback::configured(new, core.settings.compat).is_none() {
        let message = "No fallbacks are active on this scaled object";
        let none = Condition::new(types::FALLBACK, State::False, "NoFallbackFound", message);
        new.status.conditions.set(none);
    }
    outcome
}

/// How an object acts.
pub(crate) fn act(core: &Core, object: &ScaledObject) -> Act {
    let said = object.metadata.annotations.get(annotations::ACT);
    said.and_then(|said| Act::read(said)).unwrap_or(core.settings.act)
}
