//! Bounds that keep a simulation from never ending, each far beyond sensible use.

use super::faults::Faults;
use super::{AutoscalerPlan, WorkloadPlan};
use crate::time::Millis;
use crate::workload::ModelTiming;

/// Pods of one workload.
pub(super) const MOST_PODS: usize = 10_000;
/// Length of a simulation.
pub(super) const LONGEST: Millis = Millis::from_hours(400 * 24);
/// Looks at shapes of load, over all workloads: half a minute or so.
const MOST_TICKS: i64 = 500_000_000;
/// Looks at pods and series, over all decisions: a minute or so.
const MOST_LOOKS: i64 = 2_000_000_000;
/// Levels of load, in units per second.
pub(super) const MOST_LOAD: f64 = 1e9;
/// Every other delay and period.
pub(super) const LONGEST_DELAY: Millis = Millis::from_hours(24);

/// Refuses what would take too long.
pub(super) fn check(
    faults: &mut Faults<'_>,
    duration: Millis,
    cadence: &ModelTiming,
    workloads: &[WorkloadPlan],
    autoscalers: &[AutoscalerPlan],
) {
    let ticks = duration.0 / cadence.tick.0.max(1);
    let shapes: usize = workloads.iter().map(|w| 1 + w.plan.load.len()).sum();
    let looks = ticks.saturating_mul(shapes as i64);
    if looks > MOST_TICKS {
        let message =
            format!("this would look at shapes of load {looks} times; {MOST_TICKS} times are allowed");
        faults.add_with_hint(
            "spec.duration",
            message,
            Some("shorten `duration` or lengthen `tick`".to_owned()),
        );
    }
    let looks = autoscalers.iter().map(|autoscaler| {
        let decisions = duration.0 / autoscaler.period.0.max(1);
        let pods = usize::try_from(autoscaler.spec.max).unwrap_or_default();
        let effort: usize = autoscaler.inputs.iter().map(|input| input.effort(pods)).sum();
        decisions.saturating_mul(effort as i64)
    });
    let looks = looks.fold(0_i64, i64::saturating_add);
    if looks > MOST_LOOKS {
        let message =
            format!("this would look at pods and metrics {looks} times; {MOST_LOOKS} times are allowed");
        let hint = "shorten `duration`, lower `maxReplicas` or lengthen `controller.syncPeriod`";
        faults.add_with_hint("spec.duration", message, Some(hint.to_owned()));
    }
}
