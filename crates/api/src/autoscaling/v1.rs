//! `autoscaling/v1`: CPU only; everything else is stored in annotations (docs/spec/hpa.md 1.6).

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

pub use super::v2::CrossVersionObjectReference;
use crate::meta::ObjectMeta;
use crate::wire::nullable;

/// Group and version.
pub const API_VERSION: &str = "autoscaling/v1";

/// Scales a workload between two bounds by its CPU utilization.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct HorizontalPodAutoscaler {
    /// `HorizontalPodAutoscaler`.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// `autoscaling/v1`.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "String::is_empty")]
    pub api_version: String,
    /// Name, namespace, labels and the like.
    #[serde(deserialize_with = "nullable")]
    pub metadata: ObjectMeta,
    /// Desired state.
    #[serde(deserialize_with = "nullable")]
    pub spec: HorizontalPodAutoscalerSpec,
    /// Current status.
    #[serde(deserialize_with = "nullable")]
    pub status: HorizontalPodAutoscalerStatus,
}

/// Bounds and the CPU target.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct HorizontalPodAutoscalerSpec {
    /// Scale target.
    #[serde(deserialize_with = "nullable")]
    pub scale_target_ref: CrossVersionObjectReference,
    /// Lower bound; absent means 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_replicas: Option<i32>,
    /// Upper bound.
    #[serde(deserialize_with = "nullable")]
    pub max_replicas: i32,
    /// Average CPU usage of the pods in percent of their requests.
    #[serde(rename = "targetCPUUtilizationPercentage", skip_serializing_if = "Option::is_none")]
    pub target_cpu_utilization_percentage: Option<i32>,
}

/// Current status.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct HorizontalPodAutoscalerStatus {
    /// Exists in the schema; the controller never sets it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Time of the last scale.
    #[serde(with = "crate::instant", skip_serializing_if = "Option::is_none")]
    pub last_scale_time: Option<Timestamp>,
    /// Current replicas.
    #[serde(deserialize_with = "nullable")]
    pub current_replicas: i32,
    /// Desired replicas.
    #[serde(deserialize_with = "nullable")]
    pub desired_replicas: i32,
    /// Average CPU usage in percent of the requests.
    #[serde(rename = "currentCPUUtilizationPercentage", skip_serializing_if = "Option::is_none")]
    pub current_cpu_utilization_percentage: Option<i32>,
}
