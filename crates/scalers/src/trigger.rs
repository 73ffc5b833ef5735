//! The resolved trigger.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use api::keda::{KedaProfile, PodIdentity, TriggerBehavior};

/// The object that a trigger belongs to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Owner {
    /// `ScaledObject` or `ScaledJob`.
    pub kind: String,
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
}

/// A trigger with all references resolved: nothing is read from the cluster later.
#[derive(Clone, Default)]
pub struct Trigger {
    /// The object it belongs to.
    pub owner: Owner,
    /// Its index in the list of triggers.
    pub index: usize,
    /// The scaler type.
    pub type_: String,
    /// Its name in formulas; may be empty.
    pub name: String,
    /// `AverageValue`, `Value`, `Utilization` or nothing.
    pub metric_type: String,
    /// Its metadata.
    pub metadata: BTreeMap<String, String>,
    /// Parameters of its TriggerAuthentication.
    pub auth: BTreeMap<String, String>,
    /// Environment variables of the target's container, for keys that end in `FromEnv`.
    pub environment: BTreeMap<String, String>,
    /// Pod identity.
    pub identity: PodIdentity,
    /// Whether it is part of a formula, which has its own target.
    pub feeds_formula: bool,
    /// Default timeout of HTTP requests.
    pub http_timeout: Duration,
    /// The release of KEDA whose parameters are read.
    pub profile: KedaProfile,
}

impl fmt::Debug for Trigger {
    /// Prints no credentials.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Owner { kind, namespace, name } = &self.owner;
        write!(f, "trigger {} ({}) of {kind} {namespace}/{name}", self.index, self.type_)
    }
}

impl Trigger {
    /// What the release of KEDA does where releases differ.
    pub(crate) fn behavior(&self) -> &'static TriggerBehavior {
        &self.profile.behavior().triggers
    }

    /// The metric name `s0-name` for the HPA; characters that are invalid in a URL path are replaced.
    pub fn metric_name(&self, name: &str) -> String {
        format!("s{}-{}", self.index, name.replace(['/', '.', ':', '%', '(', ')'], "-"))
    }
}
