//! The validated spec of one autoscaler. The API types are converted into it once, so no field can be half set.

use jiff::SignedDuration;
use serde::{Deserialize, Serialize};

use crate::config::ControllerConfig;
use crate::error::RecordedError;
use crate::units::{MilliValue, Replicas};

/// The spec of one autoscaler, independent of the API that it came from.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Spec {
    /// Namespace of the autoscaler and of its target.
    pub namespace: String,
    /// Name of the autoscaler.
    pub name: String,
    /// The scale target.
    pub target: TargetRef,
    /// Lower bound of replicas.
    pub min: Replicas,
    /// Upper bound of replicas.
    pub max: Replicas,
    /// Metrics in the order of the object.
    pub metrics: Vec<Metric>,
    /// Scaling rules; absent means the default limits of docs/spec/hpa.md 6.2.
    pub behavior: Option<Behavior>,
    /// How proposals of several metrics are combined.
    #[serde(default)]
    pub aggregator: Aggregator,
    /// Whether the lower bound can be zero without the gate `HPAScaleToZero`, as in the API of Autoscalers.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub zero_without_gate: bool,
}

/// The object that is scaled.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TargetRef {
    /// Kind, as the user wrote it.
    pub kind: String,
    /// Name.
    pub name: String,
}

/// One metric and its target.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Metric {
    /// Source of the samples.
    pub source: MetricSource,
    /// Target.
    #[serde(rename = "goal")]
    pub target: MetricTarget,
    /// What to do while the metric cannot be read.
    #[serde(default)]
    pub on_failure: FailurePolicy,
    /// Samples that are older count as failed; absent: any age is accepted, as in Kubernetes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_age: Option<SignedDuration>,
    /// How the series of an External metric are combined.
    #[serde(default, skip_serializing_if = "SeriesAggregator::is_sum")]
    pub series: SeriesAggregator,
}

/// Source of a metric's samples.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum MetricSource {
    /// A resource of whole pods.
    Resource {
        /// `cpu`, `memory`, …
        name: String,
        /// Base of utilization percentages.
        #[serde(default)]
        of: UtilizationBase,
    },
    /// A resource of one container in each pod.
    ContainerResource {
        /// `cpu`, `memory`, …
        name: String,
        /// Container.
        container: String,
        /// Base of utilization percentages.
        #[serde(default)]
        of: UtilizationBase,
    },
    /// A custom metric of each pod.
    Pods(MetricId),
    /// A custom metric of one object.
    Object {
        /// Kind of the object, as the user wrote it.
        kind: String,
        /// Name of the object.
        name: String,
        /// `group/version` of the object, where given.
        api_version: Option<String>,
        /// The metric.
        metric: MetricId,
    },
    /// A metric from outside the cluster.
    External(MetricId),
    /// An unknown type; only objects that were stored without validation have one.
    Unknown(String),
}

/// A named metric with an optional selector of series.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MetricId {
    /// Metric name.
    pub name: String,
    /// The selector as messages show it: `nil` or Go's formatting of the object.
    pub shown_selector: String,
    /// The selector in query syntax, or its error.
    pub selector: Result<String, RecordedError>,
}

/// Target of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum MetricTarget {
    /// Average utilization in percent.
    Utilization(i32),
    /// Average over pods.
    AverageValue(MilliValue),
    /// Total value.
    Value(MilliValue),
    /// No usable target is set. This occurs in objects that were stored without validation, and in Object metrics
    /// whose target type and field differ.
    Missing,
}

/// Base of utilization percentages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum UtilizationBase {
    /// Container requests, as in Kubernetes.
    #[default]
    Requests,
    /// Container limits.
    Limits,
}

/// How proposals of several metrics are combined.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Aggregator {
    /// The highest wins, as in Kubernetes.
    #[default]
    Max,
    /// The lowest wins.
    Min,
    /// The mean, rounded up.
    Average,
}

/// How the series of an External metric become one value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum SeriesAggregator {
    /// Their sum, as in Kubernetes.
    #[default]
    Sum,
    /// The largest.
    Max,
    /// The smallest.
    Min,
    /// Their mean, rounded up to a thousandth.
    Average,
}

impl SeriesAggregator {
    /// Whether this is the rule of Kubernetes.
    pub fn is_sum(&self) -> bool {
        *self == Self::Sum
    }
}

