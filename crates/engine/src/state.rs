//! The state of one autoscaler between steps.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::spec::Behavior;
use crate::units::Replicas;

/// State of one autoscaler: recent recommendations and scale events. It is a plain value that can be saved and loaded.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct State {
    pub(crate) recommendations: Vec<TimestampedReplicas>,
    pub(crate) ups: Vec<ScaleEvent>,
    pub(crate) downs: Vec<ScaleEvent>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) last_good: BTreeMap<String, TimestampedReplicas>,
}

/// A replica count and its time (client-go: `timestampedRecommendation`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TimestampedReplicas {
    pub(crate) value: Replicas,
    pub(crate) at: Timestamp,
}

/// A change of the replica count and its time (client-go: `timestampedScaleEvent`).
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
    /// Clears all recommendations and scale events. Those from before a scale to zero do not apply after it.
    pub fn forget(&mut self) {
        *self = Self::default();
    }

    /// Shifts all times by `by`. Used when the clock was set, since no time has passed then.
    pub fn shift(&mut self, by: SignedDuration) {
        let stamps = self.recommendations.iter_mut().chain(self.last_good.values_mut()).map(|s| &mut s.at);
        let changes = self.ups.iter_mut().chain(&mut self.downs).map(|c| &mut c.at);
        stamps.chain(changes).for_each(|at| *at = after(*at, by));
    }

    /// Records a change for scaling policies (docs/spec/hpa.md 6.5).
    pub(crate) fn record(
        &mut self,
        now: Timestamp,
        behavior: &Behavior,
        current: Replicas,
        desired: Replicas,
    ) {
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
        let by = desired.get().wrapping_sub(current.get()).wrapping_abs();
        let new = ScaleEvent::new(by, now);
        match free.and_then(|index| list.get_mut(index)) {
            Some(slot) => *slot = new,
            None => list.push(new),
        }
    }
}

/// `now - by`, clamped to the range of timestamps.
pub(crate) fn before(now: Timestamp, by: SignedDuration) -> Timestamp {
    now.checked_sub(by).unwrap_or(if by.is_negative() { Timestamp::MAX } else { Timestamp::MIN })
}

/// `at + by`, clamped to the range of timestamps.
pub(crate) fn after(at: Timestamp, by: SignedDuration) -> Timestamp {
    at.checked_add(by).unwrap_or(if by.is_negative() { Timestamp::MIN } else { Timestamp::MAX })
}
