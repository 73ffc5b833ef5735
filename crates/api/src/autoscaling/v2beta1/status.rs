//! The status.

use jiff::Timestamp;
use quantity::Quantity;
use serde::{Deserialize, Serialize};

use super::{CrossVersionObjectReference, HorizontalPodAutoscalerCondition};
use crate::selector::LabelSelector;
use crate::wire::nullable;

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

/// Current value of one metric.
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
    /// The object.
    #[serde(deserialize_with = "nullable")]
    pub target: CrossVersionObjectReference,
    /// The metric's name.
    #[serde(deserialize_with = "nullable")]
    pub metric_name: String,
    /// The total.
    #[serde(deserialize_with = "nullable")]
    pub current_value: Quantity,
    /// Which series.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub selector: Option<LabelSelector>,
    /// The value per pod.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub average_value: Option<Quantity>,
}

/// Current value of a metric of each pod.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PodsMetricStatus {
    /// The metric's name.
    #[serde(deserialize_with = "nullable")]
    pub metric_name: String,
    /// The average over the pods.
    #[serde(deserialize_with = "nullable")]
    pub current_average_value: Quantity,
    /// Which series.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub selector: Option<LabelSelector>,
}

/// Current usage of a resource.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ResourceMetricStatus {
    /// The resource.
    #[serde(deserialize_with = "nullable")]
    pub name: String,
    /// The average over the pods in percent of their requests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub current_average_utilization: Option<i32>,
    /// The average over the pods.
    #[serde(deserialize_with = "nullable")]
    pub current_average_value: Quantity,
}

/// Current usage of a resource by one container.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ContainerResourceMetricStatus {
    /// The resource.
    #[serde(deserialize_with = "nullable")]
    pub name: String,
    /// The average over the pods in percent of their requests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub current_average_utilization: Option<i32>,
    /// The average over the pods.
    #[serde(deserialize_with = "nullable")]
    pub current_average_value: Quantity,
    /// The container's name.
    #[serde(deserialize_with = "nullable")]
    pub container: String,
}

/// Current value of a metric from outside the cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ExternalMetricStatus {
    /// The metric's name.
    #[serde(deserialize_with = "nullable")]
    pub metric_name: String,
    /// Which series.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metric_selector: Option<LabelSelector>,
    /// The total.
    #[serde(deserialize_with = "nullable")]
    pub current_value: Quantity,
    /// The value per pod.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub current_average_value: Option<Quantity>,
}
