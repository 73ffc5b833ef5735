//! ScaledObjects, step by step (docs/spec/keda.md 2.2, 2.3). Everything that is said in the status is said in one patch at the end.

use std::sync::Arc;

use api::keda::{Condition, ConditionStatus, Conditions, FINALIZER, ScaledObject, annotations, types};
use keda::event::Event;
use keda::{admission, fallback, status};
use serde_json::json;

use super::{ReconcileOutcome, StepFailure, end, hpa, pause, target, users};
use crate::operator::context::OperatorContext;
use crate::operator::event_recorder::EventSubject;
use crate::operator::id::Id;
use crate::operator::scalers_cache::ScaledResource;
use crate::operator::settings::ScalingMode;

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

pub(super) async fn reconcile(context: &OperatorContext, id: &Id) -> ReconcileOutcome {
    let entry = context.entry(id);
    let _alone = entry.gate.lock().await;
    let Some(object) = context.store().object(id) else { return ReconcileOutcome::Ended };
    if object.metadata.deletion_timestamp.is_some() {
        return end::object(context, id, &object).await;
    }
    if let Err(error) = adopt(context, id, &object).await {
        return super::unwritten(context, EventSubject::Object, &object.metadata, &error);
    }
    // As it is after that.
    let Some(object) = context.store().object(id) else { return ReconcileOutcome::Ended };
    let mut new = (*object).clone();
    if !new.status.conditions.are_complete() {
        new.status.conditions = Conditions::initial();
    }
    let found = steps(context, id, &entry, &mut new).await;
    let outcome = judge(context, &object, &mut new, found);
    if let Some(patch) = status::difference(&object.status, &new.status)
        && let Err(error) = context.write_object(id, &patch, "status").await
    {
        return super::unwritten(context, EventSubject::Object, &object.metadata, &error);
    }
    let before = object.status.authentications_types.clone().unwrap_or_default();
    users::add(context, &ScaledResource::Object(object), &before).await;
    outcome
}

/// Holds the object until we have cleaned up behind it, and labels it with its name: both in one write.
async fn adopt(
    context: &OperatorContext,
    id: &Id,
    object: &Arc<ScaledObject>,
) -> Result<(), cluster::request::ApiError> {
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
    context.write_object(id, &patch, "").await
}

/// Spec 2.3: the first failure wins.
async fn steps(
    context: &OperatorContext,
    id: &Id,
    entry: &crate::operator::context::ObjectEntry,
    object: &mut ScaledObject,
) -> Result<Found, StepFailure> {
    if object.is_paused() {
        pause::stop(context, id, entry, object).await?;
        return Ok(Found::Paused);
    }
    pause::note(context, object);
    if object.spec.scale_target_ref.name.is_empty() {
        let cause = "ScaledObject.spec.scaleTargetRef.name is missing";
        return Err(StepFailure::new(
            "ScaledObject doesn't have correct scaleTargetRef specification",
            cause,
        ));
    }
    target::resolve(context, object).await.map_err(|cause| {
        StepFailure::new("ScaledObject doesn't have correct scaleTargetRef specification", cause)
    })?;
    admission::check_bounds(object).map_err(|denial| {
        StepFailure::new(
            "ScaledObject doesn't have correct Idle/Min/Max Replica Counts specification",
            denial.message,
        )
    })?;
    admission::check_triggers(&object.spec.triggers).map_err(|denial| {
        StepFailure::new("ScaledObject doesn't have correct triggers specification", denial.message)
    })?;
    let (types, names) = super::types(&object.spec.triggers);
    (object.status.triggers_types, object.status.authentications_types) = (Some(types), Some(names));
    let broken = hpa::ensure(context, entry, object).await.map_err(|cause| {
        StepFailure::new("failed to ensure HPA is correctly created for ScaledObject", cause)
    })?;
    Ok(Found::Ready { broken })
}

/// Conditions and events that follow (docs/spec/keda.md 2.2, steps 7 to 9), and whether it is polled.
fn judge(
    context: &OperatorContext,
    old: &ScaledObject,
    new: &mut ScaledObject,
    found: Result<Found, StepFailure>,
) -> ReconcileOutcome {
    let metadata = &old.metadata;
    let was_ready = old.status.conditions.state(types::READY) == ConditionStatus::True;
    let conditions = &mut new.status.conditions;
    let outcome = match found {
        Ok(found) => {
            let (message, outcome) = match &found {
                Found::Paused => (PAUSED, ReconcileOutcome::Still),
                Found::Ready { .. } => (READY, ReconcileOutcome::Polled),
            };
            let broken = match found {
                Found::Ready { broken } => broken,
                Found::Paused => None,
            };
            if let Some(cause) = broken {
                let words = "Some triggers defined in ScaledObject are not working correctly";
                let message = format!("{words}: {cause}");
                conditions.set(Condition::new(
                    types::READY,
                    ConditionStatus::Unknown,
                    "PartialTriggerError",
                    message,
                ));
            } else {
                if !was_ready {
                    let event = Event::normal("ScaledObjectReady", "ScaledObject is ready for scaling");
                    context.events.record_reconcile(EventSubject::Object, metadata, &event);
                }
                conditions.set(Condition::new(
                    types::READY,
                    ConditionStatus::True,
                    "ScaledObjectReady",
                    message,
                ));
            }
            outcome
        }
        Err(StepFailure { step, cause }) => {
            let message = format!("{step}: {cause}");
            tracing::warn!(
                namespace = metadata.namespace,
                name = metadata.name,
                message,
                "a ScaledObject is not right"
            );
            let event = Event::warning("ScaledObjectCheckFailed", message.clone());
            context.events.record_reconcile(EventSubject::Object, metadata, &event);
            conditions.set(Condition::new(
                types::READY,
                ConditionStatus::False,
                "ScaledObjectCheckFailed",
                message,
            ));
            let unknown = "ScaledObject check failed";
            conditions.set(Condition::new(types::ACTIVE, ConditionStatus::Unknown, "UnknownState", unknown));
            ReconcileOutcome::Failed
        }
    };
    if fallback::configured(new, context.settings.compat).is_none() {
        let message = "No fallbacks are active on this scaled object";
        let none = Condition::new(types::FALLBACK, ConditionStatus::False, "NoFallbackFound", message);
        new.status.conditions.set(none);
    }
    outcome
}

/// SampleQuery an object acts.
pub(crate) fn scaling_mode(context: &OperatorContext, object: &ScaledObject) -> ScalingMode {
    let said = object.metadata.annotations.get(annotations::ACT);
    said.and_then(|said| ScalingMode::parse(said)).unwrap_or(context.settings.scaling_mode)
}
