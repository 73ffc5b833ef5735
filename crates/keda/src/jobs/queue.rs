//! Aggregation of the triggers' results into one queue (docs/spec/keda.md 5.3).

use api::autoscaling::v2::MetricSpec;
use quantity::Quantity;

use super::JobBounds;

/// The contribution of one metric.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct QueueEntry {
    /// Queue length.
    pub length: f64,
    /// Number of jobs for the queue length.
    pub max_value: f64,
    /// Mean target per job over all metrics of the trigger.
    pub target: f64,
    /// Whether its trigger is active.
    pub active: bool,
}

/// The aggregated queue.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct JobQueue {
    /// Whether it is active.
    pub active: bool,
    /// Queue length.
    pub length: i64,
    /// Number of jobs for the queue length.
    pub max_value: f64,
}

impl JobQueue {
    /// Number of jobs for the queue length, rounded up.
    pub fn max_scale(&self) -> i64 {
        ceil(self.max_value)
    }
}

/// The contribution of a metric; only values with the name of the trigger's first metric count.
pub fn entry(specs: &[MetricSpec], values: &[(String, Quantity)], max: i64, active: bool) -> QueueEntry {
    let first = specs.first().and_then(|spec| spec.external.as_ref()).map(|external| &external.metric.name);
    let own = values.iter().filter(|(name, _)| Some(name) == first);
    let length: f64 = own.map(|(_, value)| value.as_f64()).sum();
    let target = mean_target(specs);
    let max_value = if target == 0.0 { 0.0 } else { (length / target).min(number(max)) };
    QueueEntry { length, max_value, target, active }
}

/// The mean of the AverageValue targets; a Value target counts as zero.
fn mean_target(specs: &[MetricSpec]) -> f64 {
    if specs.is_empty() {
        return 0.0;
    }
    let targets = specs.iter().filter_map(|spec| spec.external.as_ref()?.target.average_value.as_ref());
    let sum: f64 = targets.map(Quantity::as_f64).sum();
    sum / number(i64::try_from(specs.len()).unwrap_or(i64::MAX))
}

/// Aggregates queues; `calculation` is `max`, `min`, `avg`, `sum` or empty.
pub fn aggregate(calculation: &str, bounds: JobBounds, entries: &[QueueEntry]) -> JobQueue {
    let active: Vec<&QueueEntry> = entries.iter().filter(|entry| entry.active).collect();
    let count = number(i64::try_from(active.len()).unwrap_or(i64::MAX));
    let sums = || {
        let length: f64 = active.iter().map(|entry| entry.length).sum();
        let max_value: f64 = active.iter().map(|entry| entry.max_value).sum();
        (length, max_value)
    };
    let mut is_active = !active.is_empty();
    let (length, max_value) = match calculation {
        "min" => smallest(&active),
        "avg" if is_active => {
            let (length, max_value) = sums();
            (length / count, max_value / count)
        }
        "avg" => (0.0, 0.0),
        "sum" => sums(),
        _ => {
            let largest = largest(&active);
            is_active = largest.is_some();
            largest.unwrap_or_default()
        }
    };
    JobQueue {
        active: is_active || bounds.min > 0,
        length: ceil(length),
        max_value: max_value.min(number(bounds.max)),
    }
}

/// The longest queue; none if all are empty.
fn largest(entries: &[&QueueEntry]) -> Option<(f64, f64)> {
    let mut found = None;
    for entry in entries {
        if entry.length > found.map_or(0.0, |(length, _)| length) {
            found = Some((entry.length, entry.max_value));
        }
    }
    found
}

/// The shortest queue; an empty one is replaced by the next, as in KEDA.
fn smallest(entries: &[&QueueEntry]) -> (f64, f64) {
    let mut found = (0.0, 0.0);
    for entry in entries {
        if found.0 == 0.0 || entry.length < found.0 {
            found = (entry.length, entry.max_value);
        }
    }
    found
}

/// Rounds up to an integer, saturating; NaN becomes 0.
#[allow(clippy::cast_possible_truncation)]
fn ceil(number: f64) -> i64 {
    number.ceil() as i64
}

#[allow(clippy::cast_precision_loss)]
fn number(count: i64) -> f64 {
    count as f64
}
