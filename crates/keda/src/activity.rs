//! Whether a ScaledObject is active (docs/spec/keda.md 3.4), and responses to queries for its metrics
//! (docs/spec/keda.md 4.3). Both use the same samples.

mod collect;
mod poll;
mod query;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use api::autoscaling::v2::MetricTarget;
use quantity::Quantity;

pub use poll::{PollRound, activity_state};
pub use query::{MetricQuery, MetricResponse, is_needed, respond};

use crate::event::Event;
use crate::modifiers::{CompiledFormula, ModifiersError};
use crate::status::StatusChanges;

/// One value of a metric.
#[derive(Clone, Debug, PartialEq)]
pub struct MetricValue {
    /// The metric's name.
    pub name: String,
    /// The value.
    pub value: Quantity,
}

/// The reading of one metric.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reading {
    /// Its values; the HPA adds them up.
    pub values: Vec<MetricValue>,
    /// Whether it is active.
    pub active: bool,
}

/// The cached reading of a metric between a poll and the next query, or why it failed.
pub type CachedReading = Result<Reading, String>;

/// One external metric that was read.
#[derive(Clone, Debug, PartialEq)]
pub struct MetricSample {
    /// Its name, as in the metric spec.
    pub name: String,
    /// Its target, as in the metric spec.
    pub target: MetricTarget,
    /// The reading, or why it failed, after one rebuild and retry of the scaler.
    pub reading: Result<Reading, String>,
    /// Whether the reading is the cached one of the last poll.
    pub is_remembered: bool,
}

/// The result of one trigger.
#[derive(Clone, Debug, PartialEq)]
pub struct TriggerResult {
    /// Its index among the triggers of the object.
    pub trigger: usize,
    /// Its metrics, or why they are unknown: the scaler could not be built, or its metric specs failed.
    pub metrics: Result<Vec<TriggerMetric>, String>,
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

/// The formula of an object, if it has one, or why it is invalid.
pub type Formula<'a> = Option<Result<&'a CompiledFormula, &'a ModifiersError>>;

/// The outcome of one poll of all triggers of an object.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ActivityState {
    /// Whether it is active.
    pub active: bool,
    /// The result of the formula, if there is one.
    pub composite: Option<Quantity>,
    /// Why the poll ends without a decision: only `changes` are written.
    pub skipped: Option<String>,
    /// The error of the first trigger that failed.
    pub error: Option<String>,
    /// The triggers named as the cause of an activation.
    pub active_triggers: Vec<String>,
    /// The metrics that are active.
    pub active_metrics: Vec<String>,
    /// Whether a fallback is in effect.
    pub is_falling_back: bool,
    /// The new cached readings of triggers with `useCachedMetrics`.
    pub records: BTreeMap<String, CachedReading>,
    /// Events to record.
    pub events: Vec<Event>,
    /// Triggers whose scalers must be rebuilt before the next read.
    pub rebuild: Vec<usize>,
    /// Changes of health and of the condition `Fallback`.
    pub changes: StatusChanges,
}
