//! What the user asked for, parsed once at the door: nothing here can be half set.

use jiff::SignedDuration;
use serde::{Deserialize, Serialize};

use crate::config::ControllerConfig;

/// One autoscaler, whichever API it came from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Spec {
    /// Namespace of the autoscaler and of its target.
    pub namespace: String,
    /// Name of the autoscaler.
    pub name: String,
    /// What is scaled.
    pub target: TargetRef,
    /// Lower bound of replicas.
    pub min: i32,
    /// Upper bound of replicas.
    pub max: i32,
    /// Metrics in the order of the object.
    pub metrics: Vec<Metric>,
    /// Rates and windows; absent means the classic limits of docs/spec/hpa.md 6.2.
    pub behavior: Option<Behavior>,
    /// How proposals of several metrics become one.
    #[serde(default)]
    pub aggregator: Aggregator,
}

/// The object whose scale is driven.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TargetRef {
    /// Kind, as the user wrote it.
    pub kind: String,
    /// Name.
    pub name: String,
}

/// One metric and what it should be.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Metric {
    /// Where the number comes from.
    pub source: MetricSource,
    /// What the number should be.
    pub goal: MetricTarget,
    /// What to do while it cannot be read.
    #[serde(default)]
    pub on_failure: FailurePolicy,
}

/// Where a metric's number comes from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum MetricSource {
    /// A resource of whole pods.
    Resource {
        /// `cpu`, `memory`, …
        name: String,
        /// What a percentage is a percentage of.
        #[serde(default)]
        of: UtilizationBase,
    },
    /// A resource of one container in each pod.
    ContainerResource {
        /// `cpu`, `memory`, …
        name: String,
        /// Container.
        container: String,
        /// What a percentage is a percentage of.
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
    /// A type that nobody knows; only objects stored without validation have it.
    Unknown(String),
}

/// A named metric with an optional selector of series.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MetricId {
    /// Name as the user wrote it.
    pub name: String,
    /// The selector as it appears in messages: `nil` or Go's rendering of the object.
    pub shown_selector: String,
    /// The selector as query text, or why it cannot be one.
    pub selector: Result<String, String>,
}

/// What a metric should be, in thousandths where it is a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum MetricTarget {
    /// Average percentage of what the pods request.
    Utilization(i32),
    /// Average over pods.
    AverageValue(i64),
    /// The value itself.
    Value(i64),
    /// No usable target was set; only objects stored without validation have it, and Object metrics whose
    /// type and field disagree.
    Missing,
}

/// What a percentage is a percentage of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum UtilizationBase {
    /// What containers request, as in Kubernetes.
    #[default]
    Requests,
    /// What containers are limited to.
    Limits,
}

/// How proposals of several metrics become one.
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

/// What a metric that cannot be read stands for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum FailurePolicy {
    /// The Kubernetes rule: others may raise the count, nobody may lower it.
    #[default]
    Kubernetes,
    /// The count stays as it is, whatever other metrics propose.
    Hold,
    /// As if the metric were not listed.
    Ignore,
    /// Its last proposal stands for this long, then the Kubernetes rule applies.
    LastGood(SignedDuration),
    /// It proposes this many replicas.
    Static(i32),
}

/// Rates and windows in each direction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Behavior {
    /// Growing.
    pub up: ScalingRules,
    /// Shrinking.
    pub down: ScalingRules,
}

/// Rates and windows in one direction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ScalingRules {
    /// How far back recommendations are looked at; absent: the controller's setting.
    pub window: Option<SignedDuration>,
    /// How several policies combine.
    pub select: SelectPolicy,
    /// Rates.
    pub policies: Vec<ScalingPolicy>,
    /// How far a ratio may be from 1 in this direction; absent: the controller's setting.
    pub tolerance: Option<f64>,
}

/// How several rate policies combine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum SelectPolicy {
    /// The one that allows the largest change.
    #[default]
    Max,
    /// The one that allows the smallest change.
    Min,
    /// No change in this direction.
    Disabled,
}

/// One rate: so much in such a period.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ScalingPolicy {
    /// Pods or percent.
    pub kind: ScalingPolicyType,
    /// How many.
    pub value: i32,
    /// In which time.
    pub period: SignedDuration,
}

/// Unit of a rate policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ScalingPolicyType {
    /// Absolute number of pods.
    Pods,
    /// Percentage of the count at the start of the period.
    Percent,
}

/// How far a ratio may be from 1 before it counts (docs/spec/hpa.md 2.2).
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

    /// Whether `ratio` is too close to 1 to act on: inclusive on both sides (docs/spec/hpa.md 5.2, T1).
    pub fn contain(&self, ratio: f64) -> bool {
        (1.0 - self.down) <= ratio && ratio <= (1.0 + self.up)
    }
}

impl Spec {
    /// `{namespace}/{name}`, the key of all memory.
    pub fn key(&self) -> String {
        format!("{}/{}", self.namespace, self.name)
    }

    /// How error texts name the target: `{kind}/{namespace}/{name}`.
    pub fn reference(&self) -> String {
        format!("{}/{}/{}", self.target.kind, self.namespace, self.target.name)
    }

    /// Whether some metric does not need running pods, so that zero can be left again.
    pub fn can_leave_zero(&self) -> bool {
        self.metrics
            .iter()
            .any(|m| matches!(m.source, MetricSource::Object { .. } | MetricSource::External(_)))
    }
}

impl MetricSource {
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
