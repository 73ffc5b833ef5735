//! What the operator read of the triggers of an object.

use api::autoscaling::v2::MetricTarget;
pub use api::reading::{Reading, ReadingValue as MetricValue};

use crate::OperationError;

/// The cached reading of a metric between a poll and the next query, or why it failed.
pub type CachedReading = Result<Reading, OperationError>;

/// One external metric that was read.
#[derive(Clone, Debug, PartialEq)]
pub struct MetricSample {
    /// Its name, as in the metric spec.
    pub name: String,
    /// Its target, as in the metric spec.
    pub target: MetricTarget,
    /// The reading, or why it failed, after one rebuild and retry of the scaler.
    pub reading: Result<Reading, OperationError>,
    /// Whether the reading is the cached one of the last poll.
    pub is_remembered: bool,
    /// Whether a failure does not count for the fallback, because it is of a poll that KEDA does not make.
    pub is_ignored: bool,
}

/// The result of one trigger.
#[derive(Clone, Debug, PartialEq)]
pub struct TriggerResult {
    /// Its index among the triggers of the object.
    pub trigger: usize,
    /// Its metrics, or why they are unknown: the scaler could not be built, or its metric specs failed.
    pub metrics: Result<Vec<TriggerMetric>, OperationError>,
}

/// One metric of a trigger.
// Nearly all are external, and they live for one poll.
#[allow(clippy::large_enum_variant)]
#[derive(Clone, Debug, PartialEq)]
pub enum TriggerMetric {
    /// CPU or memory, which the HPA reads from metrics-server.
    Resource,
    /// An external metric, which this process serves.
    External(MetricSample),
}

impl TriggerResult {
    /// Samples of external metrics.
    pub fn samples(&self) -> impl Iterator<Item = &MetricSample> {
        self.metrics.iter().flatten().filter_map(|metric| match metric {
            TriggerMetric::External(sample) => Some(sample),
            TriggerMetric::Resource => None,
        })
    }
}
