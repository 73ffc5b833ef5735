//! `autoscaling/v2beta2`: v2 without tolerance (docs/spec/hpa.md 1.9).

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

pub use super::v2::{
    CrossVersionObjectReference, HPAScalingPolicy, HorizontalPodAutoscalerCondition, MetricSpec, MetricStatus,
};
use crate::meta::ObjectMeta;
use crate::wire::{is_empty_list, nullable};

/// Group and version.
pub const API_VERSION: &str = "autoscaling/v2beta2";

/// Scales a workload between two bounds so that its metrics meet their targets.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct HorizontalPodAutoscaler {
    /// `HorizontalPodAutoscaler`.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// `autoscaling/v2beta2`.
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

/// Bounds, metrics and behavior.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
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
    /// The metrics; the highest proposal wins.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "Vec::is_empty")]
    pub metrics: Vec<MetricSpec>,
    /// Scaling rules of both directions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub behavior: Option<HorizontalPodAutoscalerBehavior>,
}

/// Scaling rules of both directions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct HorizontalPodAutoscalerBehavior {
    /// Scale-up rules.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scale_up: Option<HPAScalingRules>,
    /// Scale-down rules.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scale_down: Option<HPAScalingRules>,
}

/// Scaling rules of one direction.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct HPAScalingRules {
    /// Stabilization window.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stabilization_window_seconds: Option<i32>,
    /// How policies are combined: `Max`, `Min` or `Disabled`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub select_policy: Option<String>,
    /// Limits on the change per period; an empty list is not defaulted.
    #[serde(skip_serializing_if = "is_empty_list")]
    pub policies: Option<Vec<HPAScalingPolicy>>,
}

/// Current status.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
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
    /// Current metrics; always written, `null` when there are none.
    pub current_metrics: Option<Vec<MetricStatus>>,
    /// Conditions; always written, `null` when there are none.
    pub conditions: Option<Vec<HorizontalPodAutoscalerCondition>>,
}
