//! Whether a stored snapshot still represents the state.

use jiff::Timestamp;

use super::{StateSnapshot, Windows, longest_period, rounded};
use crate::config::ControllerConfig;
use crate::spec::Spec;
use crate::state::{State, TimestampedReplicas, before};
use crate::units::Replicas;

impl StateSnapshot {
    /// Whether a state restored from this snapshot at `now` is limited by windows and policies as `state` is: equally at
    /// `now`, and later never less. It may be held longer, by at most one window. Last good proposals are not compared:
    /// they change with every step, and without one a failed metric blocks scale-downs.
    pub fn covers(&self, state: &State, now: Timestamp, spec: &Spec, config: &ControllerConfig) -> bool {
        let windows = Windows::of(spec, config);
        let ours = held(&self.restore(now), now);
        let theirs = held(state, now);
        let down = |r: &&TimestampedReplicas| windows.hold_down(now, r.at);
        let up = |r: &&TimestampedReplicas| windows.hold_up(now, r.at);
        let highest = |list: &[TimestampedReplicas]| list.iter().filter(down).map(|r| r.value).max();
        let lowest = |list: &[TimestampedReplicas]| list.iter().filter(up).map(|r| r.value).min();
        let outlived = |their: &TimestampedReplicas, reaches: fn(Replicas, Replicas) -> bool| {
            ours.iter().any(|our| our.at >= their.at && reaches(our.value, their.value))
        };
        ours.is_empty() == theirs.is_empty()
            && highest(&ours) == highest(&theirs)
            && lowest(&ours) == lowest(&theirs)
            && theirs.iter().filter(down).all(|r| outlived(r, |our, their| our >= their))
            && theirs.iter().filter(up).all(|r| outlived(r, |our, their| our <= their))
            && self.counts_as(state, now, spec, config)
    }

    /// Whether scaling policies count the same changes.
    fn counts_as(&self, state: &State, now: Timestamp, spec: &Spec, config: &ControllerConfig) -> bool {
        let since = before(now, longest_period(spec));
        let fresh = state.snapshot(now, spec, config);
        let same = |stored: &[TimestampedReplicas], fresh: &[TimestampedReplicas]| {
            stored.iter().filter(|c| c.at > since).copied().eq(fresh.iter().copied())
        };
        same(&self.ups, &fresh.ups) && same(&self.downs, &fresh.downs)
    }
}

/// The recommendations of `state`, with the newest repeated at `now`.
fn held(state: &State, now: Timestamp) -> Vec<TimestampedReplicas> {
    let mut list = rounded(&state.recommendations);
    for rec in &mut list {
        rec.at = rec.at.min(now);
    }
    if let Some(newest) = list.last().copied() {
        list.push(TimestampedReplicas { at: now, ..newest });
    }
    list
}
