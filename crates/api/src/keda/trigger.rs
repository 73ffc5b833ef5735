//! One trigger of a ScaledObject or ScaledJob.

use serde::{Deserialize, Serialize};

use crate::map::StringMap;
use crate::wire::nullable;

/// One trigger. Its index in the list is part of the names of its metrics.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Trigger {
    /// Scaler type.
    #[serde(rename = "type", deserialize_with = "nullable")]
    pub type_: String,
    /// Its name in formulas.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Whether the HPA gets the cached values of the last poll.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "std::ops::Not::not")]
    pub use_cached_metrics: bool,
    /// The scaler's parameters.
    #[serde(deserialize_with = "nullable")]
    pub metadata: StringMap,
    /// Source of credentials.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub authentication_ref: Option<AuthenticationRef>,
    /// `AverageValue`, `Value` or `Utilization`.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "String::is_empty")]
    pub metric_type: String,
}

impl Trigger {
    /// Whether the HPA reads its metric from the resource metrics API (`cpu`, `memory`).
    pub fn is_resource(&self) -> bool {
        matches!(self.type_.as_str(), "cpu" | "memory")
    }
}

/// Names a TriggerAuthentication or ClusterTriggerAuthentication.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct AuthenticationRef {
    /// Its name.
    #[serde(deserialize_with = "nullable")]
    pub name: String,
    /// Its kind; empty means TriggerAuthentication.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "String::is_empty")]
    pub kind: String,
}
