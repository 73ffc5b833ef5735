//! Steps in which the activation phase decides.

use jiff::Timestamp;

use crate::activation::Activation;
use crate::decision::{Course, Decision, ScaleOutcome};
use crate::observe::Observation;
use crate::state::State;
use crate::step::{self, DecisionDetail};
use crate::units::Replicas;

impl State {
    /// A step in which only the activation phase decides; metrics are not evaluated. If [`Decision::write`] returns a
    /// write, the caller carries it out and reports it to [`State::settle`].
    pub fn activity_step(
        &mut self,
        now: Timestamp,
        seen: &Observation,
        activation: Activation,
        desired: Replicas,
    ) -> Decision {
        let mut decision = step::begin(now, seen);
        let current = match &seen.scale {
            Ok(scale) => scale.spec_replicas,
            Err(failure) => {
                step::no_scale(&mut decision, seen, failure);
                return decision;
            }
        };
        decision.course = Course::Activity;
        step::got_scale(&mut decision, now);
        decision.desired = desired;
        decision.reason = activation.reason();
        decision.activation = Some(activation);
        if desired == current {
            decision.outcome = ScaleOutcome::Kept;
            decision.store(now, false);
        } else {
            decision.outcome = ScaleOutcome::Pending;
        }
        decision
    }

    /// A step that activates the target: scales to the count that metrics propose, at least to `least`. If metrics
    /// cannot decide, it scales to `least`.
    pub fn waking_step(
        &mut self,
        now: Timestamp,
        seen: &Observation,
        activation: Activation,
        least: Replicas,
        detail: DecisionDetail,
    ) -> Decision {
        let by_metrics = self.step_on(now, seen, Some(Course::Metrics), detail, &mut |_| ());
        if !matches!(by_metrics.outcome, ScaleOutcome::Pending | ScaleOutcome::Kept)
            || by_metrics.course != Course::Metrics
            || by_metrics.desired <= least
        {
            return self.activity_step(now, seen, activation, least);
        }
        Decision { activation: Some(activation), ..by_metrics }
    }
}
