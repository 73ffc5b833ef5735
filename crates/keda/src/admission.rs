//! Validation of KEDA's objects with KEDA's texts (docs/spec/keda.md 8).
//!
//! ```text
//! request ─► finalizer only? ─► the rules of the kind, in a fixed order ─► Verdict
//!
//! cluster_view    what the rules read from the cluster
//! target          resolution of a target reference to group, version and kind
//! scaled_object   rules 1 to 6 and the warnings;  resources: rule 2;  triggers: rule 7
//! authentication  TriggerAuthentication;  url: URL validation as in Go
//! cloud_events    CloudEventSource
//! odd_annotations further warnings
//! ```
//!
//! The rules are pure: the caller reads the objects named by [`needs`] into a [`ClusterSnapshot`] first.

mod authentication;
mod cloud_events;
mod cluster_view;
mod odd_annotations;
mod resources;
mod scaled_object;
mod target;
#[cfg(test)]
mod tests;
mod triggers;
mod url;

use api::keda::{
    AdmissionBehavior, CloudEventSource, KedaProfile, ScaledJob, ScaledObject, Trigger, TriggerAuthentication,
};
use api::meta::ObjectMeta;
use api::provider::Compat;
use api::text::truncated;
use serde::de::DeserializeOwned;
use serde_json::Value;

pub use cluster_view::{AdmissionNeeds, ClusterSnapshot, ClusterView, WorkloadKind, needs};
pub use target::{Target, TargetError};

use crate::event::Event;

/// The reason of the events that repeat warnings.
pub const SCALER_INFO_REASON: &str = "KEDAScalerInfo";

/// The operation of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Create an object.
    Create,
    /// Update an object.
    Update,
    /// Delete an object; always allowed.
    Delete,
}

impl Operation {
    /// Parses the operation of an AdmissionReview; others are not supported.
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

/// Kinds with validation rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AdmissionKind {
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

impl AdmissionKind {
    /// All of them, in the order of their webhooks.
    pub const ALL: [Self; 6] = [
        Self::ScaledObject,
        Self::ScaledJob,
        Self::TriggerAuthentication,
        Self::ClusterTriggerAuthentication,
        Self::CloudEventSource,
        Self::ClusterCloudEventSource,
    ];

    /// The kind in manifests.
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

    /// Parses the name of a kind.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// An admission request.
#[derive(Clone, Copy, Debug)]
pub struct AdmissionInput<'a> {
    /// The operation.
    pub operation: Operation,
    /// The object's kind.
    pub kind: AdmissionKind,
    /// Whether it is a dry run.
    pub dry_run: bool,
    /// The new object; null for deletions.
    pub object: &'a Value,
    /// The stored object, if there is one.
    pub old: Option<&'a Value>,
}

/// Validation settings.
#[derive(Clone, Copy)]
pub struct AdmissionRules<'a> {
    /// How exactly KEDA is imitated.
    pub compat: Compat,
    /// The release of KEDA whose rules and texts apply.
    pub profile: KedaProfile,
    /// Returns warnings about a trigger, e.g. an unknown type or parameter with the nearest known one.
    pub advice: &'a (dyn Fn(&Trigger) -> Vec<String> + Send + Sync),
}

impl std::fmt::Debug for AdmissionRules<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Rules").field("compat", &self.compat).finish_non_exhaustive()
    }
}

impl AdmissionRules<'_> {
    /// Rules of the default profile without warnings about triggers.
    pub fn of(compat: Compat) -> Self {
        Self { compat, profile: KedaProfile::default(), advice: &|_| Vec::new() }
    }

    /// The same rules of another release.
    #[must_use]
    pub fn in_profile(self, profile: KedaProfile) -> Self {
        Self { profile, ..self }
    }

    fn behavior(&self) -> &'static AdmissionBehavior {
        &self.profile.behavior().admission
    }

    fn is_better(&self) -> bool {
        !self.compat.is_strict()
    }
}

/// The result of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The request is allowed.
    Allowed(Allowed),
    /// The request is denied.
    Denied(Denial),
}

/// Warnings of an allowed request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Allowed {
    /// Warnings for the client.
    pub warnings: Vec<String>,
    /// Events of the object, by `keda-admission`.
    pub events: Vec<Event>,
}

/// Why a request is denied.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Denial {
    /// HTTP code of the status.
    pub code: u16,
    /// Reason of the status.
    pub reason: &'static str,
    /// The message.
    pub message: String,
    /// The label `reason` of `keda_webhook_scaled_object_validation_errors_total`; not every denial counts there.
    pub label: Option<&'static str>,
}

impl Denial {
    /// A violated rule.
    fn of(label: &'static str, message: impl Into<String>) -> Self {
        Self { label: Some(label), ..Self::uncounted(message) }
    }

    /// A violated rule without a counter.
    fn uncounted(message: impl Into<String>) -> Self {
        Self { code: 403, reason: "Forbidden", message: message.into(), label: None }
    }

    /// A required object does not exist.
    fn not_found(message: impl Into<String>) -> Self {
        Self { code: 404, reason: "NotFound", ..Self::uncounted(message) }
    }

