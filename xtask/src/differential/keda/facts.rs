//! What the script of a scenario asks for, as far as deliberate differences depend on it.

use serde::{Deserialize, Serialize};

/// What the script asks for at this moment, as far as deliberate differences depend on it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct KedaFacts {
    pub(crate) fallback: Option<FallbackFacts>,
    /// A source does not answer which metrics it has, or nothing listens at its address.
    pub(crate) silent: bool,
    /// The target of the formula is no whole number.
    pub(crate) fractional: bool,
    /// Its HPA has the name of an HPA that a user created.
    pub(crate) foreign: bool,
    /// The spec is invalid.
    pub(crate) invalid: bool,
    /// The replicas to which a target is activated.
    pub(crate) wakes_to: i64,
    /// A Secret or a TriggerAuthentication that a trigger uses is not there.
    pub(crate) gone: bool,
}

/// The fallback of a spec.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FallbackFacts {
    pub(crate) replicas: i64,
    pub(crate) behavior: Option<String>,
}
