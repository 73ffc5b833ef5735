//! Stabilization windows: earlier recommendations delay a change (docs/spec/hpa.md 6.2, 6.3).

use jiff::{SignedDuration, Timestamp};

use super::{EarlierRecommendation, StabilizationHold, Stabilized};
use crate::spec::Behavior;
use crate::state::{TimestampedReplicas, after, before};
use crate::units::Replicas;

/// Stabilizes without `behavior`: the highest recommendation of the window applies, even above the current count (T8).
pub(super) fn classic(
    history: &mut Vec<TimestampedReplicas>,
    now: Timestamp,
    window: SignedDuration,
    desired: Replicas,
) -> Stabilized {
    let cutoff = before(now, window);
    let mut best = desired;
    let mut by: Option<EarlierRecommendation> = None;
    let mut free = None;
    for (index, rec) in history.iter().enumerate() {
        if rec.at < cutoff {
            free = Some(index);
            continue;
        }
        // Of equal recommendations the latest is recorded, because it holds longest.
        if rec.value > best || (by.is_some_and(|b| b.at < rec.at) && rec.value == best) {
            best = rec.value;
            by = Some(EarlierRecommendation { replicas: rec.value, at: rec.at });
        }
    }
    record(history, free, TimestampedReplicas { value: desired, at: now });
    let hold = if best == desired { StabilizationHold::None } else { StabilizationHold::Down };
    let until = by.map(|by| after(by.at, window));
    Stabilized { recommended: desired, replicas: best, hold, down_window: window, up_window: None, by, until }
}

/// Stabilizes with `behavior`: each direction has a window, and earlier recommendations alone never move the count past
/// the current one.
pub(super) fn with_behavior(
    history: &mut Vec<TimestampedReplicas>,
    now: Timestamp,
    default_down: SignedDuration,
    behavior: &Behavior,
    current: Replicas,
    desired: Replicas,
) -> Stabilized {
    let up = behavior.up.window.unwrap_or(SignedDuration::ZERO);
    // Kubernetes rounds its setting down to whole seconds here.
    let down = behavior.down.window.unwrap_or(SignedDuration::from_secs(default_down.as_secs()));
    let (up_cutoff, down_cutoff) = (before(now, up), before(now, down));
    let (mut low, mut high) = (desired, desired);
    let (mut low_by, mut high_by) = (None, None);
    let mut free = None;
    for (index, rec) in history.iter().enumerate() {
        let earlier = EarlierRecommendation { replicas: rec.value, at: rec.at };
        let is_later = |by: Option<EarlierRecommendation>| by.is_some_and(|by| by.at < rec.at);
        if rec.at > up_cutoff && (rec.value < low || (is_later(low_by) && rec.value == low)) {
            (low, low_by) = (rec.value, Some(earlier));
        }
        if rec.at > down_cutoff && (rec.value > high || (is_later(high_by) && rec.value == high)) {
            (high, high_by) = (rec.value, Some(earlier));
        }
        if rec.at < up_cutoff && rec.at < down_cutoff {
            free = Some(index);
        }
    }
    let replicas = current.max(low).min(high);
    // The count is held until the last recommendation at or beyond it leaves the window.
    let held = |window: SignedDuration, cutoff: Timestamp, holds: fn(Replicas, Replicas) -> bool| {
        let holding = history.iter().filter(|rec| rec.at > cutoff && holds(rec.value, replicas));
        holding.map(|rec| after(rec.at, window)).max()
    };
    let (low_until, high_until) = (
        held(up, up_cutoff, |value, replicas| value <= replicas),
        held(down, down_cutoff, |value, replicas| value >= replicas),
    );
    record(history, free, TimestampedReplicas { value: desired, at: now });
    let (hold, by, until) = if replicas == desired {
        (StabilizationHold::None, None, None)
    } else if desired >= current {
        (StabilizationHold::Up, low_by, low_until)
    } else {
        (StabilizationHold::Down, high_by, high_until)
    };
    Stabilized { recommended: desired, replicas, hold, down_window: down, up_window: Some(up), by, until }
}

/// Appends a recommendation or puts it into an outdated slot. Slots are never removed (T39).
fn record(history: &mut Vec<TimestampedReplicas>, free: Option<usize>, new: TimestampedReplicas) {
    match free.and_then(|index| history.get_mut(index)) {
        Some(slot) => *slot = new,
        None => history.push(new),
    }
}
