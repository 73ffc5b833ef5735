//! Which objects are refused, and in which words (docs/spec/keda.md 8).
//!
//! ```text
//! request ─► finalizer only? ─► the rules of the kind, in a fixed order ─► Verdict
//!
//! surroundings    what the rules ask about the namespace
//! target          what a reference means: group, version and kind
//! scaled_object   rules 1 to 6 and the warnings;  resources: rule 2;  triggers: rule 7
//! authentication  TriggerAuthentication;  url: what Go takes for one
//! cloud_events    CloudEventSource
//! odd_annotations what KEDA does not warn about
//! ```
//!
//! Nothing here waits: whoever has to ask an API server looks at [`needs`] first and gathers [`Objects`].

mod authentication;
mod cloud_events;
mod odd_annotations;
mod resources;
mod scaled_object;
mod surroundings;
mod target;
#[cfg(test)]
mod tests;
mod triggers;
mod url;

use api::keda::{CloudEventSource, ScaledJob, ScaledObject, Trigger, TriggerAuthentication};
use api::meta::ObjectMeta;
use api::provider::Compat;
use serde::de::DeserializeOwned;
use serde_json::Value;

pub use surroundings::{Needs, Objects, Surroundings, Workload, needs};
pub use target::{Target, TargetError};

use crate::event::Event;

/// The reason of the events that repeat warnings.
pub const INFO: &str = "KEDAScalerInfo";

/// What somebody wants to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Make an object.
    Create,
    /// Change one.
    Update,
    /// Delete one; always allowed.
    Delete,
}

impl Operation {
    /// As an AdmissionReview says it; nothing else is asked of us.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "CREATE" => Some(Self::Create),
            "UPDATE" => Some(Self::Update),
            "DELETE" => Some(Self::Delete),
            _ => None,
        }
    }

    /// The label `action` of the counters.
    pub fn action(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Update => "update",
            Self::Delete => "delete",
        }
    }
}

/// Kinds that have rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// ScaledObject.
    ScaledObject,
    /// ScaledJob.
    ScaledJob,
    /// TriggerAuthentication.
    TriggerAuthentication,
    /// ClusterTriggerAuthentication.
    ClusterTriggerAuthentication,
    /// CloudEventSource.
    CloudEventSource,
    /// ClusterCloudEventSource.
    ClusterCloudEventSource,
}

impl Kind {
    /// All of them, in the order of their webhooks.
    pub const ALL: [Self; 6] = [
        Self::ScaledObject,
        Self::ScaledJob,
        Self::TriggerAuthentication,
        Self::ClusterTriggerAuthentication,
        Self::CloudEventSource,
        Self::ClusterCloudEventSource,
    ];

    /// As objects spell it.
    pub fn name(self) -> &'static str {
        match self {
            Self::ScaledObject => "ScaledObject",
            Self::ScaledJob => "ScaledJob",
            Self::TriggerAuthentication => "TriggerAuthentication",
            Self::ClusterTriggerAuthentication => "ClusterTriggerAuthentication",
            Self::CloudEventSource => "CloudEventSource",
            Self::ClusterCloudEventSource => "ClusterCloudEventSource",
        }
    }

    /// By its name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// What somebody wants to do with an object.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// What is done.
    pub operation: Operation,
    /// The object's kind.
    pub kind: Kind,
    /// Whether nothing is stored in the end.
    pub dry_run: bool,
    /// The object as it would be stored; null when it is deleted.
    pub object: &'a Value,
    /// The object as it is stored, if it is.
    pub old: Option<&'a Value>,
}

/// How requests are judged.
#[derive(Clone, Copy)]
pub struct Rules<'a> {
    /// How exactly KEDA is imitated.
    pub compat: Compat,
    /// What is odd about a trigger, as sentences: an unknown type or parameter with the nearest known one.
    pub advice: &'a (dyn Fn(&Trigger) -> Vec<String> + Send + Sync),
}

impl std::fmt::Debug for Rules<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Rules").field("compat", &self.compat).finish_non_exhaustive()
    }
}

impl Rules<'_> {
    /// Rules that have no advice about triggers.
    pub fn of(compat: Compat) -> Self {
        Self { compat, advice: &|_| Vec::new() }
    }

    fn is_better(&self) -> bool {
        !self.compat.is_strict()
    }
}

/// What becomes of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It may go on.
    Allowed(Allowed),
    /// It may not.
    Denied(Denial),
}

/// What is said although nothing is wrong.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Allowed {
    /// Told to whoever asks.
    pub warnings: Vec<String>,
    /// Told about the object, by `keda-admission`.
    pub events: Vec<Event>,
}

/// Why a request is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Denial {
    /// HTTP code of the status.
    pub code: u16,
    /// Reason of the status.
    pub reason: &'static str,
    /// What is wrong.
    pub message: String,
    /// The label `reason` of `keda_webhook_scaled_object_validation_errors_total`; not every denial counts there.
    pub label: Option<&'static str>,
}

impl Denial {
    /// A rule is broken.
    fn of(label: &'static str, message: impl Into<String>) -> Self {
        Self { label: Some(label), ..Self::uncounted(message) }
    }

