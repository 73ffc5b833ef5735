//! What kept a count from being what metrics recommend.

use engine::normalize::{Hold, Limit};
use engine::{Course, Decision, Outcome};
use serde::Serialize;

/// What kept a count from being what metrics recommend.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Held {
    /// Nothing.
    #[default]
    Nothing,
    /// The window for shrinking.
    DownWindow,
    /// The window for growing.
    UpWindow,
    /// The rate of growing.
    UpRate,
    /// The rate of shrinking.
    DownRate,
    /// The lower bound.
    Min,
    /// The upper bound.
    Max,
    /// Metrics or pods that could not be told.
    Failure,
    /// The target was scaled to zero by somebody else.
    Paused,
}

impl Held {
    /// All of them; the place in this list is the code.
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

    /// What held the count of a decision.
    pub fn of(decision: &Decision) -> Self {
        match (&decision.course, &decision.normalized) {
            _ if matches!(decision.outcome, Outcome::Failed | Outcome::WriteFailed(_)) => Self::Failure,
            (Course::Disabled, _) => Self::Paused,
            (Course::AboveMax, _) => Self::Max,
            (Course::BelowMin, _) => Self::Min,
            (_, Some(normalized)) => match (normalized.limited.limit, normalized.stabilized.hold) {
                (Limit::TooFew, _) => Self::Min,
                (Limit::TooMany, _) => Self::Max,
                (Limit::Up, _) => Self::UpRate,
                (Limit::Down, _) => Self::DownRate,
                (Limit::Within, Hold::Down) => Self::DownWindow,
                (Limit::Within, Hold::Up) => Self::UpWindow,
                (Limit::Within, Hold::None) => Self::Nothing,
            },
            (_, None) => Self::Nothing,
        }
    }

    /// Its place in [`Held::ALL`].
    pub fn code(self) -> u8 {
        Self::ALL.iter().position(|held| *held == self).unwrap_or_default() as u8
    }
}