/// What a metric proposes while it cannot be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum FailurePolicy {
    /// The Kubernetes rule: other metrics may scale up, none may scale down.
    #[default]
    Kubernetes,
    /// The replica count is kept, whatever other metrics propose.
    Hold,
    /// The metric is ignored.
    Ignore,
    /// The last proposal is used for this long, then the Kubernetes rule applies.
    LastGood(SignedDuration),
    /// The metric proposes this many replicas.
    Static(Replicas),
}

/// Scaling rules of both directions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Behavior {
    /// Scale-up.
    pub up: ScalingRules,
    /// Scale-down.
    pub down: ScalingRules,
}

/// Scaling rules of one direction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ScalingRules {
    /// Stabilization window; absent: the controller's setting.
    pub window: Option<SignedDuration>,
    /// How several policies are combined.
    pub select: SelectPolicy,
    /// Policies.
    pub policies: Vec<ScalingPolicy>,
    /// Tolerance in this direction; absent: the controller's setting.
    pub tolerance: Option<f64>,
}

/// How several policies are combined.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum SelectPolicy {
    /// The policy that allows the largest change.
    #[default]
    Max,
    /// The policy that allows the smallest change.
    Min,
    /// No change in this direction.
    Disabled,
}

/// One policy: the allowed change per period.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ScalingPolicy {
    /// Pods or percent.
    pub kind: ScalingPolicyType,
    /// Allowed change.
    pub value: i32,
    /// Length of the period.
    pub period: SignedDuration,
}

/// Unit of a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ScalingPolicyType {
    /// Absolute number of pods.
    Pods,
    /// Percentage of the count at the start of the period.
    Percent,
}

/// How far a ratio may differ from 1 without causing a change (docs/spec/hpa.md 2.2).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Tolerances {
    /// Below 1.
    pub down: f64,
    /// Above 1.
    pub up: f64,
}

impl Tolerances {
    /// The tolerances in force for `spec`.
    pub fn of(spec: &Spec, config: &ControllerConfig) -> Self {
        let own = spec.behavior.as_ref().filter(|_| config.gates.configurable_tolerance);
        let pick = |rules: Option<&ScalingRules>| rules.and_then(|r| r.tolerance).unwrap_or(config.tolerance);
        Self { down: pick(own.map(|b| &b.down)), up: pick(own.map(|b| &b.up)) }
    }

    /// Whether `ratio` is within tolerance; both bounds are inclusive (docs/spec/hpa.md 5.2, T1).
    pub fn contain(&self, ratio: f64) -> bool {
        (1.0 - self.down) <= ratio && ratio <= (1.0 + self.up)
    }
}

impl Spec {
    /// `{namespace}/{name}`, the key of the autoscaler.
    pub fn key(&self) -> String {
        format!("{}/{}", self.namespace, self.name)
    }

    /// The target in error texts: `{kind}/{namespace}/{name}`.
    pub fn reference(&self) -> String {
        format!("{}/{}/{}", self.target.kind, self.namespace, self.target.name)
    }

    /// Whether some metric exists without running pods, so that the target can be scaled up from zero.
    pub fn can_leave_zero(&self) -> bool {
        self.metrics
            .iter()
            .any(|m| matches!(m.source, MetricSource::Object { .. } | MetricSource::External(_)))
    }
}

impl Metric {
    /// A metric with the rules of Kubernetes.
    pub fn new(source: MetricSource, target: MetricTarget) -> Self {
        Self {
            source,
            target,
            on_failure: FailurePolicy::Kubernetes,
            max_age: None,
            series: SeriesAggregator::Sum,
        }
    }
}

impl MetricSource {
    /// Short name for people: `cpu`, `cpu of app`, or the metric's own name.
    pub fn short_name(&self) -> String {
        match self {
            Self::Resource { name, .. } => name.clone(),
            Self::ContainerResource { name, container, .. } => format!("{name} of {container}"),
            Self::Pods(id) | Self::External(id) | Self::Object { metric: id, .. } => id.name.clone(),
            Self::Unknown(kind) => kind.clone(),
        }
    }

    /// The metric's `type` in the API.
    pub fn type_name(&self) -> &str {
        match self {
            Self::Resource { .. } => "Resource",
            Self::ContainerResource { .. } => "ContainerResource",
            Self::Pods(_) => "Pods",
            Self::Object { .. } => "Object",
            Self::External(_) => "External",
            Self::Unknown(other) => other,
        }
    }
}
