//! Bounds of a simulation, so that it ends in reasonable time. Each is far beyond sensible use.

use super::faults::Faults;
use super::{AutoscalerPlan, WorkloadPlan};
use crate::time::Millis;
use crate::workload::ModelTiming;

/// Maximum number of pods of one workload.
pub(super) const MAX_PODS_PER_WORKLOAD: usize = 10_000;
/// Maximum duration of a simulation.
pub(super) const MAX_SCENARIO_DURATION: Millis = Millis::from_hours(400 * 24);
/// Maximum evaluations of load shapes over all workloads; they take about half a minute.
const MAX_LOAD_EVALUATIONS: i64 = 500_000_000;
/// Maximum reads of pods and series over all decisions; they take about a minute.
const MAX_SAMPLE_READS: i64 = 2_000_000_000;
/// Maximum level of a load, in units per second.
pub(super) const MAX_UNITS_PER_SECOND: f64 = 1e9;
/// Maximum of all other delays and periods.
pub(super) const MAX_SCENARIO_DELAY: Millis = Millis::from_hours(24);

/// Rejects a scenario that would take too long.
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
    if looks > MAX_LOAD_EVALUATIONS {
        let message = format!(
            "this would evaluate shapes of load {looks} times; {MAX_LOAD_EVALUATIONS} times are allowed"
        );
        faults.add_with_hint(
            "spec.duration",
            message,
            Some("shorten `duration` or lengthen `tick`".to_owned()),
        );
    }
    let looks = autoscalers.iter().map(|autoscaler| {
        let decisions = duration.0 / autoscaler.period.0.max(1);
        let pods = usize::try_from(autoscaler.spec.max.get()).unwrap_or_default();
        let effort: usize = autoscaler.inputs.iter().map(|input| input.effort(pods)).sum();
        decisions.saturating_mul(effort as i64)
    });
    let looks = looks.fold(0_i64, i64::saturating_add);
    if looks > MAX_SAMPLE_READS {
        let message =
            format!("this would read pods and metrics {looks} times; {MAX_SAMPLE_READS} times are allowed");
        let hint = "shorten `duration`, lower `maxReplicas` or lengthen `controller.syncPeriod`";
        faults.add_with_hint("spec.duration", message, Some(hint.to_owned()));
    }
}
