//! Snapshots of [`State`] that survive a restart: the part of the state that can still affect decisions, short enough
//! to be stored in an annotation of the object.
//!
//! Kubernetes loses this state at a restart (docs/spec/hpa.md 7.5, T37). Here the next leader restores the
//! [`StateSnapshot`] that was stored last. It was stored when the status last changed, and recommendations since then are
//! unknown, so [`StateSnapshot::restore`] assumes that the newest recommendation was repeated until now, and
//! [`StateSnapshot::restore_for`] that a count which no recommendation explains was recommended too: a change of leader may
//! delay a scale-down or scale-up, but never hastens one.
//!
//! Left out is what cannot matter while windows and policies stay the same: recommendations that a later one exceeds, and
//! entries older than the longest window or period. If a window is enlarged later, [`State`] may still have old slots
//! (T39) that a snapshot has not.

mod covers;
#[cfg(test)]
mod tests;
mod text;

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};

pub use text::{MAX_TEXT_BYTES, SnapshotError};

use crate::config::ControllerConfig;
use crate::spec::{FailurePolicy, SelectPolicy, Spec};
use crate::state::{ScaleEvent, State, TimestampedReplicas, before};
use crate::units::Replicas;

/// The part of a [`State`] that can still affect decisions. Times are whole seconds, rounded up, so that stabilization
/// windows never become shorter.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StateSnapshot {
    /// Recommendations, oldest first.
    recommendations: Vec<TimestampedReplicas>,
    /// Scale-ups (replicas added), oldest first.
    ups: Vec<TimestampedReplicas>,
    /// Scale-downs (replicas removed), oldest first.
    downs: Vec<TimestampedReplicas>,
    last_good: BTreeMap<String, TimestampedReplicas>,
}

/// Longer lists are shortened, so that the text stays short with any windows and periods.
const MAX_ENTRIES_PER_LIST: usize = 48;
/// How long after its window a recommendation still explains a count, and after its period a limited scale-up. For a longer time
/// without a leader, another client may have changed the count since.
const MAX_ABSENCE: SignedDuration = SignedDuration::from_mins(15);
/// Bound for all metric names together. Last good proposals beyond it are dropped, which only blocks scale-downs.
const MAX_NAME_BYTES: usize = 2048;

impl State {
    /// The snapshot of this state at `now`.
    pub fn snapshot(&self, now: Timestamp, spec: &Spec, config: &ControllerConfig) -> StateSnapshot {
        let windows = Windows::of(spec, config);
        let since = before(now, longest_period(spec));
        StateSnapshot {
            recommendations: lasting(&rounded(&self.recommendations), now, &windows),
            ups: recent(&self.ups, since),
            downs: recent(&self.downs, since),
            last_good: self.good(now, spec),
        }
    }

    /// Records a change that another client made. Scaling policies count it like an own change.
    pub fn observed_change(&mut self, now: Timestamp, spec: &Spec, from: Replicas, to: Replicas) {
        if let Some(behavior) = spec.behavior.as_ref().filter(|_| from != to) {
            self.record(now, behavior, from, to);
        }
    }

    /// Last good proposals that may still replace a failed metric.
    fn good(&self, now: Timestamp, spec: &Spec) -> BTreeMap<String, TimestampedReplicas> {
        let keep = |policy| match policy {
            FailurePolicy::LastGood(keep) => Some(keep),
            _ => None,
        };
        let Some(longest) = spec.metrics.iter().filter_map(|m| keep(m.on_failure)).max() else {
            return BTreeMap::new();
        };
        let since = before(now, longest);
        let mut room = MAX_NAME_BYTES;
        let young = self.last_good.iter().map(|(name, good)| (name, round(*good)));
        young
            .filter(|(name, good)| {
                let size = text::size_of_name(name);
                let fits = good.at >= since && size <= room;
                room -= if fits { size } else { 0 };
                fits
            })
            .map(|(name, good)| (name.clone(), good))
            .collect()
    }
}

impl StateSnapshot {
    /// Restores a state at `now`. The newest recommendation counts as repeated until now. Times in the future, which occur
    /// if the clock was set back, are replaced by `now`.
    pub fn restore(&self, now: Timestamp) -> State {
        let past = |s: &TimestampedReplicas| TimestampedReplicas { at: s.at.min(now), ..*s };
        let changes = |list: &[TimestampedReplicas]| {
            list.iter().map(|s| ScaleEvent::new(s.value.get(), s.at.min(now))).collect()
        };
        let mut recommendations: Vec<_> = self.recommendations.iter().map(past).collect();
        if let Some(newest) = recommendations.last().filter(|newest| newest.at < now).copied() {
            recommendations.push(TimestampedReplicas { at: now, ..newest });
        }
        State {
            recommendations,
            ups: changes(&self.ups),
            downs: changes(&self.downs),
            last_good: self.last_good.iter().map(|(name, good)| (name.clone(), past(good))).collect(),
        }
    }

