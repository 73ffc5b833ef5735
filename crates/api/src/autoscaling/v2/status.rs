//! The status.

use jiff::Timestamp;
use quantity::Quantity;
use serde::{Deserialize, Serialize};

use super::spec::{CrossVersionObjectReference, MetricIdentifier};
use crate::wire::{is_zero, nullable};

/// Current status.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct HorizontalPodAutoscalerStatus {
    /// The `metadata.generation` that the controller has seen; set since Kubernetes 1.37.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Time of the last scale.
    #[serde(with = "crate::instant", skip_serializing_if = "Option::is_none")]
    pub last_scale_time: Option<Timestamp>,
    /// Current replicas.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "is_zero")]
    pub current_replicas: i32,
    /// Desired replicas.
    #[serde(deserialize_with = "nullable")]
    pub desired_replicas: i32,
    /// Current metrics, by position in the spec; always written, `null` when there are none.
    pub current_metrics: Option<Vec<MetricStatus>>,
    /// Conditions.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<HorizontalPodAutoscalerCondition>,
}

/// One condition.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct HorizontalPodAutoscalerCondition {
    /// `AbleToScale`, `ScalingActive`, `ScalingLimited` or `ScaledToZero`.
    #[serde(rename = "type", deserialize_with = "nullable")]
    pub type_: String,
    /// `True`, `False` or `Unknown`.
    #[serde(deserialize_with = "nullable")]
    pub status: String,
    /// When the status last changed; `null` when never.
    #[serde(with = "crate::instant")]
    pub last_transition_time: Option<Timestamp>,
    /// Reason in CamelCase.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Message for people.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// Exists since Kubernetes 1.37; the controller never sets it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
}

/// Current value of one metric; an empty `type` means that it could not be read.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct MetricStatus {
    /// As in the spec, or empty.
    #[serde(rename = "type", deserialize_with = "nullable")]
    pub type_: String,
    /// A metric describing one other object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub object: Option<ObjectMetricStatus>,
    /// A metric describing each pod.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pods: Option<PodsMetricStatus>,
    /// A resource the pods request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource: Option<ResourceMetricStatus>,
    /// A resource one container of each pod requests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub container_resource: Option<ContainerResourceMetricStatus>,
    /// A metric from outside the cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub external: Option<ExternalMetricStatus>,
}

/// Current value of a metric of another object.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ObjectMetricStatus {
    /// The metric's name and selector.
    #[serde(deserialize_with = "nullable")]
    pub metric: MetricIdentifier,
    /// Its value.
    #[serde(deserialize_with = "nullable")]
    pub current: MetricValueStatus,
    /// The object.
    #[serde(deserialize_with = "nullable")]
    pub described_object: CrossVersionObjectReference,
}

/// Current value of a metric of each pod.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PodsMetricStatus {
    /// The metric's name and selector.
    #[serde(deserialize_with = "nullable")]
    pub metric: MetricIdentifier,
    /// Its value.
    #[serde(deserialize_with = "nullable")]
    pub current: MetricValueStatus,
}

/// Current usage of a resource.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ResourceMetricStatus {
    /// The resource.
    #[serde(deserialize_with = "nullable")]
    pub name: String,
    /// Current usage.
    #[serde(deserialize_with = "nullable")]
    pub current: MetricValueStatus,
}

/// Current usage of a resource by one container.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ContainerResourceMetricStatus {
    /// The resource.
    #[serde(deserialize_with = "nullable")]
    pub name: String,
    /// Current usage.
    #[serde(deserialize_with = "nullable")]
    pub current: MetricValueStatus,
    /// The container's name.
    #[serde(deserialize_with = "nullable")]
    pub container: String,
}

/// Current value of a metric from outside the cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ExternalMetricStatus {
    /// The metric's name and selector.
    #[serde(deserialize_with = "nullable")]
    pub metric: MetricIdentifier,
    /// Its value.
    #[serde(deserialize_with = "nullable")]
    pub current: MetricValueStatus,
}

/// A value in the forms a target can have.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct MetricValueStatus {
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
