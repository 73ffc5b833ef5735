//! One event source of a ScaledObject or ScaledJob.

use serde::{Deserialize, Serialize};

use crate::map::StringMap;
use crate::wire::nullable;

/// One event source; its place in the list is part of the names of its metrics.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Trigger {
    /// Which scaler.
    #[serde(rename = "type", deserialize_with = "nullable")]
    pub type_: String,
    /// Its name in formulas.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Answer the HPA with what the last round found.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "std::ops::Not::not")]
    pub use_cached_metrics: bool,
    /// The scaler's parameters.
    #[serde(deserialize_with = "nullable")]
    pub metadata: StringMap,
    /// Where credentials are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub authentication_ref: Option<AuthenticationRef>,
    /// `AverageValue`, `Value` or `Utilization`.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "String::is_empty")]
    pub metric_type: String,
}

impl Trigger {
    /// Whether its numbers come from metrics-server and not from us.
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
