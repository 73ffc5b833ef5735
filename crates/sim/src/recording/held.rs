//! Why a count differs from the recommendation.

use engine::normalize::{ScalingLimit, StabilizationHold};
use engine::{Course, Decision, ScaleOutcome};
use serde::Serialize;

/// Why a count differs from the recommendation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum HoldReason {
    /// It does not differ.
    #[default]
    Nothing,
    /// The scale-down window.
    DownWindow,
    /// The scale-up window.
    UpWindow,
    /// The scale-up rate.
    UpRate,
    /// The scale-down rate.
    DownRate,
    /// The lower bound.
    Min,
    /// The upper bound.
    Max,
    /// Metrics could not be read, or pods could not be identified.
    Failure,
    /// The target was scaled to zero by another client.
    Paused,
}

impl HoldReason {
    /// All reasons; the index in this list is the code.
    pub const ALL: [Self; 9] = [
        Self::Nothing,
        Self::DownWindow,
        Self::UpWindow,
        Self::UpRate,
        Self::DownRate,
        Self::Min,
        Self::Max,
        Self::Failure,
        Self::Paused,
    ];

    /// The reason of a decision.
    pub fn of(decision: &Decision) -> Self {
        match (&decision.course, &decision.normalized) {
            _ if matches!(decision.outcome, ScaleOutcome::Failed | ScaleOutcome::WriteFailed(_)) => {
                Self::Failure
            }
            (Course::Disabled, _) => Self::Paused,
            (Course::AboveMax, _) => Self::Max,
            (Course::BelowMin, _) => Self::Min,
            (_, Some(normalized)) => match (normalized.limited.limit, normalized.stabilized.hold) {
                (ScalingLimit::TooFew, _) => Self::Min,
                (ScalingLimit::TooMany, _) => Self::Max,
                (ScalingLimit::Up, _) => Self::UpRate,
                (ScalingLimit::Down, _) => Self::DownRate,
                (ScalingLimit::Within, StabilizationHold::Down) => Self::DownWindow,
                (ScalingLimit::Within, StabilizationHold::Up) => Self::UpWindow,
                (ScalingLimit::Within, StabilizationHold::None) => Self::Nothing,
            },
            (_, None) => Self::Nothing,
        }
    }

    /// Its index in [`HoldReason::ALL`].
    pub fn code(self) -> u8 {
        Self::ALL.iter().position(|held| *held == self).unwrap_or_default() as u8
    }
}
