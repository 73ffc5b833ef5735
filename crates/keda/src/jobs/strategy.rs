//! How many jobs a strategy wishes for (docs/spec/keda.md 5.4).

use api::keda::ScalingStrategy;

use super::Queue;

/// What is there already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    /// Jobs that run, without those that always do.
    pub running: i64,
    /// Jobs among all that run whose pods did not start.
    pub pending: i64,
    /// So many may run.
    pub max: i64,
}

/// What a strategy wishes for; the smaller number counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wish {
    /// Jobs that may be created; may be negative.
    pub effective_max: i64,
    /// Jobs that there is work for.
    pub scale_to: i64,
}

/// How many jobs a strategy wishes for.
pub fn wish(strategy: &ScalingStrategy, queue: &Queue, load: Load) -> Wish {
    let (max_scale, scale_to) = (queue.max_scale(), queue.length);
    let Load { running, pending, max } = load;
    let share: Option<f64> = strategy.custom_scaling_running_job_percentage.parse().ok();
    match (strategy.strategy.as_str(), share) {
        ("custom", Some(share)) => {
            let deduction = i64::from(strategy.custom_scaling_queue_length_deduction.unwrap_or(0));
            let left = max_scale.saturating_sub(deduction).saturating_sub(part(running, share));
            Wish { effective_max: left.min(max), scale_to }
        }
        ("accurate", _) if max_scale.saturating_add(running).saturating_sub(pending) > max => {
            Wish { effective_max: max.saturating_sub(running), scale_to }
        }
        ("accurate", _) => Wish { effective_max: max_scale.saturating_sub(pending), scale_to },
        ("eager", _) => {
            let free = max.saturating_sub(running).saturating_sub(pending);
            Wish { effective_max: free.min(max_scale), scale_to: max }
        }
        _ => Wish { effective_max: max_scale.saturating_sub(running), scale_to },
    }
}

/// A share of a number, cut off.
#[allow(clippy::cast_possible_truncation, clippy::cast_precision_loss)]
fn part(of: i64, share: f64) -> i64 {
    (of as f64 * share) as i64
}
