//! Plimsoll's own API: `plimsoll.dev/v1alpha1 Autoscaler`.
//!
//! An `autoscaling/v2` manifest becomes an Autoscaler by changing `apiVersion` and `kind`; further fields
//! are added:
//!
//! ```yaml
//! apiVersion: plimsoll.dev/v1alpha1
//! kind: Autoscaler
//! metadata: {name: checkout, namespace: shop}
//! spec:
//!   scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: checkout}
//!   minReplicas: 2
//!   maxReplicas: 20
//!   replicasAggregator: average        # max (as Kubernetes does), min or average over the metrics
//!   syncPeriodSeconds: 5               # instead of the controller's own period
//!   dryRun: true                       # decide and report, but do not scale
//!   metrics:
//!   - type: Resource
//!     resource:
//!       name: cpu
//!       target: {type: Utilization, averageUtilization: 60, percentageOf: limits}
//!     onFailure: {policy: lastGood, forSeconds: 300}
//!     maxAgeSeconds: 90                # older samples count as a metric that cannot be read
//!   - type: Metric                     # any metric, wherever it is measured
//!     metric:
//!       metric: {name: queue_length}
//!       from: {current: namespace}     # pod, namespace or target; or object: {kind, name, apiVersion}
//!       target: {value: "20"}
//! ```

mod convert;
mod defaults;
mod describe;
pub mod proposal;
mod spec;
#[cfg(test)]
mod tests;
mod validation;

use serde::{Deserialize, Serialize};

pub use convert::{NotExpressible, from_v2, to_v2, v2_view};
pub use describe::describe;
pub use spec::{
    AutoscalerSpec, ContainerResourceMetricSource, FailurePolicy, MetricOrigin, MetricSource, MetricSpec,
    ResourceMetricSource, ResourceTarget,
};
pub use validation::{validate_create, validate_update};

use crate::autoscaling::v2::HorizontalPodAutoscalerStatus;
use crate::meta::ObjectMeta;
use crate::wire::nullable;

/// The group.
pub const GROUP: &str = "plimsoll.dev";
/// Group and version.
pub const API_VERSION: &str = "plimsoll.dev/v1alpha1";
/// The kind.
pub const KIND: &str = "Autoscaler";

/// Metric source type that v2 does not have: a metric by name, of the object that `from` names.
pub const METRIC: &str = "Metric";

/// Scales a workload between two bounds so that its metrics meet their targets.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Autoscaler {
    /// `Autoscaler`.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// `plimsoll.dev/v1alpha1`.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "String::is_empty")]
    pub api_version: String,
    /// Name, namespace, labels and the like.
    #[serde(deserialize_with = "nullable")]
    pub metadata: ObjectMeta,
    /// Desired state.
    #[serde(deserialize_with = "nullable")]
    pub spec: AutoscalerSpec,
    /// Current status, as in `autoscaling/v2`.
    #[serde(deserialize_with = "nullable")]
    pub status: HorizontalPodAutoscalerStatus,
}
