//! `autoscaling/v2`, the version all others are converted through (docs/spec/hpa.md 1.2).

mod spec;
mod status;

use serde::{Deserialize, Serialize};

pub use spec::{
    ContainerResourceMetricSource, CrossVersionObjectReference, ExternalMetricSource, HPAScalingPolicy,
    HPAScalingRules, HorizontalPodAutoscalerBehavior, HorizontalPodAutoscalerSpec, MetricIdentifier,
    MetricSpec, MetricTarget, ObjectMetricSource, PodsMetricSource, ResourceMetricSource,
};
pub use status::{
    ContainerResourceMetricStatus, ExternalMetricStatus, HorizontalPodAutoscalerCondition,
    HorizontalPodAutoscalerStatus, MetricStatus, MetricValueStatus, ObjectMetricStatus, PodsMetricStatus,
    ResourceMetricStatus,
};

use crate::meta::ObjectMeta;
use crate::wire::nullable;

/// Group and version.
pub const API_VERSION: &str = "autoscaling/v2";

/// Metric source types.
pub const OBJECT: &str = "Object";
/// A metric of each pod of the target.
pub const PODS: &str = "Pods";
/// A resource the pods request.
pub const RESOURCE: &str = "Resource";
/// A resource one container of each pod requests.
pub const CONTAINER_RESOURCE: &str = "ContainerResource";
/// A metric from outside the cluster.
pub const EXTERNAL: &str = "External";

/// Target type: percentage of the request.
pub const UTILIZATION: &str = "Utilization";
/// Target type: the total.
pub const VALUE: &str = "Value";
/// Target type: per pod.
pub const AVERAGE_VALUE: &str = "AverageValue";

/// Scales a workload between two bounds so that its metrics meet their targets.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct HorizontalPodAutoscaler {
    /// `HorizontalPodAutoscaler`.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// `autoscaling/v2`.
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
