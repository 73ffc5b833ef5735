//! The end of a step, when the results of the scale and status writes are known (docs/spec/hpa.md 3.7, 3.8).

use jiff::Timestamp;

use crate::act::ScaleWriteError;
use crate::course::scales_to_zero;
use crate::decision::{Course, Decision, ErrorClass, ScaleOutcome, StepError, action};
use crate::error::{RecordedError, label};
use crate::observe::Observation;
use crate::report::{Event, Status, condition};
use crate::state::State;
use crate::units::Replicas;

/// Result of a decision's scale write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScaleWriteResult {
    /// The new replica count was written.
    Done,
    /// Nothing was written: dry-run mode.
    DryRun,
    /// The write failed after all retries.
    Failed(ScaleWriteError),
}

impl State {
    /// Completes a decision that required a scale write.
    pub fn settle(
        &mut self,
        now: Timestamp,
        seen: &Observation,
        decision: &mut Decision,
        written: ScaleWriteResult,
    ) {
        if decision.outcome != ScaleOutcome::Pending {
            return;
        }
        let (current, desired) = (decision.current(), decision.desired);
        let size = format!("New size: {desired}; reason: {}", decision.reason);
        match written {
            ScaleWriteResult::Failed(ScaleWriteError { text, .. }) => {
                decision.events.push(Event::warning("FailedRescale", format!("{size}; error: {text}")));
                decision.status.set(
                    now,
                    condition::ABLE_TO_SCALE,
                    false,
                    "FailedUpdateScale",
                    format!("the HPA controller was unable to update the target scale: {text}"),
                );
                decision.status.current_replicas = current;
                if decision.course != Course::Metrics {
                    decision.status.metrics = None;
                }
                let text_out = format!("failed to rescale {}: {text}", seen.spec.reference());
                decision.error = Some(StepError { text: text_out, class: ErrorClass::Internal });
                decision.outcome = ScaleOutcome::WriteFailed(text);
            }
            ScaleWriteResult::DryRun => {
                decision.outcome = ScaleOutcome::DryRun;
                decision.store(now, false);
            }
            ScaleWriteResult::Done => {
                decision.outcome = ScaleOutcome::Scaled;
                decision.status.set(
                    now,
                    condition::ABLE_TO_SCALE,
                    true,
                    "SucceededRescale",
                    format!("the HPA controller was able to update the target scale to {desired}"),
                );
                let deactivates = decision.course == Course::Activity && desired < current;
                if decision.course != Course::Activity {
                    decision.events.push(Event::normal("SuccessfulRescale", size));
                }
                if deactivates {
                    self.forget();
                } else if let Some(behavior) = &seen.spec.behavior {
                    self.record(now, behavior, current, desired);
                }
                mark_zero(&mut decision.status, now, seen, current, desired);
                decision.store(now, true);
            }
        }
    }
}

/// Sets the condition `ScaledToZero` (docs/spec/hpa.md 3.7).
fn mark_zero(status: &mut Status, now: Timestamp, seen: &Observation, current: Replicas, desired: Replicas) {
    if !scales_to_zero(&seen.config, &seen.spec, &seen.status) {
        status.unset(condition::SCALED_TO_ZERO);
        return;
    }
    let ours = current > 0 && desired == 0 && seen.spec.min == 0 && seen.spec.can_leave_zero();
    let (reason, message) = if ours {
        ("ScaledToZero", "the HPA controller scaled the workload to zero")
    } else {
        ("NotScaledToZero", "the HPA controller did not scale the workload to zero")
    };
    status.set(now, condition::SCALED_TO_ZERO, ours, reason, message);
}

impl Decision {
    /// Fills the status at the end of a step (docs/spec/hpa.md 3.8).
    pub(crate) fn store(&mut self, now: Timestamp, rescaled: bool) {
        self.status.current_replicas = self.current();
        self.status.desired_replicas = self.desired;
        if self.course != Course::Metrics {
            self.status.metrics = None;
        }
        if rescaled {
            self.status.last_scale_time = Some(now);
        }
    }

    /// Reports the result of the status write (`Ok` also if nothing had to be written). Called once, last.
    pub fn status_written(&mut self, name: &str, result: Result<(), RecordedError>) {
        if let Err(error) = result {
            self.events.push(Event::warning("FailedUpdateStatus", error.text()));
            let text = format!("failed to update status for {name}: {error}");
            if matches!(self.outcome, ScaleOutcome::Failed | ScaleOutcome::WriteFailed(_)) {
                self.logged.push(text);
            } else {
                self.error = Some(StepError { text, class: ErrorClass::Internal });
            }
        }
        self.events.append(&mut self.late_events);
    }

    /// `[metric type, action, error]` labels of each metric computed (docs/spec/hpa.md 8).
    pub fn metric_labels<'a>(
        &'a self,
        before: &'a Status,
    ) -> impl Iterator<Item = (&'a str, &'static str, &'static str)> {
        self.evaluations.iter().map(|e| match &e.result {
            // The proposal is compared with the count of the previous reconcile, as in Kubernetes.
            Ok(p) => (e.kind.as_str(), action(p.replicas, before.current_replicas), label(None)),
            Err(f) => (e.kind.as_str(), "none", label(Some(f.class))),
        })
    }
}
