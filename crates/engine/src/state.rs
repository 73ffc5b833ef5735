//! What must be remembered between steps.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::spec::Behavior;

/// What one autoscaler must remember. A plain value: save it, load it, and nothing changes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct State {
    pub(crate) recommendations: Vec<TimestampedReplicas>,
    pub(crate) ups: Vec<ScaleEvent>,
    pub(crate) downs: Vec<ScaleEvent>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) last_good: BTreeMap<String, TimestampedReplicas>,
}

/// A count and when it was recommended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TimestampedReplicas {
    pub(crate) value: i32,
    pub(crate) at: Timestamp,
}

/// A change that was made, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ScaleEvent {
    pub(crate) by: i32,
    pub(crate) at: Timestamp,
    #[serde(default)]
    outdated: bool,
}

impl ScaleEvent {
    pub(crate) fn new(by: i32, at: Timestamp) -> Self {
        Self { by, at, outdated: false }
    }
}

impl State {
    /// Moves all that is remembered by `by`: the clock was set, but nobody has waited.
    pub fn shift(&mut self, by: SignedDuration) {
        let stamps = self.recommendations.iter_mut().chain(self.last_good.values_mut()).map(|s| &mut s.at);
        let changes = self.ups.iter_mut().chain(&mut self.downs).map(|c| &mut c.at);
        stamps.chain(changes).for_each(|at| *at = after(*at, by));
    }

    /// Remembers a change for rate policies (docs/spec/hpa.md 6.5).
    pub(crate) fn record(&mut self, now: Timestamp, behavior: &Behavior, current: i32, desired: i32) {
        let (list, rules) =
            if desired > current { (&mut self.ups, &behavior.up) } else { (&mut self.downs, &behavior.down) };
        let longest = rules.policies.iter().map(|p| p.period).max().unwrap_or(SignedDuration::ZERO);
        let cutoff = before(now, longest);
        let mut free = None;
        for (index, change) in list.iter_mut().enumerate() {
            change.outdated |= change.at < cutoff;
            if change.outdated {
                free = Some(index);
            }
        }
        let by = desired.wrapping_sub(current).wrapping_abs();
        let new = ScaleEvent::new(by, now);
        match free.and_then(|index| list.get_mut(index)) {
            Some(slot) => *slot = new,
            None => list.push(new),
        }
    }
}

/// `now - by`, as far back as time goes.
pub(crate) fn before(now: Timestamp, by: SignedDuration) -> Timestamp {
    now.checked_sub(by).unwrap_or(if by.is_negative() { Timestamp::MAX } else { Timestamp::MIN })
}

/// `at + by`, as far as time goes.
pub(crate) fn after(at: Timestamp, by: SignedDuration) -> Timestamp {
    at.checked_add(by).unwrap_or(if by.is_negative() { Timestamp::MIN } else { Timestamp::MAX })
}
