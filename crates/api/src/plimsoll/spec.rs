//! The spec: that of v2 and further fields.

use quantity::Quantity;
use serde::{Deserialize, Serialize};

use crate::autoscaling::v2::{
    CrossVersionObjectReference, ExternalMetricSource, HorizontalPodAutoscalerBehavior, MetricIdentifier,
    MetricTarget, ObjectMetricSource, PodsMetricSource,
};
use crate::wire::nullable;

/// Bounds, metrics, behavior and how they are combined.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct AutoscalerSpec {
    /// Scale target.
    #[serde(deserialize_with = "nullable")]
    pub scale_target_ref: CrossVersionObjectReference,
    /// Lower bound; absent means 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_replicas: Option<i32>,
    /// Upper bound.
    #[serde(deserialize_with = "nullable")]
    pub max_replicas: i32,
    /// The metrics.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "Vec::is_empty")]
    pub metrics: Vec<MetricSpec>,
    /// Scaling rules of both directions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub behavior: Option<HorizontalPodAutoscalerBehavior>,
    /// How the proposals of several metrics are combined: `max` (the default), `min` or `average`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replicas_aggregator: Option<String>,
    /// Time between two decisions; absent means the controller's own period.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sync_period_seconds: Option<i32>,
    /// Decide and report, but do not scale.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
}

/// One metric and its target; `type` selects the source.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct MetricSpec {
    /// `Object`, `Pods`, `Resource`, `ContainerResource` or `External` as in v2, or `Metric`.
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
    /// A metric by name, of the object that its `from` names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metric: Option<MetricSource>,
    /// What to do when the metric cannot be read; absent means the Kubernetes rule: other metrics may
    /// scale up, and nothing scales down.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_failure: Option<FailurePolicy>,
    /// Samples that are older count as if the metric could not be read; absent means that any age is accepted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_age_seconds: Option<i32>,
    /// How the series of an External metric become one value: `sum` (the default), `max`, `min` or `average`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub series_aggregator: Option<String>,
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
    pub target: ResourceTarget,
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
    pub target: ResourceTarget,
    /// The container's name.
    #[serde(deserialize_with = "nullable")]
    pub container: String,
}

/// Target of a resource.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ResourceTarget {
    /// `Utilization`, `Value` or `AverageValue`.
    #[serde(rename = "type", deserialize_with = "nullable")]
    pub type_: String,
    /// The total; v2 accepts but ignores it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<Quantity>,
    /// The average over the pods.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub average_value: Option<Quantity>,
    /// The average over the pods in percent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub average_utilization: Option<i32>,
    /// What `averageUtilization` is a percentage of: the pods' `requests` (the default) or their `limits`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub percentage_of: Option<String>,
}

/// A metric by name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct MetricSource {
    /// The metric's name and selector.
    #[serde(deserialize_with = "nullable")]
    pub metric: MetricIdentifier,
    /// Where it is measured; absent means each pod of the target.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<MetricOrigin>,
    /// Target; its type follows from the value that is set.
    #[serde(deserialize_with = "nullable")]
    pub target: MetricTarget,
}

/// Which object a metric describes: one named by its role, or any other of the namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct MetricOrigin {
    /// `pod`: each pod of the target; `namespace`: the autoscaler's own; `target`: the object that is scaled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub current: Option<String>,
    /// Another object of the namespace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub object: Option<CrossVersionObjectReference>,
}

/// What to do while a metric cannot be read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct FailurePolicy {
    /// `hold`: do not scale at all; `ignore`: ignore the metric; `lastGood`: use its last proposal for
    /// some time; `static`: propose a fixed number of replicas.
    #[serde(deserialize_with = "nullable")]
    pub policy: String,
    /// How long the last good proposal is used; only with `lastGood`. After that the Kubernetes rule applies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub for_seconds: Option<i32>,
    /// The proposed replicas; only with `static`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,
}
