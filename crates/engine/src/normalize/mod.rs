//! Step 4: windows, rates and bounds turn a recommendation into a count (docs/spec/hpa.md 6).

mod limit;
mod stabilize;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::config::ControllerConfig;
use crate::report::{Status, condition};
use crate::spec::Spec;
use crate::state::State;

/// How windows and limits changed a recommendation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Normalized {
    /// What windows made of the recommendation.
    pub stabilized: Stabilized,
    /// What rates and bounds made of that.
    pub limited: Limited,
}

/// What windows made of a recommendation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Stabilized {
    /// The recommendation.
    pub recommended: i32,
    /// The count after windows.
    pub replicas: i32,
    /// Which window held it.
    pub hold: StabilizationHold,
    /// Window for shrinking.
    pub down_window: SignedDuration,
    /// Window for growing; none without `behavior`.
    pub up_window: Option<SignedDuration>,
    /// The earlier recommendation that decided, if one did.
    pub by: Option<EarlierRecommendation>,
    /// When the recommendation would pass, if it stays the same.
    pub until: Option<Timestamp>,
}

/// An earlier recommendation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EarlierRecommendation {
    /// How many replicas.
    pub replicas: i32,
    /// When.
    pub at: Timestamp,
}

/// Which window held a recommendation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum StabilizationHold {
    /// None.
    None,
    /// Earlier ones were higher.
    Down,
    /// Earlier ones were lower.
    Up,
}

/// What rates and bounds made of a count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Limited {
    /// The count.
    pub replicas: i32,
    /// Which limit is the reason.
    pub limit: ScalingLimit,
    /// The most that rates allow in this step, where they were looked at.
    pub rate: Option<RateLimit>,
}

/// What rates allow in this step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RateLimit {
    /// The count they allow.
    pub replicas: i32,
    /// The policy (by its place) that allows it; absent for the classic limit and when growing or shrinking is disabled.
    pub policy: Option<usize>,
    /// The count at the start of that policy's period.
    pub period_start: i32,
}

/// Which limit is the reason for a count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ScalingLimit {
    /// None.
    Within,
    /// The lower bound.
    TooFew,
    /// The upper bound.
    TooMany,
    /// The rate of growing.
    Up,
    /// The rate of shrinking.
    Down,
}

impl ScalingLimit {
    fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::Within => ("DesiredWithinRange", "the desired count is within the acceptable range"),
            Self::TooFew => {
                ("TooFewReplicas", "the desired replica count is less than the minimum replica count")
            }
            Self::TooMany => {
                ("TooManyReplicas", "the desired replica count is more than the maximum replica count")
            }
            Self::Up => {
                ("ScaleUpLimit", "the desired replica count is increasing faster than the maximum scale rate")
            }
            Self::Down => (
                "ScaleDownLimit",
                "the desired replica count is decreasing faster than the maximum scale rate",
            ),
        }
    }
}

impl StabilizationHold {
    fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::None => ("ReadyForNewScale", "recommended size matches current size"),
            Self::Down => (
                "ScaleDownStabilized",
                "recent recommendations were higher than current one, applying the highest recent recommendation",
            ),
            Self::Up => (
                "ScaleUpStabilized",
                "recent recommendations were lower than current one, applying the lowest recent recommendation",
            ),
        }
    }
}

/// Normalizes `desired`, remembers it, and says in `status` what held it.
pub(crate) fn normalize(
    state: &mut State,
    now: Timestamp,
    config: &ControllerConfig,
    spec: &Spec,
    current: i32,
    desired: i32,
    status: &mut Status,
) -> Normalized {
    let window = config.downscale_stabilization;
    let (stabilized, limited) = match &spec.behavior {
        None => {
            let stabilized = stabilize::classic(&mut state.recommendations, now, window, desired);
            let limited = limit::classic(spec, current, stabilized.replicas);
            (stabilized, limited)
        }
        Some(behavior) => {
            let recommendations = &mut state.recommendations;
            let stabilized =
                stabilize::with_behavior(recommendations, now, window, behavior, current, desired);
            let limited = limit::with_behavior(state, now, behavior, spec, current, stabilized.replicas);
            (stabilized, limited)
        }
    };
    let (reason, message) = stabilized.hold.words();
    status.set(now, condition::ABLE_TO_SCALE, true, reason, message);
    let (reason, message) = limited.limit.words();
    let held = limited.replicas != stabilized.replicas;
    status.set(now, condition::SCALING_LIMITED, held, reason, message);
    Normalized { stabilized, limited }
}