    /// [`StateSnapshot::restore`] for a target with `current` replicas.
    ///
    /// A count that the snapshot does not explain was reached by decisions that were not stored, or by another client. It
    /// counts as recommended now, as Kubernetes assumes after each restart (T37).
    pub fn restore_for(
        &self,
        now: Timestamp,
        spec: &Spec,
        config: &ControllerConfig,
        current: Replicas,
    ) -> State {
        let mut state = self.restore(now);
        let windows = Windows::of(spec, config);
        let Some(newest) = self.recommendations.last() else { return state };
        let is_held = windows.hold_down(now, newest.at) || windows.hold_up(now, newest.at);
        // Without behavior, the highest recommendation is the result: one that is repeated although it is old would scale up.
        let is_outdated = !is_held && spec.behavior.is_none() && bounded(newest.value, spec) > current;
        if self.explains(current, now, spec, &windows) && !is_outdated {
            return state;
        }
        let seed = TimestampedReplicas { value: current, at: now };
        if let Some(repeated) = state.recommendations.last_mut().filter(|_| !is_held) {
            *repeated = seed;
        }
        let recommendations = || state.recommendations.iter();
        let highest = recommendations().filter(|r| windows.hold_down(now, r.at)).map(|r| r.value).max();
        let lowest = recommendations().filter(|r| windows.hold_up(now, r.at)).map(|r| r.value).min();
        let too_many = highest.is_some_and(|highest| current > highest.max(spec.min));
        let too_few = lowest.is_some_and(|lowest| current < lowest.min(spec.max));
        if too_many || too_few {
            state.recommendations.push(seed);
        }
        state
    }

    /// Whether windows and scaling policies lead to this count: it is between stored recommendations, of which the window may have
    /// ended since; or policies limit a change towards them, or have done so not long ago.
    fn explains(&self, current: Replicas, now: Timestamp, spec: &Spec, windows: &Windows) -> bool {
        let Some(newest) = self.recommendations.last() else { return false };
        // The newest recommendation is stored once, however long it stays the same.
        let oldest = before(now, windows.longest().saturating_add(MAX_ABSENCE)).min(newest.at);
        let recommendations = self.recommendations.iter().filter(|stored| stored.at >= oldest);
        let stored: Vec<Replicas> = recommendations.map(|stored| bounded(stored.value, spec)).collect();
        let since = before(now, longest_period(spec));
        // A scale-up goes on although its periods have ended without a leader: the load must not wait for another window.
        let up_since = before(since, MAX_ABSENCE);
        let behavior = spec.behavior.as_ref();
        let is_down_disabled = behavior.is_some_and(|rules| rules.down.select == SelectPolicy::Disabled);
        let is_up_disabled = behavior.is_some_and(|rules| rules.up.select == SelectPolicy::Disabled);
        // A limited scale-down leaves a count above all recommendations, and a limited scale-up one below all. One that is disabled
        // does so for as long as the spec stays.
        let may_be_above = is_down_disabled || self.downs.iter().any(|change| change.at >= since);
        let may_be_below = is_up_disabled || self.ups.iter().any(|change| change.at >= up_since);
        (may_be_above || stored.iter().any(|value| *value >= current))
            && (may_be_below || stored.iter().any(|value| *value <= current))
    }

    /// Whether the snapshot is empty.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Stabilization windows in force (docs/spec/hpa.md 6.2, 6.3).
struct Windows {
    down: SignedDuration,
    /// Absent without `behavior`, since scale-ups have no window then.
    up: Option<SignedDuration>,
}

impl Windows {
    fn of(spec: &Spec, config: &ControllerConfig) -> Self {
        let default = config.downscale_stabilization;
        match &spec.behavior {
            None => Self { down: default, up: None },
            Some(behavior) => Self {
                down: behavior.down.window.unwrap_or(SignedDuration::from_secs(default.as_secs())),
                up: Some(behavior.up.window.unwrap_or(SignedDuration::ZERO)),
            },
        }
    }

    fn longest(&self) -> SignedDuration {
        self.up.map_or(self.down, |up| up.max(self.down))
    }

