//! The spec.

use quantity::Quantity;
use serde::{Deserialize, Serialize};

use super::CrossVersionObjectReference;
use crate::selector::LabelSelector;
use crate::wire::nullable;

/// Bounds and metrics.
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
    pub target: CrossVersionObjectReference,
    /// The metric's name.
    #[serde(deserialize_with = "nullable")]
    pub metric_name: String,
    /// Target for the total; zero if only an average target is set.
    #[serde(deserialize_with = "nullable")]
    pub target_value: Quantity,
    /// Which series.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub selector: Option<LabelSelector>,
    /// Target per pod.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub average_value: Option<Quantity>,
}

/// A metric describing each pod of the target.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PodsMetricSource {
    /// The metric's name.
    #[serde(deserialize_with = "nullable")]
    pub metric_name: String,
    /// Target for the average over the pods.
    #[serde(deserialize_with = "nullable")]
    pub target_average_value: Quantity,
    /// Which series.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub selector: Option<LabelSelector>,
}

/// A resource the pods request.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ResourceMetricSource {
    /// The resource, e.g. `cpu`.
    #[serde(deserialize_with = "nullable")]
    pub name: String,
    /// The average over the pods in percent of their requests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target_average_utilization: Option<i32>,
    /// The average over the pods.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target_average_value: Option<Quantity>,
}

/// A resource one container of each pod requests.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ContainerResourceMetricSource {
    /// The resource, e.g. `cpu`.
    #[serde(deserialize_with = "nullable")]
    pub name: String,
    /// The average over the pods in percent of their requests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target_average_utilization: Option<i32>,
    /// The average over the pods.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target_average_value: Option<Quantity>,
    /// The container's name.
    #[serde(deserialize_with = "nullable")]
    pub container: String,
}

/// A metric not tied to any object of the cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ExternalMetricSource {
    /// The metric's name.
    #[serde(deserialize_with = "nullable")]
    pub metric_name: String,
    /// Which series.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metric_selector: Option<LabelSelector>,
    /// Target for the total.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target_value: Option<Quantity>,
    /// Target per pod.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target_average_value: Option<Quantity>,
}
