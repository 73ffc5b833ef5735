//! ScaledJobs: how many jobs are created, which are deleted (docs/spec/keda.md 5).
//!
//! ```text
//! gather    what the triggers said, made one queue                 (queue)
//! decide    how many jobs are created                              (strategy)
//! job       the job that is created
//! history   finished jobs that are deleted; jobs of an older generation
//! report    events, conditions and status of a poll
//! ```

mod history;
mod job;
mod queue;
mod report;
mod strategy;
#[cfg(test)]
mod tests;
mod view;

use std::collections::BTreeMap;

use api::autoscaling::v2::MetricSpec;
use api::keda::ScaledJob;
use api::provider::Compat;
use quantity::Quantity;

pub use history::{Outdated, Propagation, history, outdated};
pub use job::{generate_name, job};
pub use queue::{Entry, Queue, aggregate, entry};
pub use report::{Report, report};
pub use strategy::{Load, Wish, wish};
pub use view::{JobState, JobView, PodView};

/// What one trigger said in a poll.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// Its metrics, or why there are none.
    pub specs: Result<Vec<MetricSpec>, String>,
    /// What was said of each external metric, in their order, after one attempt to build the scaler anew.
    pub samples: Vec<(String, Result<Sample, String>)>,
}

/// What was said of one metric.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sample {
    /// Names and values.
    pub values: Vec<(String, Quantity)>,
    /// Whether there is something to do.
    pub active: bool,
}

/// How many jobs there may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// So many always run.
    pub min: i64,
    /// So many may run beside them.
    pub max: i64,
}

/// Jobs that may run if nobody says.
const MOST: i64 = 100;

/// How many jobs a ScaledJob may have. Without an upper bound the lower one comes on top, as in KEDA.
pub fn bounds(min: Option<i32>, max: Option<i32>) -> Bounds {
    let (min, max) = (i64::from(min.unwrap_or(0)), max.map(i64::from));
    match max {
        None => Bounds { min, max: MOST },
        Some(max) if min > max => Bounds { min: max, max },
        Some(max) => Bounds { min, max: max - min },
    }
}

/// What all triggers said in a poll.
#[derive(Clone, Debug, PartialEq)]
pub struct Round {
    /// The queue of all of them.
    pub queue: Queue,
    /// What failed, in order.
    pub errors: Vec<String>,
    /// Which trigger failed first, and why.
    pub cause: Option<String>,
    /// Activity per metric.
    pub activity: BTreeMap<String, bool>,
}

/// Makes one queue of what the triggers said.
pub fn gather(object: &ScaledJob, answers: &[Answer]) -> Round {
    let bounds = bounds(object.spec.min_replica_count, object.spec.max_replica_count);
    let (mut entries, mut errors, mut activity) = (Vec::new(), Vec::new(), BTreeMap::new());
    let mut cause = None;
    for (index, answer) in answers.iter().enumerate() {
        let mut failed = |error: &String| {
            cause.get_or_insert_with(|| said(object, index, error));
            errors.push(error.clone());
        };
        let specs = match &answer.specs {
            Ok(specs) => specs,
            Err(error) => {
                failed(error);
                continue;
            }
        };
        // Once a metric of a trigger is active, those after it count as active too.
        let mut active = false;
        for (name, sample) in &answer.samples {
            activity.insert(name.clone(), sample.as_ref().is_ok_and(|sample| sample.active));
            match sample {
                Ok(sample) => {
                    active |= sample.active;
                    entries.push(entry(specs, &sample.values, bounds.max, active));
                }
                Err(error) => failed(error),
            }
        }
    }
    let queue = aggregate(&object.spec.scaling_strategy.multiple_scalers_calculation, bounds, &entries);
    Round { queue, errors, cause, activity }
}

/// Which trigger failed, and why.
fn said(object: &ScaledJob, index: usize, error: &str) -> String {
    match object.spec.triggers.get(index) {
        Some(own) if !own.name.is_empty() => format!("trigger {:?} ({}): {error}", own.name, own.type_),
        Some(own) => format!("trigger {index} ({}): {error}", own.type_),
        None => error.to_owned(),
    }
}

/// How many jobs are created, given those that are there. Jobs that were created a moment ago must be among them, seen or
/// not: whoever forgets them creates them twice.
pub fn decide(object: &ScaledJob, round: &Round, jobs: &[JobView], compat: Compat) -> i64 {
    let bounds = bounds(object.spec.min_replica_count, object.spec.max_replica_count);
    let (running, pending) = view::count(jobs, &object.spec.scaling_strategy.pending_pod_conditions);
    if !round.queue.active {
        return 0;
    }
    if running < bounds.min {
        return bounds.min - running;
    }
    let load = Load { running: running - bounds.min, pending, max: bounds.max };
    let wish = wish(&object.spec.scaling_strategy, &round.queue, load);
    let create = wish.scale_to.min(wish.effective_max).max(0);
    // The custom strategy does not ask how many run, and so goes beyond the upper bound.
    if compat.is_strict() { create } else { create.min((load.max - load.running).max(0)) }
}
