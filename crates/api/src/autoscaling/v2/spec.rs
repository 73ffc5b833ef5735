//! The spec: bounds, metrics with targets, behavior.

use quantity::Quantity;
use serde::{Deserialize, Serialize};

use crate::selector::LabelSelector;
use crate::wire::{is_empty_list, nullable};

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

/// Names another object in the same namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct CrossVersionObjectReference {
    /// Its kind.
    #[serde(deserialize_with = "nullable")]
    pub kind: String,
    /// Its name.
    #[serde(deserialize_with = "nullable")]
    pub name: String,
    /// Its group and version.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "String::is_empty")]
    pub api_version: String,
}

/// One metric and its target; `type` selects the source.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct MetricSpec {
    /// `Object`, `Pods`, `Resource`, `ContainerResource` or `External`.
    #[serde(rename = "type", deserialize_with = "nullable")]
    pub type_: String,
    /// A metric describing one other object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub object: Option<ObjectMetricSource>,
    /// A metric describing each pod of the target.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pods: Option<PodsMetricSource>,
    /// A resource the pods request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource: Option<ResourceMetricSource>,
    /// A resource one container of each pod requests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub container_resource: Option<ContainerResourceMetricSource>,
    /// A metric not tied to any object of the cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub external: Option<ExternalMetricSource>,
}

/// A metric describing one other object.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ObjectMetricSource {
    /// The object.
    #[serde(deserialize_with = "nullable")]
    pub described_object: CrossVersionObjectReference,
    /// Target.
    #[serde(deserialize_with = "nullable")]
    pub target: MetricTarget,
    /// The metric's name and selector.
    #[serde(deserialize_with = "nullable")]
    pub metric: MetricIdentifier,
}

/// A metric describing each pod of the target.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PodsMetricSource {
    /// The metric's name and selector.
    #[serde(deserialize_with = "nullable")]
    pub metric: MetricIdentifier,
    /// Target.
    #[serde(deserialize_with = "nullable")]
    pub target: MetricTarget,
}

/// A resource the pods request.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ResourceMetricSource {
    /// The resource, e.g. `cpu`.
    #[serde(deserialize_with = "nullable")]
    pub name: String,
    /// Target.
    #[serde(deserialize_with = "nullable")]
    pub target: MetricTarget,
}

/// A resource one container of each pod requests.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ContainerResourceMetricSource {
    /// The resource, e.g. `cpu`.
    #[serde(deserialize_with = "nullable")]
    pub name: String,
    /// Target.
    #[serde(deserialize_with = "nullable")]
    pub target: MetricTarget,
    /// The container's name.
    #[serde(deserialize_with = "nullable")]
    pub container: String,
}

/// A metric not tied to any object of the cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ExternalMetricSource {
    /// The metric's name and selector.
    #[serde(deserialize_with = "nullable")]
    pub metric: MetricIdentifier,
    /// Target.
    #[serde(deserialize_with = "nullable")]
    pub target: MetricTarget,
}

/// A metric name and a selector of its series.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct MetricIdentifier {
    /// The metric's name.
    #[serde(deserialize_with = "nullable")]
    pub name: String,
    /// Which series; absent means the metric as such.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub selector: Option<LabelSelector>,
}

/// What a metric should be.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct MetricTarget {
    /// `Utilization`, `Value` or `AverageValue`.
    #[serde(rename = "type", deserialize_with = "nullable")]
    pub type_: String,
    /// The total.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<Quantity>,
    /// The average over the pods.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub average_value: Option<Quantity>,
    /// The average over the pods in percent of their requests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub average_utilization: Option<i32>,
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
    /// Limits on the change per period. An empty list differs from an absent one: it is not defaulted.
    #[serde(skip_serializing_if = "is_empty_list")]
    pub policies: Option<Vec<HPAScalingPolicy>>,
    /// Tolerance.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tolerance: Option<Quantity>,
}

/// One limit on the change per period.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct HPAScalingPolicy {
    /// `Pods` or `Percent`.
    #[serde(rename = "type", deserialize_with = "nullable")]
    pub type_: String,
    /// Number of pods, or percentage.
    #[serde(deserialize_with = "nullable")]
    pub value: i32,
    /// The period.
    #[serde(deserialize_with = "nullable")]
    pub period_seconds: i32,
}
