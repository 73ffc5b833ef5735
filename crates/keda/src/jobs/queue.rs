//! What the triggers said, made one queue (docs/spec/keda.md 5.3).

use api::autoscaling::v2::MetricSpec;
use quantity::Quantity;

use super::Bounds;

/// What one metric of one trigger contributes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Entry {
    /// How much is waiting.
    pub length: f64,
    /// Jobs for it.
    pub max_value: f64,
    /// What one job takes, over all metrics of the trigger.
    pub target: f64,
    /// Whether its trigger is active.
    pub active: bool,
}

/// What is waiting for jobs.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Queue {
    /// Whether there is something to do.
    pub active: bool,
    /// How much is waiting.
    pub length: i64,
    /// Jobs for it.
    pub max_value: f64,
}

impl Queue {
    /// Jobs for it, in whole jobs.
    pub fn max_scale(&self) -> i64 {
        ceil(self.max_value)
    }
}

/// What a metric contributes: values under another name than that of the trigger's first metric do not count.
pub fn entry(specs: &[MetricSpec], values: &[(String, Quantity)], max: i64, active: bool) -> Entry {
    let first = specs.first().and_then(|spec| spec.external.as_ref()).map(|external| &external.metric.name);
    let own = values.iter().filter(|(name, _)| Some(name) == first);
    let length: f64 = own.map(|(_, value)| value.as_f64()).sum();
    let target = mean_target(specs);
    let max_value = if target == 0.0 { 0.0 } else { (length / target).min(number(max)) };
    Entry { length, max_value, target, active }
}

/// The mean of the targets per job; a target for the whole counts as zero.
fn mean_target(specs: &[MetricSpec]) -> f64 {
    if specs.is_empty() {
        return 0.0;
    }
    let targets = specs.iter().filter_map(|spec| spec.external.as_ref()?.target.average_value.as_ref());
    let sum: f64 = targets.map(Quantity::as_f64).sum();
    sum / number(i64::try_from(specs.len()).unwrap_or(i64::MAX))
}

/// One queue of many; `calculation` is `max`, `min`, `avg`, `sum` or empty.
pub fn aggregate(calculation: &str, bounds: Bounds, entries: &[Entry]) -> Queue {
    let active: Vec<&Entry> = entries.iter().filter(|entry| entry.active).collect();
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
    Queue {
        active: is_active || bounds.min > 0,
        length: ceil(length),
        max_value: max_value.min(number(bounds.max)),
    }
}

/// The longest queue, and none if nothing waits in any.
fn largest(entries: &[&Entry]) -> Option<(f64, f64)> {
    let mut found = None;
    for entry in entries {
        if entry.length > found.map_or(0.0, |(length, _)| length) {
            found = Some((entry.length, entry.max_value));
        }
    }
    found
}

/// The shortest queue; while the one before is empty the next is taken, as in KEDA.
fn smallest(entries: &[&Entry]) -> (f64, f64) {
    let mut found = (0.0, 0.0);
    for entry in entries {
        if found.0 == 0.0 || entry.length < found.0 {
            found = (entry.length, entry.max_value);
        }
    }
    found
}

/// Rounded up to a whole number, within bounds; what is no number is none.
#[allow(clippy::cast_possible_truncation)]
fn ceil(number: f64) -> i64 {
    number.ceil() as i64
}

#[allow(clippy::cast_precision_loss)]
fn number(count: i64) -> f64 {
    count as f64
}
