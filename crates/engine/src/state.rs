//! What must be remembered between steps.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::spec::Behavior;

/// What one autoscaler must remember. A plain value: save it, load it, and nothing changes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct State {
    pub(crate) recommendations: Vec<Stamped>,
    pub(crate) ups: Vec<Change>,
    pub(crate) downs: Vec<Change>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) last_good: BTreeMap<String, Stamped>,
}

/// A count and when it was recommended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Stamped {
    pub(crate) value: i32,
    pub(crate) at: Timestamp,
}

/// A change that was made, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Change {
    pub(crate) by: i32,
    pub(crate) at: Timestamp,
    #[serde(default)]
    outdated: bool,
}

impl State {
    /// Remembers a change for rate policies (spec 6.5).
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
        let new = Change { by, at: now, outdated: false };
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
