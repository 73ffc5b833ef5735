//! Zero, or at least the lower bound: what activity has to say, before metrics decide between the bounds.
//!
//! Whoever scales by events knows whether there is something to do at all. That is decided elsewhere; here it becomes
//! part of the same decision, so that one record tells of both.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::decision::{Course, Decision, ScaleOutcome};
use crate::observe::Observation;
use crate::state::State;
use crate::step::{self, DecisionDetail};

/// What activity had to say.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Activation {
    /// What is active: names of metrics, or why it is taken to be.
    pub by: Vec<String>,
    /// The count at which nothing is done.
    pub rest: i32,
    /// What follows.
    pub verdict: ActivationVerdict,
}

/// What follows from activity.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ActivationVerdict {
    /// There is something to do: rest is left.
    Wakes,
    /// Somebody else scaled below the lower bound.
    Lifts,
    /// There has been nothing to do for long enough.
    Rests {
        /// Since when; absent if there never was anything.
        since: Option<Timestamp>,
    },
    /// There is nothing to do, and nothing is done.
    Resting,
    /// There is nothing to do, but not for long: until then metrics decide.
    Cooling {
        /// Until when.
        until: Timestamp,
    },
    /// Metrics decide between the bounds.
    Metrics,
    /// The count stays, and why.
    Held(String),
}

impl State {
    /// A step in which activity decides, and metrics are not looked at. If [`Decision::write`] asks for a write, carry it
    /// out and tell [`State::settle`].
    pub fn activity_step(
        &mut self,
        now: Timestamp,
        seen: &Observation,
        activation: Activation,
        desired: i32,
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

    /// A step that leaves rest for as many as metrics propose, and for `least` at least. Where metrics cannot decide it
    /// is `least`: there is something to do.
    pub fn waking_step(
        &mut self,
        now: Timestamp,
        seen: &Observation,
        activation: Activation,
        least: i32,
        detail: DecisionDetail,
    ) -> Decision {
        let by_metrics = self.step_on(now, seen, Some(Course::Metrics), detail);
        if !matches!(by_metrics.outcome, ScaleOutcome::Pending | ScaleOutcome::Kept)
            || by_metrics.course != Course::Metrics
            || by_metrics.desired <= least
        {
            return self.activity_step(now, seen, activation, least);
        }
        Decision { activation: Some(activation), ..by_metrics }
    }

    /// What was recommended and done before a rest says nothing about what comes after it.
    pub fn forget(&mut self) {
        *self = Self::default();
    }
}

impl Activation {
    /// Why the count should change, or stay.
    pub fn reason(&self) -> String {
        match &self.verdict {
            ActivationVerdict::Wakes if self.by.is_empty() => "activated".to_owned(),
            ActivationVerdict::Wakes => format!("activated by {}", self.by.join(", ")),
            ActivationVerdict::Lifts => "below the lower bound".to_owned(),
            ActivationVerdict::Rests { .. } => "nothing active".to_owned(),
            ActivationVerdict::Resting | ActivationVerdict::Cooling { .. } | ActivationVerdict::Metrics => {
                String::new()
            }
            ActivationVerdict::Held(why) => why.clone(),
        }
    }
}