    /// Whether a recommendation of `at` can hold a scale-down at `now`. The edge of the window belongs to it only without
    /// `behavior`.
    fn hold_down(&self, now: Timestamp, at: Timestamp) -> bool {
        let cutoff = before(now, self.down);
        at > cutoff || (self.up.is_none() && at == cutoff)
    }

    /// Whether a recommendation of `at` can hold a scale-up at `now`.
    fn hold_up(&self, now: Timestamp, at: Timestamp) -> bool {
        self.up.is_some_and(|window| at > before(now, window))
    }
}

fn bounded(value: Replicas, spec: &Spec) -> Replicas {
    value.max(spec.min).min(spec.max)
}

/// The longest period of all policies. Policies count changes of both directions (T40).
fn longest_period(spec: &Spec) -> SignedDuration {
    let rules = spec.behavior.iter().flat_map(|b| [&b.up, &b.down]);
    rules.flat_map(|r| &r.policies).map(|p| p.period).max().unwrap_or(SignedDuration::ZERO)
}

/// Rounds to whole seconds and sorts, oldest first; entries of the same second keep their order.
fn rounded(list: &[TimestampedReplicas]) -> Vec<TimestampedReplicas> {
    // Sorted by exact time before rounding, so that two steps within a second keep their order.
    let mut list = list.to_vec();
    list.sort_by_key(|s| s.at);
    list.into_iter()
        .map(round)
        .map(|s| TimestampedReplicas { value: s.value.max(Replicas::ZERO), ..s })
        .collect()
}

fn round(exact: TimestampedReplicas) -> TimestampedReplicas {
    let at = exact.at.max(Timestamp::UNIX_EPOCH);
    let up = at.as_second() + i64::from(at.subsec_nanosecond() > 0);
    let at = Timestamp::from_second(up).or(Timestamp::from_second(at.as_second())).unwrap_or(at);
    TimestampedReplicas { at, ..exact }
}

/// The recommendations that can still decide: in the scale-down window those higher than all later ones, in the
/// scale-up window those lower than all later ones, and the newest.
fn lasting(sorted: &[TimestampedReplicas], now: Timestamp, windows: &Windows) -> Vec<TimestampedReplicas> {
    let Some((newest, older)) = sorted.split_last() else { return Vec::new() };
    let (mut high, mut low) = (newest.value, newest.value);
    let (mut maxima, mut minima) = (Vec::new(), Vec::new());
    for (index, rec) in older.iter().enumerate().rev() {
        if rec.value > high && windows.hold_down(now, rec.at) {
            high = rec.value;
            maxima.push((index, *rec));
        }
        if rec.value < low && windows.hold_up(now, rec.at) {
            low = rec.value;
            minima.push((index, *rec));
        }
    }
    // Each chunk is replaced by its extreme value at its newest time, so that a hold can become longer, never shorter.
    let outer = |chunk: &[(usize, TimestampedReplicas)]| {
        let (newest, oldest) = (chunk.first()?, chunk.last()?);
        Some((newest.0, TimestampedReplicas { value: oldest.1.value, at: newest.1.at }))
    };
    let mut kept: Vec<_> = [maxima, minima].iter().flat_map(|side| thin(side, outer)).collect();
    kept.sort_unstable_by_key(|(index, _)| *index);
    kept.into_iter().map(|(_, rec)| rec).chain([*newest]).collect()
}

/// Changes later than `since`, oldest first.
fn recent(changes: &[ScaleEvent], since: Timestamp) -> Vec<TimestampedReplicas> {
    let list: Vec<_> = changes.iter().map(|c| TimestampedReplicas { value: c.by.into(), at: c.at }).collect();
    let mut list = rounded(&list);
    list.retain(|c| c.value > 0 && c.at > since);
    thin(&list, |chunk| {
        let sum = chunk.iter().fold(0_i32, |sum, c| sum.saturating_add(c.value.get()));
        Some(TimestampedReplicas { value: sum.into(), at: chunk.last()?.at })
    })
}

/// Shortens a list to [`MAX_ENTRIES_PER_LIST`] by merging neighbours.
fn thin<T: Clone>(list: &[T], one: impl Fn(&[T]) -> Option<T>) -> Vec<T> {
    match list.len() {
        0..=MAX_ENTRIES_PER_LIST => list.to_vec(),
        many => list.chunks(many.div_ceil(MAX_ENTRIES_PER_LIST)).filter_map(one).collect(),
    }
}
