//! Step 4: applies stabilization windows, rate limits and bounds to a recommendation (docs/spec/hpa.md 6).

mod limit;
mod next;
mod stabilize;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

pub use next::NextChange;
pub(crate) use next::{TooManyEntries, next_change};

use crate::config::ControllerConfig;
use crate::report::{Status, condition};
use crate::spec::Spec;
use crate::state::State;
use crate::units::Replicas;

/// A recommendation after stabilization and limits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Normalized {
    /// The recommendation after the stabilization windows.
    pub stabilized: Stabilized,
    /// The stabilized count after rate limits and bounds.
    pub limited: Limited,
    /// When the count changes next although the recommendation stays: a window or a rate limit holds it until then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<NextChange>,
    /// Whether the next change is not known, because too many policies, scale events and recommendations can limit the count.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub next_unknown: bool,
}

/// A recommendation after the stabilization windows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Stabilized {
    /// The recommendation.
    pub recommended: Replicas,
    /// The count after the windows.
    pub replicas: Replicas,
    /// The window that changed the recommendation.
    pub hold: StabilizationHold,
    /// Scale-down window.
    #[serde(serialize_with = "crate::nanoseconds::serialize")]
    pub down_window: SignedDuration,
    /// Scale-up window; absent without `behavior`.
    #[serde(serialize_with = "crate::nanoseconds::serialize")]
    pub up_window: Option<SignedDuration>,
    /// The earlier recommendation that replaced the current one, if one did.
    pub by: Option<EarlierRecommendation>,
    /// Until when the window holds this count: before this time, recommendations beyond it do not apply.
    #[serde(serialize_with = "crate::nanoseconds::serialize")]
    pub until: Option<Timestamp>,
}

impl Stabilized {
    /// Until when the window holds at least this count (scale-down) or at most this count (scale-up): until the recommendation that it
    /// remembers leaves it.
    pub fn holds_until(&self) -> Option<Timestamp> {
        let window = match self.hold {
            StabilizationHold::None => return None,
            StabilizationHold::Down => self.down_window,
            StabilizationHold::Up => self.up_window?,
        };
        self.by?.at.checked_add(window).ok()
    }
}

/// An earlier recommendation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EarlierRecommendation {
    /// Recommended replicas.
    pub replicas: Replicas,
    /// Time of the recommendation.
    pub at: Timestamp,
}

/// The window that changed a recommendation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum StabilizationHold {
    /// No window.
    None,
    /// The scale-down window: an earlier recommendation was higher.
    Down,
    /// The scale-up window: an earlier recommendation was lower.
    Up,
}

/// A count after rate limits and bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Limited {
    /// The count.
    pub replicas: Replicas,
    /// The limit that applied.
    pub limit: ScalingLimit,
    /// The rate limit of this step; absent if none was computed.
    pub rate: Option<RateLimit>,
}

/// The rate limit of one step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RateLimit {
    /// The highest (scale-up) or lowest (scale-down) allowed count.
    pub replicas: Replicas,
    /// Index of the policy that sets the limit; absent without `behavior` and if the direction is disabled.
    pub policy: Option<usize>,
    /// The count at the start of that policy's period.
    pub period_start: Replicas,
}

/// The limit that applied to a count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ScalingLimit {
    /// No limit.
    Within,
    /// The lower bound.
    TooFew,
    /// The upper bound.
    TooMany,
    /// The scale-up rate.
    Up,
    /// The scale-down rate.
    Down,
}

impl ScalingLimit {
    /// Reason and message of the condition, as Kubernetes writes them.
    fn condition(self) -> (&'static str, &'static str) {
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
    /// Reason and message of the condition, as Kubernetes writes them.
    fn condition(self) -> (&'static str, &'static str) {
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

/// Normalizes `desired`, records it in `state`, and sets the conditions `AbleToScale` and `ScalingLimited`.
pub(crate) fn normalize(
    state: &mut State,
    now: Timestamp,
    config: &ControllerConfig,
    spec: &Spec,
    current: Replicas,
    desired: Replicas,
    status: &mut Status,
) -> Normalized {
    let (stabilized, limited) = stabilize_and_limit(state, now, config, spec, current, desired);
    let (reason, message) = stabilized.hold.condition();
    status.set(now, condition::ABLE_TO_SCALE, true, reason, message);
    let (reason, message) = limited.limit.condition();
    let is_limited = limited.replicas != stabilized.replicas;
    status.set(now, condition::SCALING_LIMITED, is_limited, reason, message);
    Normalized { stabilized, limited, next: None, next_unknown: false }
}

/// Applies windows, then rate limits and bounds, and records the recommendation in `state`.
fn stabilize_and_limit(
    state: &mut State,
    now: Timestamp,
    config: &ControllerConfig,
    spec: &Spec,
    current: Replicas,
    desired: Replicas,
) -> (Stabilized, Limited) {
    let window = config.downscale_stabilization;
    match &spec.behavior {
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
    }
}
