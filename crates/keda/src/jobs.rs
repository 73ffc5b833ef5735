//! ScaledJobs: jobs to create and to delete (docs/spec/keda.md 5).
//!
//! ```text
//! gather    aggregates the triggers' results into one queue    (queue)
//! decide    how many jobs are created                              (strategy)
//! job       the job that is created
//! name      its name
//! history   finished jobs that are deleted; jobs of an older generation
//! report    events, conditions and status of a poll
//! ```

mod history;
mod job;
mod name;
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

pub use history::{OutdatedJobs, Propagation, history, outdated};
pub use job::{generate_name, job};
pub use name::names;
pub use queue::{JobQueue, QueueEntry, aggregate, entry};
pub use report::{JobReport, report};
pub use strategy::{JobDemand, JobLoad, demand, strategy_name};
pub use view::{JobPodView, JobState, JobView};

use crate::OperationError;

/// The result of one trigger in a poll.
#[derive(Clone, Debug, PartialEq)]
pub struct JobTriggerResult {
    /// Its metrics, or why there are none.
    pub specs: Result<Vec<MetricSpec>, OperationError>,
    /// The readings of its external metrics, in order, after one rebuild and retry of the scaler.
    pub samples: Vec<(String, Result<JobReading, OperationError>)>,
}

/// The reading of one metric.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct JobReading {
    /// Names and values.
    pub values: Vec<(String, Quantity)>,
    /// Whether it is active.
    pub active: bool,
}

/// Bounds of the number of jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobBounds {
    /// Jobs that always run.
    pub min: i64,
    /// Jobs that may run in addition.
    pub max: i64,
}

/// Default maximum number of jobs.
const DEFAULT_MAX_JOBS: i64 = 100;

/// The bounds of a ScaledJob. Without a maximum, the minimum is added to the default, as in KEDA.
pub fn bounds(min: Option<i32>, max: Option<i32>) -> JobBounds {
    let (min, max) = (i64::from(min.unwrap_or(0)), max.map(i64::from));
    match max {
        None => JobBounds { min, max: DEFAULT_MAX_JOBS },
        Some(max) if min > max => JobBounds { min: max, max },
        Some(max) => JobBounds { min, max: max - min },
    }
}

/// The results of all triggers in a poll.
#[derive(Clone, Debug, PartialEq)]
pub struct JobPoll {
    /// The aggregated queue.
    pub queue: JobQueue,
    /// Errors, in order.
    pub errors: Vec<String>,
    /// Which trigger failed first, and why.
    pub cause: Option<String>,
    /// Activity per metric.
    pub activity: BTreeMap<String, bool>,
}

/// Aggregates the results of the triggers into one queue.
pub fn gather(object: &ScaledJob, answers: &[JobTriggerResult]) -> JobPoll {
    let bounds = bounds(object.spec.min_replica_count, object.spec.max_replica_count);
    let (mut entries, mut errors, mut activity) = (Vec::new(), Vec::new(), BTreeMap::new());
    let mut cause = None;
    for (index, answer) in answers.iter().enumerate() {
        let mut failed = |error: &OperationError| {
            cause.get_or_insert_with(|| describe_failure(object, index, error.as_str()));
            errors.push(error.to_string());
        };
        let specs = match &answer.specs {
            Ok(specs) => specs,
            Err(error) => {
                failed(error);
                continue;
            }
        };
        // After an active metric, the later metrics of the trigger count as active, as in KEDA.
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
    JobPoll { queue, errors, cause, activity }
}

/// Describes which trigger failed, and why.
fn describe_failure(object: &ScaledJob, index: usize, error: &str) -> String {
    match object.spec.triggers.get(index) {
        Some(own) if !own.name.is_empty() => format!("trigger {:?} ({}): {error}", own.name, own.type_),
        Some(own) => format!("trigger {index} ({}): {error}", own.type_),
        None => error.to_owned(),
    }
}

/// The number of jobs that have not finished, and of those that have not started.
pub fn running(object: &ScaledJob, jobs: &[JobView]) -> (i64, i64) {
    view::count(jobs, &object.spec.scaling_strategy.pending_pod_conditions)
}

/// The number of jobs to create, given the existing ones. Jobs that were just created must be included even if the watch
/// has not delivered them, otherwise they are created twice.
pub fn decide(object: &ScaledJob, round: &JobPoll, jobs: &[JobView], compat: Compat) -> i64 {
    let bounds = bounds(object.spec.min_replica_count, object.spec.max_replica_count);
    let (running, pending) = running(object, jobs);
    if !round.queue.active {
        return 0;
    }
    if running < bounds.min {
        return bounds.min - running;
    }
    let load = JobLoad { running: running - bounds.min, pending, max: bounds.max };
    let wish = demand(&object.spec.scaling_strategy, &round.queue, load);
    let create = wish.scale_to.min(wish.effective_max).max(0);
    // The custom strategy ignores the running jobs, so it exceeds the maximum in KEDA.
    if compat.is_strict() { create } else { create.min((load.max - load.running).max(0)) }
}
