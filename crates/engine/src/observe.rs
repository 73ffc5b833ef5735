//! Step 1: the observation. Building an [`Observation`] needs a client; the engine itself does not.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::config::ControllerConfig;
use crate::error::RecordedError;
use crate::pod::Pod;
use crate::report::Status;
use crate::spec::{Metric, MetricSource, MetricTarget, Spec};
use crate::units::{MilliValue, Replicas};

/// All input of one step. Replaying a recorded observation gives the same decision.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Observation {
    /// Settings of the controller.
    pub config: Arc<ControllerConfig>,
    /// The autoscaler's spec.
    pub spec: Arc<Spec>,
    /// The status stored on the object before this step.
    pub status: Status,
    /// The target's scale.
    pub scale: Result<Scale, ScaleReadError>,
    /// Whether the selector identifies the target's pods.
    pub selection: PodSelection,
    /// The selected pods, in the order of the store.
    #[serde(default)]
    pub pods: Vec<Pod>,
    /// Samples or the error for each metric of the spec; empty if none was needed ([`Observation::needs_metrics`]).
    #[serde(default)]
    pub samples: Vec<Result<MetricSamples, RecordedError>>,
}

/// The target's scale subresource.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Scale {
    /// `spec.replicas`: the current count of all calculations.
    pub spec_replicas: Replicas,
    /// `status.replicas`: replicas that exist.
    pub status_replicas: Replicas,
    /// Label selector in its text form.
    pub selector: String,
}

/// Why the scale could not be read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ScaleReadError {
    /// `apiVersion` is not a group and version.
    InvalidApiVersion(String),
    /// No resource has this kind.
    UnknownKind(String),
    /// The API server returned an error.
    Query(RecordedError),
}

impl ScaleReadError {
    /// The text.
    pub fn text(&self) -> &str {
        match self {
            Self::InvalidApiVersion(text) | Self::UnknownKind(text) => text,
            Self::Query(error) => error.text(),
        }
    }
}

/// Whether the target's selector identifies its pods.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum PodSelection {
    /// The selector is valid and no other autoscaler selects these pods, or the check was not needed.
    #[default]
    Ours,
    /// The selector cannot be parsed, with the error text.
    Invalid(String),
    /// Several autoscalers select the same pods; holds their keys.
    Shared(Vec<String>),
    /// The autoscaler was deleted while it was observed.
    Deleted,
}

/// The samples of one metric.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum MetricSamples {
    /// One sample per pod.
    PerPod(PodSamples),
    /// Values without a pod: one for an Object metric, one per series for an External metric.
    Totals(Vec<MilliValue>),
    /// The metric was not queried because its selector or target is invalid.
    #[serde(rename = "notAsked")]
    NotQueried,
}

/// Samples joined with the pods of the observation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PodSamples {
    /// The sample of each pod, in the order of [`Observation::pods`].
    pub by_pod: Vec<Option<Sample>>,
    /// Samples of pods that do not exist (any more). Kubernetes includes them in some counts (T13).
    #[serde(default)]
    pub stray: Vec<Sample>,
}

/// One sample of one pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Sample {
    /// End of the measurement.
    pub at: Timestamp,
    /// Length of the measurement.
    pub window: SignedDuration,
    /// The value.
    pub milli: MilliValue,
}

/// A sample and the name of its pod. In a list, the last sample of a name counts.
pub type NamedSample = (Arc<str>, Sample);

impl Metric {
    /// Whether this metric can be queried: its selector and target are valid.
    pub fn is_queryable(&self) -> bool {
        match &self.source {
            MetricSource::Resource { .. } | MetricSource::ContainerResource { .. } => {
                self.target != MetricTarget::Missing
            }
            MetricSource::Pods(id) => id.selector.is_ok(),
            MetricSource::Object { metric, .. } | MetricSource::External(metric) => {
                metric.selector.is_ok() && self.target != MetricTarget::Missing
            }
            MetricSource::Unknown(_) => false,
        }
    }
}

impl PodSamples {
    /// Joins samples by pod name with `pods`.
    pub fn join(pods: &[Pod], samples: Vec<NamedSample>) -> Self {
        let mut by_name: std::collections::BTreeMap<Arc<str>, Sample> = samples.into_iter().collect();
        let by_pod = pods.iter().map(|pod| by_name.remove(&pod.name)).collect();
        Self { by_pod, stray: by_name.into_values().collect() }
    }
}
