//! The settings of a scenario on which deliberate differences depend.

use serde::{Deserialize, Serialize};

/// The current settings of a scenario on which deliberate differences depend.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct KedaFacts {
    pub(crate) fallback: Option<FallbackFacts>,
    /// A source does not return its metric specs, or no server listens at its address.
    pub(crate) silent: bool,
    /// The target of the formula is no whole number.
    pub(crate) fractional: bool,
    /// The HPA has the name of an HPA that a user created.
    pub(crate) foreign: bool,
    /// The spec is invalid.
    pub(crate) invalid: bool,
    /// The replicas to which a target is activated.
    pub(crate) wakes_to: i64,
    /// A Secret or a TriggerAuthentication of a trigger is missing.
    pub(crate) gone: bool,
}

/// The fallback of a spec.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FallbackFacts {
    pub(crate) replicas: i64,
    pub(crate) behavior: Option<String>,
}
