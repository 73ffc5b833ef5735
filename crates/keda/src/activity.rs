//! Whether a ScaledObject is active, and why (docs/spec/keda.md 3.4), and what is answered when somebody asks for one of its metrics
//! (docs/spec/keda.md 4.3). Both look at the same samples.

mod gather;
mod query;
mod round;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use api::autoscaling::v2::MetricTarget;
use quantity::Quantity;

pub use query::{Answer, Question, answer, is_wanted};
pub use round::{Round, state};

use crate::event::Event;
use crate::modifiers::Compiled;
use crate::status::Changes;

/// One value of a metric.
#[derive(Clone, Debug, PartialEq)]
pub struct MetricValue {
    /// The metric's name.
    pub name: String,
    /// The value.
    pub value: Quantity,
}

/// What a source said of one metric.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reading {
    /// Its values; the HPA adds them up.
    pub values: Vec<MetricValue>,
    /// Whether there is something to do.
    pub active: bool,
}

/// What is remembered of a metric from one round to the next query: what was said, or why nothing was.
pub type Record = Result<Reading, String>;

/// One external metric that was asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// Its name, as in the metric spec.
    pub name: String,
    /// Its target, as in the metric spec.
    pub target: MetricTarget,
    /// What was said, or why nothing was; a source that was rebuilt and asked again has had its second chance.
    pub reading: Result<Reading, String>,
    /// Whether this was said earlier, in the last round, and nobody was asked now.
    pub is_remembered: bool,
}

/// What one trigger told.
#[derive(Clone, Debug, PartialEq)]
pub struct Told {
    /// Its place among the triggers of the object.
    pub trigger: usize,
    /// Its metrics, or why they are not known: its scaler could not be built, or does not say which it has.
    pub metrics: Result<Vec<Metric>, String>,
}

/// One metric of a trigger.
// Nearly all are external, and they live for one round.
#[allow(clippy::large_enum_variant)]
#[derive(Clone, Debug, PartialEq)]
pub enum Metric {
    /// CPU or memory: the HPA asks others, we know nothing of it.
    Resource,
    /// One that is asked of us.
    External(Sample),
}

impl Told {
    /// Samples of external metrics.
    pub fn samples(&self) -> impl Iterator<Item = &Sample> {
        self.metrics.iter().flatten().filter_map(|metric| match metric {
            Metric::External(sample) => Some(sample),
            Metric::Resource => None,
        })
    }
}

/// The formula of an object: `None` if it has none, and why it cannot be used if it cannot.
pub type Formula<'a> = Option<Result<&'a Compiled, &'a str>>;

/// How an object is after a round over all its triggers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct State {
    /// Whether there is something to do.
    pub active: bool,
    /// The result of the formula, if there is one.
    pub composite: Option<Quantity>,
    /// Why the round ends here: nothing is decided, and of all this only `changes` are written.
    pub skipped: Option<String>,
    /// That triggers failed, and why the first of them did.
    pub error: Option<String>,
    /// What is said to have caused an activation.
    pub active_triggers: Vec<String>,
    /// The metrics that are active.
    pub active_metrics: Vec<String>,
    /// Whether a source is replaced by a number.
    pub is_falling_back: bool,
    /// What is remembered of metrics of triggers with `useCachedMetrics`; replaces what was remembered before.
    pub records: BTreeMap<String, Record>,
    /// What is told.
    pub events: Vec<Event>,
    /// The triggers whose scalers are to be built anew before they are asked again.
    pub rebuild: Vec<usize>,
    /// Health, and whether a source is replaced by a number.
    pub changes: Changes,
}
