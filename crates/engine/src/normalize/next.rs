//! When the count changes next, if the recommendation stays what it is.
//!
//! Earlier recommendations leave their windows and scale events leave their periods at known times. Between two of these times
//! nothing that limits the count changes, so normalizing again at each of them finds the exact time of the next change.

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use super::{Normalized, ScalingLimit, StabilizationHold, stabilize_and_limit};
use crate::config::ControllerConfig;
use crate::spec::Spec;
use crate::state::{State, after};
use crate::units::Replicas;

/// The next change of the count, if the recommendation stays the same and no other client changes the count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NextChange {
    /// No decision before this time changes the count.
    pub at: Timestamp,
    /// The count if a decision is made at this time. A later one may find further limits gone.
    pub replicas: Replicas,
}

/// The most entries that can limit a count for which the next change is searched. The time of a search grows with their square, and
/// an object can have thousands of policies, or of recommendations in a long window with a short period.
const MAX_LIMITING_ENTRIES: usize = 2_000;

/// The next change is not searched, because more than [`MAX_LIMITING_ENTRIES`] can limit the count.
pub(crate) struct TooManyEntries;

/// Finds the next change after a decision for `desired` replicas. `state` includes the recommendation of that decision; its scale
/// event is added here, because it is recorded only when the write succeeds.
pub(crate) fn next_change(
    state: &State,
    now: Timestamp,
    config: &ControllerConfig,
    spec: &Spec,
    current: Replicas,
    desired: Replicas,
    normalized: &Normalized,
) -> Result<Option<NextChange>, TooManyEntries> {
    let held = normalized.stabilized.hold != StabilizationHold::None;
    let limited = matches!(normalized.limited.limit, ScalingLimit::Up | ScalingLimit::Down);
    if !(held || limited) || desired == 0 {
        return Ok(None);
    }
    if limiting_entries(state, spec) > MAX_LIMITING_ENTRIES {
        return Err(TooManyEntries);
    }
    let mut later = State {
        recommendations: state.recommendations.clone(),
        ups: state.ups.clone(),
        downs: state.downs.clone(),
        ..State::default()
    };
    if let Some(behavior) = spec.behavior.as_ref().filter(|_| desired != current) {
        later.record(now, behavior, current, desired);
    }
    // What only a window holds does not change while the window holds it.
    let first = normalized.stabilized.until.filter(|_| !limited).map_or(now, |until| until.max(now));
    let recommended = normalized.stabilized.recommended;
    for at in moments(&later, first, spec, normalized) {
        let (_, limited) = stabilize_and_limit(&mut later, at, config, spec, desired, recommended);
        if limited.replicas != desired {
            return Ok(Some(NextChange { at, replicas: limited.replicas }));
        }
    }
    Ok(None)
}

/// How many entries can limit the count: recommendations in both windows, and scale events in the period of each policy.
fn limiting_entries(state: &State, spec: &Spec) -> usize {
    let policies = spec
        .behavior
        .as_ref()
        .map_or(0, |behavior| behavior.up.policies.len() + behavior.down.policies.len());
    let events = state.ups.len() + state.downs.len() + 1;
    policies.saturating_mul(events).saturating_add(2 * state.recommendations.len())
}

/// The times at which a limit of the count can change, in order: `first`, then the ends of windows and periods after it.
fn moments(state: &State, first: Timestamp, spec: &Spec, normalized: &Normalized) -> Vec<Timestamp> {
    let stabilized = &normalized.stabilized;
    // Without `behavior`, a recommendation still counts at the very end of the window.
    let end = if spec.behavior.is_some() { SignedDuration::ZERO } else { SignedDuration::from_nanos(1) };
    let mut moments = vec![first];
    for window in [Some(stabilized.down_window), stabilized.up_window].into_iter().flatten() {
        let window = window.saturating_add(end);
        moments.extend(state.recommendations.iter().map(|rec| after(rec.at, window)));
    }
    if let Some(behavior) = &spec.behavior {
        for policy in behavior.up.policies.iter().chain(&behavior.down.policies) {
            let events = state.ups.iter().chain(&state.downs);
            moments.extend(events.map(|event| after(event.at, policy.period)));
        }
    }
    moments.retain(|at| *at >= first);
    moments.sort_unstable();
    moments.dedup();
    moments
}
