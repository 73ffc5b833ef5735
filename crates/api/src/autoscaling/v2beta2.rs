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
    /// What is wanted.
    #[serde(deserialize_with = "nullable")]
    pub spec: HorizontalPodAutoscalerSpec,
    /// What was last seen and decided.
    #[serde(deserialize_with = "nullable")]
    pub status: HorizontalPodAutoscalerStatus,
}

/// Bounds, metrics and behavior.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct HorizontalPodAutoscalerSpec {
    /// The object whose scale is driven.
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
    /// Rates and stabilization in both directions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub behavior: Option<HorizontalPodAutoscalerBehavior>,
}

/// Rates and stabilization in both directions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct HorizontalPodAutoscalerBehavior {
    /// Rules for growing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scale_up: Option<HPAScalingRules>,
    /// Rules for shrinking.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scale_down: Option<HPAScalingRules>,
}

/// Rules for one direction.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct HPAScalingRules {
    /// How long past recommendations still count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stabilization_window_seconds: Option<i32>,
    /// Which policy counts: `Max`, `Min` or `Disabled`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub select_policy: Option<String>,
    /// Limits on the change per period; an empty list is not defaulted.
    #[serde(skip_serializing_if = "is_empty_list")]
    pub policies: Option<Vec<HPAScalingPolicy>>,
}

/// What was last seen and decided.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct HorizontalPodAutoscalerStatus {
    /// Exists in the schema; the controller never sets it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// When the number of replicas was last changed.
    #[serde(with = "crate::instant", skip_serializing_if = "Option::is_none")]
    pub last_scale_time: Option<Timestamp>,
    /// The replicas last seen.
    #[serde(deserialize_with = "nullable")]
    pub current_replicas: i32,
    /// The replicas last decided on.
    #[serde(deserialize_with = "nullable")]
    pub desired_replicas: i32,
    /// The metrics last seen; always written, `null` when there are none.
    pub current_metrics: Option<Vec<MetricStatus>>,
    /// What the autoscaler can and cannot do; always written, `null` when there are none.
    pub conditions: Option<Vec<HorizontalPodAutoscalerCondition>>,
}
