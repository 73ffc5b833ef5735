//! The complete record of one decision: observed scale, proposal of each metric, applied limits, outcome.
//! Status, events, `why`, reports and the simulator read this value; none of them computes anything again.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::activation::Activation;
pub use crate::course::Course;
use crate::error;
pub use crate::error::{ErrorClass, StepError};
use crate::evaluate::Evaluation;
use crate::failure::SelectionFailure;
use crate::normalize::Normalized;
use crate::observe::Scale;
use crate::provenance::Provenance;
use crate::recommend::Recommendation;
use crate::report::{Event, Status};
use crate::spec::Tolerances;
use crate::units::Replicas;

/// What one step decided. [`crate::State::settle`] completes it once the result of the scale write is known.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Decision {
    /// Time of the step.
    #[serde(serialize_with = "crate::nanoseconds::serialize")]
    pub at: Timestamp,
    /// The target's scale; absent if it could not be read.
    pub scale: Option<Scale>,
    /// The path that the step took.
    pub course: Course,
    /// The activation phase, for targets that are scaled by events.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub activation: Option<Activation>,
    /// Number of pods that the target's selector matches, where pods were listed.
    pub selected: Option<usize>,
    /// Why the target's pods could not be identified.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selection: Option<SelectionFailure>,
    /// Tolerances in force.
    pub tolerances: Tolerances,
    /// The evaluation of each metric, in the order of the spec.
    pub evaluations: Vec<Evaluation>,
    /// Where the samples of each metric came from, in the order of the spec; empty if the caller does not know it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub provenance: Vec<Provenance>,
    /// The recommendation from all proposals; absent if metrics were not evaluated or failed.
    pub recommendation: Option<Recommendation>,
    /// The recommendation after stabilization and limits.
    pub normalized: Option<Normalized>,
    /// The desired replica count.
    pub desired: Replicas,
    /// The reason for a change, as the event states it; may be empty (T8).
    pub reason: String,
    /// The outcome.
    pub outcome: ScaleOutcome,
    /// The status to store.
    pub status: Status,
    /// Events, in the order in which they are recorded.
    pub events: Vec<Event>,
    /// Events that are recorded after the status write.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) late_events: Vec<Event>,
    /// The error that the step returns.
    pub error: Option<StepError>,
    /// Errors that are only logged.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub logged: Vec<String>,
}

/// The outcome of a decision.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ScaleOutcome {
    /// No decision was possible; the replica count is kept.
    Failed,
    /// The replica count is kept.
    Kept,
    /// The replica count has to be written; [`crate::State::settle`] was not called yet.
    Pending,
    /// The replica count was written.
    Scaled,
    /// The replica count would have been written, but the autoscaler is in dry-run mode.
    DryRun,
    /// The write failed.
    WriteFailed(String),
}

impl Decision {
    /// The replica count that was read; zero if it could not be read.
    pub fn current(&self) -> Replicas {
        self.scale.as_ref().map_or(Replicas::ZERO, |s| s.spec_replicas)
    }

    /// The replica count to write to the target's scale, if any.
    pub fn write(&self) -> Option<Replicas> {
        (self.outcome == ScaleOutcome::Pending).then_some(self.desired)
    }

    /// The proposal of all metrics as Kubernetes logs it: `proposing 8 (based on METRIC from TIME)`.
    pub fn proposal_line(&self) -> Option<String> {
        let recommendation = self.recommendation.as_ref()?;
        let taken =
            recommendation.winner.and_then(|winner| self.provenance.get(winner)).and_then(|from| from.oldest);
        let taken = taken.map_or_else(|| "an unknown time".to_owned(), |at| at.to_string());
        Some(format!(
            "proposing {} (based on {} from {taken})",
            recommendation.replicas, recommendation.metric
        ))
    }

    /// The `action` label of exported metrics: the change that was made.
    pub fn action(&self) -> &'static str {
        match self.outcome {
            ScaleOutcome::Scaled => action(self.desired, self.current()),
            _ => "none",
        }
    }

    /// The `error` label of exported metrics.
    pub fn error_class(&self) -> &'static str {
        error::label(self.error.as_ref().map(|e| e.class))
    }
}

/// The `action` label for a change from `current` to `proposed`.
pub(crate) fn action(proposed: Replicas, current: Replicas) -> &'static str {
    match proposed.cmp(&current) {
        std::cmp::Ordering::Greater => "scale_up",
        std::cmp::Ordering::Less => "scale_down",
        std::cmp::Ordering::Equal => "none",
    }
}
