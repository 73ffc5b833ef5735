//! Totals of a run.

use engine::evaluate::Arithmetic;
use engine::spec::Tolerances;
use engine::{ControllerConfig, Decision, Replicas, ScaleOutcome};
use serde::Serialize;

use crate::scenario::AutoscalerPlan;
use crate::workload::WorkloadSummary;

/// Totals of a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Summary {
    /// Per workload, in the order of the scenario.
    pub workloads: Vec<WorkloadSummary>,
    /// Per autoscaler, in the order of the scenario.
    pub autoscalers: Vec<AutoscalerSummary>,
}

/// Totals of one autoscaler.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AutoscalerSummary {
    /// Decisions.
    pub decisions: u64,
    /// Scale-ups; in dry-run mode those that it would have made.
    pub ups: u64,
    /// Scale-downs.
    pub downs: u64,
    /// Changes in the direction opposite to the previous change.
    pub reversals: u64,
    /// Decisions that failed because metrics could not be read or pods could not be identified.
    pub failures: u64,
    /// Seconds in which some metric was above its target by more than the tolerance.
    pub above_target_seconds: f64,
    /// Seconds in which more replicas were recommended than the upper bound allows.
    pub at_max_seconds: f64,
}

/// Running totals of an autoscaler.
#[derive(Clone, Debug, Default)]
pub struct AutoscalerTally {
    sums: AutoscalerSummary,
    last_up: Option<bool>,
    /// The change of the last decision in dry-run mode.
    dry_run_change: Option<(Replicas, Replicas)>,
}

impl AutoscalerTally {
    /// Adds a decision.
    pub fn add(&mut self, plan: &AutoscalerPlan, config: &ControllerConfig, decision: &Decision) {
        let seconds = plan.period.as_secs_f64();
        let sums = &mut self.sums;
        sums.decisions += 1;
        let wanted = (decision.current(), decision.desired);
        let change = (decision.outcome == ScaleOutcome::DryRun).then_some(wanted);
        let before = std::mem::replace(&mut self.dry_run_change, change);
        match decision.outcome {
            ScaleOutcome::DryRun if before == change => {}
            ScaleOutcome::Scaled | ScaleOutcome::DryRun => {
                let up = wanted.1 > wanted.0;
                *(if up { &mut sums.ups } else { &mut sums.downs }) += 1;
                sums.reversals += u64::from(self.last_up.is_some_and(|last| last != up));
                self.last_up = Some(up);
            }
            ScaleOutcome::Failed | ScaleOutcome::WriteFailed(_) => sums.failures += 1,
            ScaleOutcome::Kept | ScaleOutcome::Pending => {}
        }
        let most = 1.0 + Tolerances::of(&plan.spec, config).up;
        let proposals = decision.evaluations.iter().filter_map(|e| e.result.as_ref().ok());
        if proposals.into_iter().any(|proposal| ratio(&proposal.sum) > most) {
            sums.above_target_seconds += seconds;
        }
        if decision.recommendation.as_ref().is_some_and(|r| r.replicas > plan.spec.max) {
            sums.at_max_seconds += seconds;
        }
    }

    /// The totals so far.
    pub fn summary(&self) -> AutoscalerSummary {
        self.sums.clone()
    }
}

fn ratio(sum: &Arithmetic) -> f64 {
    match sum {
        Arithmetic::PerPod(sum) => sum.ratio,
        Arithmetic::Total(sum) => sum.ratio,
        Arithmetic::PerReplica(sum) => sum.ratio.unwrap_or_default(),
    }
}
