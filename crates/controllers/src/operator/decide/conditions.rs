//! Conditions and events after a reconcile (docs/spec/keda.md 2.2, 2.4, 5.1).

use std::collections::HashSet;

use api::keda::{
    Condition, ConditionStatus, Conditions, FINALIZER, ScaledJob, ScaledObject, Trigger, annotations, types,
};
use api::meta::ObjectMeta;
use api::provider::Compat;
use keda::event::Event;
use keda::fallback;
use serde_json::{Value, json};

use crate::operator::effect::Effect;
use crate::operator::id::ResourceKind;
use crate::operator::validate::StepFailure;

const OBJECT_READY: &str = "ScaledObject is defined correctly and is ready for scaling";
const OBJECT_PAUSED: &str = "ScaledObject is paused";
const JOB_READY: &str = "ScaledJob is defined correctly and is ready to scaling";
const JOB_PAUSED: &str = "ScaledJob is paused, skipping reconcile loop";

/// The outcome of a reconcile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReconcileOutcome {
    /// The object matches its spec, and is polled.
    Polled,
    /// The object matches its spec, and is not polled.
    NotPolled,
    /// The reconcile failed and is retried.
    Failed,
    /// The object is being deleted, or is gone.
    Deleted,
}

/// What a reconcile without a failure has found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reconciled {
    /// The object is paused.
    Paused,
    /// The object is ready, except for this error of a trigger.
    Ready { broken_trigger: Option<String> },
}

/// Whether the finalizer of the operator is set.
pub(crate) fn has_finalizer(metadata: &ObjectMeta) -> bool {
    metadata.finalizers.iter().any(|finalizer| finalizer == FINALIZER)
}

/// The patch that removes our finalizer and keeps those of others.
pub(crate) fn without_finalizer(metadata: &ObjectMeta) -> Value {
    let others: Vec<&String> = metadata.finalizers.iter().filter(|own| *own != FINALIZER).collect();
    json!({"metadata": {"resourceVersion": metadata.resource_version, "finalizers": others}})
}

/// The patch that adds the finalizer and, on a ScaledObject, the label with its name: both in one write. None if they are there.
pub(crate) fn adoption(kind: ResourceKind, metadata: &ObjectMeta) -> Option<Value> {
    let is_held = has_finalizer(metadata);
    let is_labelled = kind == ResourceKind::Job
        || metadata.labels.get(annotations::SCALED_OBJECT_NAME) == Some(&metadata.name);
    if is_held && is_labelled {
        return None;
    }
    let mut finalizers = metadata.finalizers.clone();
    if !is_held {
        finalizers.push(FINALIZER.to_owned());
    }
    // The resourceVersion keeps finalizers that another client adds meanwhile.
    let mut patch = json!({"resourceVersion": metadata.resource_version, "finalizers": finalizers});
    if kind == ResourceKind::Object
        && let Value::Object(fields) = &mut patch
    {
        fields.insert("labels".to_owned(), json!({annotations::SCALED_OBJECT_NAME: metadata.name}));
    }
    Some(json!({"metadata": patch}))
}

/// Adds the conditions that a new object lacks.
pub(crate) fn complete(conditions: &mut Conditions) {
    if !conditions.are_complete() {
        *conditions = Conditions::initial();
    }
}

/// Sets or clears the condition `Paused`; an event follows if it changes.
pub(crate) fn set_paused(kind: ResourceKind, conditions: &mut Conditions, is_paused: bool) -> Option<Effect> {
    if is_paused == (conditions.state(types::PAUSED) == ConditionStatus::True) {
        return None;
    }
    let (reason, message) = match (kind, is_paused) {
        (ResourceKind::Object, true) => ("ScaledObjectPaused", "ScaledObject is paused"),
        (ResourceKind::Object, false) => {
            ("ScaledObjectUnpaused", "pause annotation removed for ScaledObject")
        }
        (ResourceKind::Job, true) => ("ScaledJobPaused", "ScaledJob is paused"),
        (ResourceKind::Job, false) => ("ScaledJobUnpaused", "ScaledJob is unpaused"),
    };
    let state = if is_paused { ConditionStatus::True } else { ConditionStatus::False };
    conditions.set(Condition::new(types::PAUSED, state, reason, message));
    Some(Effect::ReconcileEvent(Event::normal(reason, message)))
}

/// The event that a scaler was built.
pub(crate) fn scaler_built(trigger: &Trigger) -> Effect {
    let note = format!("Scaler {} is built", trigger.type_);
    Effect::Event(Event::normal("KEDAScalersStarted", note))
}

