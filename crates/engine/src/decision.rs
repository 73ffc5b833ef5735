//! One decision, complete: what was seen, what each metric proposed and why, which limit applied, the outcome.
//! Status, events, `why`, reports and the simulator read this value; none of them computes anything again.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::activation::Activation;
use crate::config::ControllerConfig;
use crate::evaluate::Evaluation;
use crate::normalize::Normalized;
use crate::observe::{Scale, ScaleReadError};
use crate::recommend::Recommendation;
use crate::report::{Event, Status, condition};
use crate::spec::{Spec, Tolerances};

/// What one step decided. [`crate::State::settle`] completes it once the scale write is known.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Decision {
    /// When.
    pub at: Timestamp,
    /// The scale that was read; absent if it could not be.
    pub scale: Option<Scale>,
    /// Which way the step took.
    pub course: Course,
    /// What activity had to say, where the target is scaled by events.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub activation: Option<Activation>,
    /// How many pods the target's selector matches, where that was looked at.
    pub selected: Option<usize>,
    /// How far ratios may be from 1 before they count.
    pub tolerances: Tolerances,
    /// What each metric said, in the order of the spec.
    pub evaluations: Vec<Evaluation>,
    /// How they became one number; absent if metrics were not looked at or failed.
    pub recommendation: Option<Recommendation>,
    /// How windows and limits changed that number.
    pub normalized: Option<Normalized>,
    /// The count that should be.
    pub desired: i32,
    /// Why the count should change: the words of the event, possibly empty (T8).
    pub reason: String,
    /// What became of it.
    pub outcome: ScaleOutcome,
    /// The status to store.
    pub status: Status,
    /// Events in order.
    pub events: Vec<Event>,
    /// Events that follow the status write.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) late_events: Vec<Event>,
    /// What the step returns as its error.
    pub error: Option<StepError>,
    /// Errors that are only logged.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub logged: Vec<String>,
}

/// Which way a step took (docs/spec/hpa.md 3.4).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Course {
    /// The scale could not be read.
    NoScale(ScaleReadError),
    /// Somebody scaled the target to zero: paused.
    Disabled,
    /// Above the upper bound: straight back, no metrics.
    AboveMax,
    /// Below the lower bound: straight back, no metrics.
    BelowMin,
    /// Metrics decide.
    Metrics,
    /// Activity decides: at rest, or on the way there or back ([`Decision::activation`]).
    Activity,
}

/// What became of a decision.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ScaleOutcome {
    /// Nothing could be decided; the count stays.
    Failed,
    /// The count stays as it is.
    Kept,
    /// The count is to be written; [`crate::State::settle`] has not been told how that went.
    Pending,
    /// The count was written.
    Scaled,
    /// The count would have been written, but this autoscaler only looks.
    DryRun,
    /// The write failed.
    WriteFailed(String),
}

/// The error of a step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{text}")]
pub struct StepError {
    /// Text.
    pub text: String,
    /// Whose fault it is.
    pub class: ErrorClass,
}

/// Whose fault an error is; the `error` label of metrics (docs/spec/hpa.md 8).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ErrorClass {
    /// The object's.
    Spec,
    /// Anything else's.
    Internal,
}

impl Course {
    /// The way a step takes once the scale is known (docs/spec/hpa.md 3.4).
    pub fn choose(config: &ControllerConfig, spec: &Spec, status: &Status, scale: &Scale) -> Self {
        let current = scale.spec_replicas;
        if current == 0 {
            let ours = config.gates.scale_to_zero && status.is_true(condition::SCALED_TO_ZERO);
            return if ours && (spec.min != 0 || spec.can_leave_zero()) {
                Self::Metrics
            } else {
                Self::Disabled
            };
        }
        if current > spec.max {
            Self::AboveMax
        } else if current < spec.min {
            Self::BelowMin
        } else {
            Self::Metrics
        }
    }
}

impl Decision {
    /// The count that was read; zero if it could not be.
    pub fn current(&self) -> i32 {
        self.scale.as_ref().map_or(0, |s| s.spec_replicas)
    }

    /// The count to write to the target's scale, if any.
    pub fn write(&self) -> Option<i32> {
        (self.outcome == ScaleOutcome::Pending).then_some(self.desired)
    }

    /// The `action` label of metrics: what was really done.
    pub fn action(&self) -> &'static str {
        match self.outcome {
            ScaleOutcome::Scaled => action(self.desired, self.current()),
            _ => "none",
        }
    }

    /// The `error` label of metrics.
    pub fn error_class(&self) -> &'static str {
        label(self.error.as_ref().map(|e| e.class))
    }
}

/// The `action` label for a change from `current` to `proposed`.
pub(crate) fn action(proposed: i32, current: i32) -> &'static str {
    match proposed.cmp(&current) {
        std::cmp::Ordering::Greater => "scale_up",
        std::cmp::Ordering::Less => "scale_down",
        std::cmp::Ordering::Equal => "none",
    }
}

/// The `error` label for an error of this class.
pub(crate) fn label(class: Option<ErrorClass>) -> &'static str {
    match class {
        None => "none",
        Some(ErrorClass::Spec) => "spec",
        Some(ErrorClass::Internal) => "internal",
    }
}
