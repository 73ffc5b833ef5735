//! `autoscaling/v2beta1`: metrics in flat shapes, no behavior (docs/spec/hpa.md 1.7, 1.9).
//!
//! The flat shapes are also what v1 carries in its annotations.

mod spec;
mod status;

use serde::{Deserialize, Serialize};

pub use spec::{
    ContainerResourceMetricSource, ExternalMetricSource, HorizontalPodAutoscalerSpec, MetricSpec,
    ObjectMetricSource, PodsMetricSource, ResourceMetricSource,
};
pub use status::{
    ContainerResourceMetricStatus, ExternalMetricStatus, HorizontalPodAutoscalerStatus, MetricStatus,
    ObjectMetricStatus, PodsMetricStatus, ResourceMetricStatus,
};

pub use super::v2::{CrossVersionObjectReference, HorizontalPodAutoscalerCondition};
use crate::meta::ObjectMeta;
use crate::wire::nullable;

/// Group and version.
pub const API_VERSION: &str = "autoscaling/v2beta1";

/// Scales a workload between two bounds so that its metrics meet their targets.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct HorizontalPodAutoscaler {
    /// `HorizontalPodAutoscaler`.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// `autoscaling/v2beta1`.
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