/// The event that polls begin.
pub(crate) fn polls_started() -> Effect {
    let mut event = Event::normal("KEDAScalersStarted", "Started scalers watch");
    event.action = Some("ScalersWatchStarted");
    Effect::Event(event)
}

/// The event that polls end.
pub(crate) fn polls_stopped() -> Effect {
    Effect::Event(Event::normal("KEDAScalersStopped", "Stopped scalers watch"))
}

/// Conditions and events of a ScaledObject after a reconcile (docs/spec/keda.md 2.2, steps 7 to 9). `old` is the object before it.
pub(crate) fn conclude_object(
    old: &ScaledObject,
    new: &mut ScaledObject,
    result: Result<Reconciled, StepFailure>,
    compat: Compat,
) -> (ReconcileOutcome, Vec<Effect>) {
    let was_ready = old.status.conditions.state(types::READY) == ConditionStatus::True;
    let conditions = &mut new.status.conditions;
    let mut effects = Vec::new();
    let outcome = match result {
        Ok(Reconciled::Ready { broken_trigger: Some(cause) }) => {
            let message = format!("Some triggers defined in ScaledObject are not working correctly: {cause}");
            conditions.set(Condition::new(
                types::READY,
                ConditionStatus::Unknown,
                "PartialTriggerError",
                message,
            ));
            ReconcileOutcome::Polled
        }
        Ok(reconciled) => {
            let (message, outcome) = match reconciled {
                Reconciled::Paused => (OBJECT_PAUSED, ReconcileOutcome::NotPolled),
                Reconciled::Ready { .. } => (OBJECT_READY, ReconcileOutcome::Polled),
            };
            if !was_ready {
                let event = Event::normal("ScaledObjectReady", "ScaledObject is ready for scaling");
                effects.push(Effect::ReconcileEvent(event));
            }
            conditions.set(Condition::new(types::READY, ConditionStatus::True, "ScaledObjectReady", message));
            outcome
        }
        Err(failure) => {
            let message = failure.to_string();
            let event = Event::warning("ScaledObjectCheckFailed", message.clone());
            effects.push(Effect::ReconcileEvent(event));
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
    if fallback::configured(new, compat).is_none() {
        let message = "No fallbacks are active on this scaled object";
        let none = Condition::new(types::FALLBACK, ConditionStatus::False, "NoFallbackFound", message);
        new.status.conditions.set(none);
    }
    (outcome, effects)
}

/// Conditions and events of a ScaledJob after a reconcile (docs/spec/keda.md 5.1). `old` is the object before it.
pub(crate) fn conclude_job(
    old: &ScaledJob,
    new: &mut ScaledJob,
    result: Result<Reconciled, StepFailure>,
    compat: Compat,
) -> (ReconcileOutcome, Vec<Effect>) {
    let conditions = &mut new.status.conditions;
    let mut effects = Vec::new();
    let outcome = match result {
        Ok(reconciled) => {
            if old.status.conditions.state(types::READY) != ConditionStatus::True {
                let event = Event::normal("ScaledJobReady", "ScaledJob is ready for scaling");
                effects.push(Effect::ReconcileEvent(event));
            }
            let (message, outcome) = match reconciled {
                Reconciled::Paused => (JOB_PAUSED, ReconcileOutcome::NotPolled),
                Reconciled::Ready { .. } => (JOB_READY, ReconcileOutcome::Polled),
            };
            conditions.set(Condition::new(types::READY, ConditionStatus::True, "ScaledJobReady", message));
            outcome
        }
        Err(failure) => {
            // KEDA does not report the cause.
            let message = if compat.is_strict() { failure.step.to_string() } else { failure.to_string() };
            effects.push(Effect::ReconcileEvent(Event::warning("ScaledJobCheckFailed", message.clone())));
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
    };
    (outcome, effects)
}

/// The distinct types of triggers and the distinct names of their authentications, each joined with commas, for the status.
pub(crate) fn summarize(triggers: &[Trigger]) -> (String, String) {
    let distinct = |names: &mut dyn Iterator<Item = &str>| {
        let (mut seen, mut known) = (Vec::new(), HashSet::new());
        for name in names {
            if known.insert(name) {
                seen.push(name);
            }
        }
        seen.join(",")
    };
    let types = distinct(&mut triggers.iter().map(|trigger| trigger.type_.as_str()));
    let named = triggers.iter().filter_map(|trigger| trigger.authentication_ref.as_ref());
    let names = distinct(&mut named.map(|reference| reference.name.as_str()).filter(|name| !name.is_empty()));
    (types, names)
}