    /// A rule is broken for which there is no counter.
    fn uncounted(message: impl Into<String>) -> Self {
        Self { code: 403, reason: "Forbidden", message: message.into(), label: None }
    }

    /// Something that is needed is not there.
    fn not_found(message: impl Into<String>) -> Self {
        Self { code: 404, reason: "NotFound", ..Self::uncounted(message) }
    }

    /// An object cannot be read.
    fn unreadable(kind: Kind, error: &dyn std::fmt::Display) -> Self {
        let message = format!("failed to read the {}: {error}", kind.name());
        Self { code: 400, reason: "BadRequest", ..Self::uncounted(message) }
    }
}

/// Judges a request. The same request in the same surroundings is always answered alike: with the first rule it breaks.
pub fn review(request: &Request<'_>, around: &dyn Surroundings, rules: &Rules<'_>) -> Verdict {
    judge(request, around, rules).map_or_else(Verdict::Denied, |warnings| {
        // A dry run must leave no trace; KEDA leaves its events behind.
        let is_told = !request.dry_run || rules.compat.is_strict();
        let told = warnings.iter().filter(|_| is_told);
        let events = told.map(|warning| Event::normal(INFO, warning.clone())).collect();
        Verdict::Allowed(Allowed { warnings, events })
    })
}

/// The warnings, if it may go on.
fn judge(request: &Request<'_>, around: &dyn Surroundings, rules: &Rules<'_>) -> Result<Vec<String>, Denial> {
    if request.operation == Operation::Delete {
        return Ok(Vec::new());
    }
    match request.kind {
        Kind::ScaledObject => {
            let (object, old) = read::<ScaledObject>(request)?;
            let fewer = |old: &ObjectMeta, new: &ObjectMeta| new.finalizers.len() < old.finalizers.len();
            if old.is_some_and(|old| fewer(&old.metadata, &object.metadata) && old.spec == object.spec) {
                return Ok(Vec::new());
            }
            scaled_object::check(&object, request.dry_run, around, rules)?;
            let mut warnings = scaled_object::warnings(&object);
            warnings.extend(advice(&object.spec.triggers, &object.metadata, rules));
            Ok(warnings)
        }
        Kind::ScaledJob => {
            let (object, old) = read::<ScaledJob>(request)?;
            if old.is_some_and(|old| last(&old.metadata, &object.metadata) && old.spec == object.spec) {
                return Ok(Vec::new());
            }
            triggers::check(&object.spec.triggers)?;
            Ok(advice(&object.spec.triggers, &object.metadata, rules))
        }
        Kind::TriggerAuthentication | Kind::ClusterTriggerAuthentication => {
            let (object, old) = read::<TriggerAuthentication>(request)?;
            if old.is_some_and(|old| last(&old.metadata, &object.metadata) && old.spec == object.spec) {
                return Ok(Vec::new());
            }
            authentication::check(&object.spec, rules)?;
            Ok(authentication::warnings(request.kind, &object.spec, rules))
        }
        Kind::CloudEventSource | Kind::ClusterCloudEventSource => {
            let (object, old) = read::<CloudEventSource>(request)?;
            if old.is_some_and(|old| last(&old.metadata, &object.metadata) && old.spec == object.spec) {
                return Ok(Vec::new());
            }
            cloud_events::check(&object.spec, rules)?;
            Ok(Vec::new())
        }
    }
}

/// The object, and the stored one if it is changed.
fn read<T: DeserializeOwned>(request: &Request<'_>) -> Result<(T, Option<T>), Denial> {
    let one = |value: &Value| match value {
        Value::Object(_) => T::deserialize(value).map_err(|error| Denial::unreadable(request.kind, &error)),
        _ => Err(Denial::unreadable(request.kind, &"it is no object")),
    };
    let old = request.old.filter(|old| request.operation == Operation::Update && !old.is_null());
    Ok((one(request.object)?, old.map(one).transpose()?))
}

/// Whether the one finalizer was taken away (docs/spec/keda.md 8.2).
fn last(old: &ObjectMeta, new: &ObjectMeta) -> bool {
    old.finalizers.len() == 1 && new.finalizers.is_empty()
}

/// What KEDA does not warn about.
fn advice(triggers: &[Trigger], metadata: &ObjectMeta, rules: &Rules<'_>) -> Vec<String> {
    if rules.compat.is_strict() {
        return Vec::new();
    }
    let odd = odd_annotations::warnings(&metadata.annotations);
    triggers.iter().flat_map(rules.advice).chain(odd).collect()
}

/// Rule 4 alone: whether the bounds of a ScaledObject make sense. The operator asks again what it was not asked before.
pub fn check_bounds(object: &ScaledObject) -> Result<(), String> {
    scaled_object::bounds(object).map_err(|denial| denial.message)
}

/// Rule 7 alone: whether triggers make sense together.
pub fn check_triggers(triggers: &[Trigger]) -> Result<(), String> {
    triggers::check(triggers).map_err(|denial| denial.message)
}
