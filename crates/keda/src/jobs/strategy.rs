//! Scaling strategies (docs/spec/keda.md 5.4).

use api::keda::ScalingStrategy;

use super::JobQueue;

/// The existing jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobLoad {
    /// Running jobs without the minimum.
    pub running: i64,
    /// Running jobs whose pods have not started.
    pub pending: i64,
    /// Maximum number of jobs.
    pub max: i64,
}

/// The jobs that a strategy demands; the smaller number counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobDemand {
    /// Jobs that may be created; may be negative.
    pub effective_max: i64,
    /// Jobs that there is work for.
    pub scale_to: i64,
}

/// The demand of a strategy.
pub fn demand(strategy: &ScalingStrategy, queue: &JobQueue, load: JobLoad) -> JobDemand {
    let (max_scale, scale_to) = (queue.max_scale(), queue.length);
    let JobLoad { running, pending, max } = load;
    match (strategy_name(strategy), share(strategy)) {
        ("custom", Some(share)) => {
            let deduction = i64::from(strategy.custom_scaling_queue_length_deduction.unwrap_or(0));
            let left = max_scale.saturating_sub(deduction).saturating_sub(part(running, share));
            JobDemand { effective_max: left.min(max), scale_to }
        }
        ("accurate", _) if max_scale.saturating_add(running).saturating_sub(pending) > max => {
            JobDemand { effective_max: max.saturating_sub(running), scale_to }
        }
        ("accurate", _) => JobDemand { effective_max: max_scale.saturating_sub(pending), scale_to },
        ("eager", _) => {
            let free = max.saturating_sub(running).saturating_sub(pending);
            JobDemand { effective_max: free.min(max_scale), scale_to: max }
        }
        _ => JobDemand { effective_max: max_scale.saturating_sub(running), scale_to },
    }
}

/// The strategy that applies: an unknown one, and `custom` without a valid percentage, are `default`.
pub fn strategy_name(strategy: &ScalingStrategy) -> &'static str {
    match (strategy.strategy.as_str(), share(strategy)) {
        ("custom", Some(_)) => "custom",
        ("accurate", _) => "accurate",
        ("eager", _) => "eager",
        _ => "default",
    }
}

fn share(strategy: &ScalingStrategy) -> Option<f64> {
    crate::float::parse_float(&strategy.custom_scaling_running_job_percentage).ok()
}

/// A fraction of a number, truncated.
#[allow(clippy::cast_possible_truncation, clippy::cast_precision_loss)]
fn part(of: i64, share: f64) -> i64 {
    (of as f64 * share) as i64
}
