//! Whether a ScaledObject is active (docs/spec/keda.md 3.4), and responses to queries for its metrics
//! (docs/spec/keda.md 4.3). Both use the same samples.

mod collect;
mod observed;
mod poll;
mod query;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use quantity::Quantity;

pub use collect::{HpaObservation, HpaObservations};
pub use observed::{observations, uses_hpa_observations};
pub use poll::{PollRound, activity_state, activity_state_with};
pub use query::{AllMetricValues, MetricQuery, MetricQueryError, MetricResponse, NeededMetrics, respond};

pub use crate::reading::{CachedReading, MetricSample, MetricValue, Reading, TriggerMetric, TriggerResult};

use crate::event::Event;
use crate::modifiers::{CompiledFormula, ModifiersError};
use crate::status::StatusChanges;

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
