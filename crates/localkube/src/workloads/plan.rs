//! Plans of controllers: plain data, executed by [`super::execute`].

use std::time::Duration;

use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::object::set;

use super::objects::{ObjectMeta, ObjectRef, OwnerReference, WorkloadKind, WorkloadObject, WorkloadSpec};

/// The plan of one object.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct ReconcilePlan {
    /// Writes to other objects, or to its own metadata.
    pub(crate) writes: Vec<ObjectWrite>,
    /// A merge patch of its status, written last, if the status changed.
    pub(crate) status: Option<Value>,
    /// Events, besides those of the writes.
    pub(crate) notes: Vec<EventNote>,
    /// When to reconcile again.
    pub(crate) again: Option<Duration>,
}

/// A change of an object.
#[derive(Debug, PartialEq)]
pub(crate) struct ObjectWrite {
    pub(crate) kind: WorkloadKind,
    pub(crate) change: WriteOperation,
    /// The event that is recorded after the write.
    pub(crate) note: Option<EventNote>,
}

/// The operation of a write.
#[derive(Debug, PartialEq)]
pub(crate) enum WriteOperation {
    Create(Value),
    /// A merge patch.
    Patch {
        name: String,
        patch: Value,
    },
    /// Deletes this object, not another one of the same name.
    Delete {
        name: String,
        uid: String,
    },
}

/// An event to be recorded. `{}` in its text stands for the name of the object that was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EventNote {
    pub(crate) warning: bool,
    pub(crate) reason: &'static str,
    pub(crate) text: String,
}

/// The object that events are about.
#[derive(Clone, Debug)]
pub(crate) struct EventSubject {
    pub(crate) key: ObjectRef,
    pub(crate) uid: String,
    pub(crate) resource_version: String,
}

impl ReconcilePlan {
    /// Only the claims, if there are some; otherwise the plan.
    pub(crate) fn claim_or(claims: Vec<ObjectWrite>, plan: impl FnOnce() -> Self) -> Self {
        if claims.is_empty() { plan() } else { Self { writes: claims, ..Self::default() } }
    }

    /// Reconciles again after `wait`, or earlier if that is planned already.
    pub(crate) fn requeue_after(&mut self, wait: Option<Duration>) {
        self.again = [self.again, wait].into_iter().flatten().min();
    }
}

impl ObjectWrite {
    pub(crate) fn create(kind: WorkloadKind, object: Value) -> Self {
        Self { kind, change: WriteOperation::Create(object), note: None }
    }

    pub(crate) fn patch(kind: WorkloadKind, name: &str, patch: Value) -> Self {
        Self { kind, change: WriteOperation::Patch { name: name.to_owned(), patch }, note: None }
    }

    pub(crate) fn delete<S: WorkloadSpec, T>(object: &WorkloadObject<S, T>) -> Self {
        let change = WriteOperation::Delete { name: object.name().to_owned(), uid: object.uid().to_owned() };
        Self { kind: S::KIND, change, note: None }
    }

    pub(crate) fn with_event(self, note: EventNote) -> Self {
        Self { note: Some(note), ..self }
    }
}

impl EventNote {
    pub(crate) fn normal(reason: &'static str, text: impl Into<String>) -> Self {
        Self { warning: false, reason, text: text.into() }
    }

    pub(crate) fn warning(reason: &'static str, text: impl Into<String>) -> Self {
        Self { warning: true, reason, text: text.into() }
    }
}

impl EventSubject {
    pub(crate) fn of<S: WorkloadSpec, T>(object: &WorkloadObject<S, T>) -> Self {
        let resource_version = object.metadata.resource_version.clone().unwrap_or_default();
        Self { key: object.key(), uid: object.uid().to_owned(), resource_version }
    }
}

/// The controller reference to `owner`.
pub(crate) fn controlled_by<S: WorkloadSpec, T>(owner: &WorkloadObject<S, T>) -> OwnerReference {
    OwnerReference {
        api_version: S::KIND.api_version(),
        kind: S::KIND.names().2.to_owned(),
        name: owner.name().to_owned(),
        uid: owner.uid().to_owned(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    }
}

/// A pod from a template, controlled by `owner`; callers add names and labels.
pub(crate) fn pod_from<S: WorkloadSpec, T>(owner: &WorkloadObject<S, T>, template: &Value) -> Value {
    let mut pod = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "generateName": format!("{}-", owner.name()),
            "namespace": owner.namespace(),
            "ownerReferences": [controlled_by(owner)],
        },
        "spec": template.get("spec").cloned().unwrap_or_else(|| json!({})),
    });
    for field in ["labels", "annotations", "finalizers"] {
        if let Some(value) = template.pointer(&format!("/metadata/{field}")) {
            put(&mut pod, &["metadata", field], value.clone());
        }
    }
    pod
}

/// Sets the value at a path; creates missing objects on the way.
pub(crate) fn put(object: &mut Value, path: &[&str], value: impl Into<Value>) {
    set(object, path, value.into());
}

/// The merge patch from one status to another, if they differ.
pub(crate) fn difference<T: Serialize + PartialEq>(old: &T, new: &T) -> Option<Value> {
    if old == new {
        return None;
    }
    let (old, new) = (serde_json::to_value(old).ok()?, serde_json::to_value(new).ok()?);
    let (old, new) = (old.as_object()?, new.as_object()?);
    let gone = old.keys().filter(|key| !new.contains_key(*key)).map(|key| (key.clone(), Value::Null));
    let other = new.iter().filter(|(key, value)| old.get(*key) != Some(value));
    let patch: Map<String, Value> =
        gone.chain(other.map(|(key, value)| (key.clone(), value.clone()))).collect();
    (!patch.is_empty()).then(|| json!({ "status": patch }))
}

/// The labels of a template.
pub(crate) fn template_labels(template: &Value) -> Map<String, Value> {
    template.pointer("/metadata/labels").and_then(Value::as_object).cloned().unwrap_or_default()
}

/// Whether the object has all labels of the template.
pub(crate) fn is_fully_labelled(metadata: &ObjectMeta, template: &Value) -> bool {
    let Some(wanted) = template.pointer("/metadata/labels").and_then(Value::as_object) else { return true };
    let labels = metadata.labels.as_ref();
    wanted
        .iter()
        .all(|(name, value)| labels.and_then(|all| all.get(name)).map(String::as_str) == value.as_str())
}