    /// An object cannot be decoded.
    fn unreadable(kind: AdmissionKind, error: &dyn std::fmt::Display) -> Self {
        let message = format!("failed to read the {}: {error}", kind.name());
        Self { code: 400, reason: "BadRequest", ..Self::uncounted(message) }
    }
}

/// Validates a request. The result is deterministic: the first violated rule in a fixed order.
pub fn review(request: &AdmissionInput<'_>, around: &dyn ClusterView, rules: &AdmissionRules<'_>) -> Verdict {
    judge(request, around, rules).map_or_else(Verdict::Denied, |warnings| {
        // A dry run records no events; in KEDA it does.
        let is_reported = !request.dry_run || rules.compat.is_strict();
        let reported = warnings.iter().filter(|_| is_reported);
        let events = reported.map(|warning| Event::normal(SCALER_INFO_REASON, warning.clone())).collect();
        Verdict::Allowed(Allowed { warnings, events })
    })
}

/// The warnings, if the request is allowed.
fn judge(
    request: &AdmissionInput<'_>,
    around: &dyn ClusterView,
    rules: &AdmissionRules<'_>,
) -> Result<Vec<String>, Denial> {
    if request.operation == Operation::Delete {
        return Ok(Vec::new());
    }
    match request.kind {
        AdmissionKind::ScaledObject => {
            let (object, old) = read::<ScaledObject>(request)?;
            let fewer = |old: &ObjectMeta, new: &ObjectMeta| new.finalizers.len() < old.finalizers.len();
            if old.is_some_and(|old| fewer(&old.metadata, &object.metadata) && old.spec == object.spec) {
                return Ok(Vec::new());
            }
            scaled_object::check(&object, request.dry_run, around, rules)?;
            let mut warnings = scaled_object::warnings(&object, rules);
            warnings.extend(advice(&object.spec.triggers, &object.metadata, rules));
            Ok(warnings)
        }
        AdmissionKind::ScaledJob => {
            let (object, old) = read::<ScaledJob>(request)?;
            if old.is_some_and(|old| last(&old.metadata, &object.metadata) && old.spec == object.spec) {
                return Ok(Vec::new());
            }
            triggers::check(&object.spec.triggers)?;
            Ok(advice(&object.spec.triggers, &object.metadata, rules))
        }
        AdmissionKind::TriggerAuthentication | AdmissionKind::ClusterTriggerAuthentication => {
            let (object, old) = read::<TriggerAuthentication>(request)?;
            if old.is_some_and(|old| last(&old.metadata, &object.metadata) && old.spec == object.spec) {
                return Ok(Vec::new());
            }
            authentication::check(&object.spec, rules)?;
            Ok(authentication::warnings(request.kind, &object.spec, rules))
        }
        AdmissionKind::CloudEventSource | AdmissionKind::ClusterCloudEventSource => {
            let (object, old) = read::<CloudEventSource>(request)?;
            if old.is_some_and(|old| last(&old.metadata, &object.metadata) && old.spec == object.spec) {
                return Ok(Vec::new());
            }
            cloud_events::check(&object.spec, rules)?;
            Ok(Vec::new())
        }
    }
}

/// The object, and the stored one for updates.
fn read<T: DeserializeOwned>(request: &AdmissionInput<'_>) -> Result<(T, Option<T>), Denial> {
    let one = |value: &Value| match value {
        Value::Object(_) => T::deserialize(value).map_err(|error| Denial::unreadable(request.kind, &error)),
        _ => Err(Denial::unreadable(request.kind, &"it is no object")),
    };
    let old = request.old.filter(|old| request.operation == Operation::Update && !old.is_null());
    Ok((one(request.object)?, old.map(one).transpose()?))
}

/// Whether the only finalizer was removed (docs/spec/keda.md 8.2).
fn last(old: &ObjectMeta, new: &ObjectMeta) -> bool {
    old.finalizers.len() == 1 && new.finalizers.is_empty()
}

/// Maximum number of [`advice`] of a review: each costs a search among all known names.
const MAX_ADVICE: usize = 10;

/// Maximum length of one advice, which quotes texts of the object and may become an event.
const MAX_ADVICE_CHARS: usize = 1_000;

/// Warnings that KEDA does not have.
fn advice(triggers: &[Trigger], metadata: &ObjectMeta, rules: &AdmissionRules<'_>) -> Vec<String> {
    if rules.compat.is_strict() {
        return Vec::new();
    }
    let odd = odd_annotations::warnings(&metadata.annotations);
    let all = triggers.iter().flat_map(rules.advice).chain(odd);
    all.take(MAX_ADVICE).map(|text| truncated(&text, MAX_ADVICE_CHARS)).collect()
}

/// Checks only rule 4, the bounds of a ScaledObject. The operator repeats it for objects created without the webhook.
pub fn check_bounds(object: &ScaledObject) -> Result<(), Denial> {
    scaled_object::bounds(object)
}

/// The violated rules of a ScaledObject that do not depend on a cluster, each with the field that it is about.
pub fn check_alone(object: &ScaledObject, compat: Compat) -> Vec<(&'static str, Denial)> {
    scaled_object::check_alone(object, &AdmissionRules::of(compat))
}

/// Checks only rule 7, the triggers.
pub fn check_triggers(triggers: &[Trigger]) -> Result<(), Denial> {
    triggers::check(triggers)
}
