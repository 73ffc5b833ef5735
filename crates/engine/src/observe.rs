//! Step 1: what was seen. Whoever builds an [`Observation`] needs a client; the engine does not.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::config::ControllerConfig;
use crate::decision::Course;
use crate::pod::Pod;
use crate::report::Status;
use crate::spec::{Metric, MetricSource, MetricTarget, Spec};

/// All that one step looks at. Recorded and replayed, it gives the same decision.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Observation {
    /// Settings of the controller.
    pub config: Arc<ControllerConfig>,
    /// What the user asked for.
    pub spec: Arc<Spec>,
    /// The status stored on the object before this step.
    pub status: Status,
    /// The target's scale.
    pub scale: Result<Scale, ScaleReadError>,
    /// Which pods belong to the target.
    pub selection: PodSelection,
    /// The pods selected, in the order of the cache.
    #[serde(default)]
    pub pods: Vec<Pod>,
    /// One answer per metric of the spec; empty when none was needed ([`Observation::needs_metrics`]).
    #[serde(default)]
    pub samples: Vec<Result<MetricSamples, String>>,
}

/// The target's scale subresource.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Scale {
    /// Replicas asked for: the `current` of every formula.
    pub spec_replicas: i32,
    /// Replicas that exist.
    pub status_replicas: i32,
    /// Label selector as text.
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
    /// The API server did not hand it out.
    Query(String),
}

/// Whether the target's pods could be told from others.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum PodSelection {
    /// Yes, or nobody needed to know.
    #[default]
    Ours,
    /// The selector cannot be parsed, and why.
    Invalid(String),
    /// Several autoscalers select the same pods: their keys.
    Shared(Vec<String>),
}

/// What a metrics source answered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum MetricSamples {
    /// A number per pod.
    PerPod(PodSamples),
    /// Numbers that belong to no pod, in thousandths: one for an object, one per series from outside.
    Totals(Vec<i64>),
    /// The metric cannot be asked for: its selector or target is broken.
    NotAsked,
}

/// Samples laid beside the pods of the observation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PodSamples {
    /// The sample of each pod, in the order of [`Observation::pods`].
    pub by_pod: Vec<Option<Sample>>,
    /// Samples of pods that are not there (any more); Kubernetes counts them in places (T13).
    #[serde(default)]
    pub stray: Vec<Sample>,
}

/// One number of one pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Sample {
    /// End of the measurement.
    pub at: Timestamp,
    /// Length of the measurement.
    pub window: SignedDuration,
    /// The number in thousandths.
    pub milli: i64,
}

/// Order of a name-keyed sample list: the last one of a name counts.
pub type NamedSample = (Arc<str>, Sample);

impl Observation {
    /// Whether a step with this spec, stored status and scale will look at metrics. Ask before fetching any.
    pub fn needs_metrics(config: &ControllerConfig, spec: &Spec, status: &Status, scale: &Scale) -> bool {
        matches!(Course::choose(config, spec, status, scale), Course::Metrics) && !scale.selector.is_empty()
    }
}

impl Metric {
    /// Whether this metric can be asked for at all: its selector and target are in order.
    pub fn can_be_asked(&self) -> bool {
        match &self.source {
            MetricSource::Resource { .. } | MetricSource::ContainerResource { .. } => {
                self.goal != MetricTarget::Missing
            }
            MetricSource::Pods(id) => id.selector.is_ok(),
            MetricSource::Object { metric, .. } | MetricSource::External(metric) => {
                metric.selector.is_ok() && self.goal != MetricTarget::Missing
            }
            MetricSource::Unknown(_) => false,
        }
    }
}

impl PodSamples {
    /// Lays samples keyed by pod name beside `pods`.
    pub fn join(pods: &[Pod], samples: Vec<NamedSample>) -> Self {
        let mut by_name: std::collections::BTreeMap<Arc<str>, Sample> = samples.into_iter().collect();
        let by_pod = pods.iter().map(|pod| by_name.remove(&pod.name)).collect();
        Self { by_pod, stray: by_name.into_values().collect() }
    }
}
