//! What a trigger was given.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use api::keda::PodIdentity;

/// Whose trigger it is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Owner {
    /// `ScaledObject` or `ScaledJob`.
    pub kind: String,
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
}

/// What a trigger was given: everything is resolved, nothing is read from the cluster any more.
#[derive(Clone, Default)]
pub struct Trigger {
    /// Whose it is.
    pub owner: Owner,
    /// Its place in the list.
    pub index: usize,
    /// Which scaler.
    pub type_: String,
    /// Its name in formulas; may be empty.
    pub name: String,
    /// `AverageValue`, `Value`, `Utilization` or nothing.
    pub metric_type: String,
    /// Parameters as written.
    pub metadata: BTreeMap<String, String>,
    /// Parameters of its TriggerAuthentication.
    pub auth: BTreeMap<String, String>,
    /// Variables of the target's container, for parameters that end in `FromEnv`.
    pub environment: BTreeMap<String, String>,
    /// The identity of a cloud.
    pub identity: PodIdentity,
    /// Whether it feeds a formula, which has a target of its own.
    pub feeds_formula: bool,
    /// How long HTTP servers may take unless the trigger says otherwise.
    pub http_timeout: Duration,
}

impl fmt::Debug for Trigger {
    /// Without credentials.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Owner { kind, namespace, name } = &self.owner;
        write!(f, "trigger {} ({}) of {kind} {namespace}/{name}", self.index, self.type_)
    }
}

impl Trigger {
    /// `s0-name`, as the HPA knows it; characters that cannot stand in a path are replaced.
    pub fn metric_name(&self, name: &str) -> String {
        format!("s{}-{}", self.index, name.replace(['/', '.', ':', '%', '(', ')'], "-"))
    }
}
