//! What outlives the process that remembered it: the part of [`State`] that can still matter, short enough to ride on
//! the object as an annotation.
//!
//! Kubernetes forgets everything at a restart (docs/spec/hpa.md 7.5, T37). Here whoever takes over reads the [`StateSnapshot`] that was
//! stored last, and goes on. It was stored when the status last changed, and nobody knows what was recommended since,
//! so [`StateSnapshot::recall`] takes the newest recommendation to have held until now: a take-over may delay a change, but
//! never hastens one.
//!
//! What is left out cannot matter while windows and policies stay as they are: recommendations that a later one
//! outdoes, and whatever is older than the longest window or period. Should a window be enlarged afterwards, [`State`]
//! may still find old slots (T39) that a memory has not.

mod covers;
#[cfg(test)]
mod tests;
mod text;

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};

pub use text::{MAX_TEXT, SnapshotError};

use crate::config::ControllerConfig;
use crate::spec::{FailurePolicy, Spec};
use crate::state::{ScaleEvent, State, TimestampedReplicas, before};

/// What of a [`State`] can still matter. Times are whole seconds, rounded up, so that windows never become shorter.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StateSnapshot {
    /// Oldest first; the last is the newest.
    recommendations: Vec<TimestampedReplicas>,
    /// How many were added, oldest first.
    ups: Vec<TimestampedReplicas>,
    /// How many were removed, oldest first.
    downs: Vec<TimestampedReplicas>,
    last_good: BTreeMap<String, TimestampedReplicas>,
}

/// Longer lists are thinned, so that the text stays short whatever the windows and periods are.
const MOST: usize = 48;
/// Names of metrics are as long as users like; what is beyond this many bytes of text is forgotten, which only blocks
/// scale-downs.
const ROOM_FOR_NAMES: usize = 2048;

impl State {
    /// What of this state can still matter at `now` and later.
    pub fn memory(&self, now: Timestamp, spec: &Spec, config: &ControllerConfig) -> StateSnapshot {
        let windows = Windows::of(spec, config);
        let since = before(now, longest_period(spec));
        StateSnapshot {
            recommendations: lasting(&rounded(&self.recommendations), now, &windows),
            ups: recent(&self.ups, since),
            downs: recent(&self.downs, since),
            last_good: self.good(now, spec),
        }
    }

    /// Somebody else changed the count: rate policies count it as if we had.
    pub fn observed_change(&mut self, now: Timestamp, spec: &Spec, from: i32, to: i32) {
        if let Some(behavior) = spec.behavior.as_ref().filter(|_| from != to) {
            self.record(now, behavior, from, to);
        }
    }

    /// Last good proposals that may still stand in for a metric.
    fn good(&self, now: Timestamp, spec: &Spec) -> BTreeMap<String, TimestampedReplicas> {
        let keep = |policy| match policy {
            FailurePolicy::LastGood(keep) => Some(keep),
            _ => None,
        };
        let Some(longest) = spec.metrics.iter().filter_map(|m| keep(m.on_failure)).max() else {
            return BTreeMap::new();
        };
        let since = before(now, longest);
        let mut room = ROOM_FOR_NAMES;
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
    /// The state to go on with at `now`. The newest recommendation is taken to have held until now; what comes from
    /// the future, because a clock was set back, is taken to be of now.
    pub fn recall(&self, now: Timestamp) -> State {
        let past = |s: &TimestampedReplicas| TimestampedReplicas { at: s.at.min(now), ..*s };
        let changes = |list: &[TimestampedReplicas]| {
            list.iter().map(|s| ScaleEvent::new(s.value, s.at.min(now))).collect()
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

    /// Whether there is nothing to remember.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// How far back recommendations are looked at (docs/spec/hpa.md 6.2, 6.3).
struct Windows {
    down: SignedDuration,
    /// Without `behavior` growing has no window.
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

    /// Whether a recommendation of `at` can hold a scale-down at `now`. Only without `behavior` the very edge counts.
    fn hold_down(&self, now: Timestamp, at: Timestamp) -> bool {
        let cutoff = before(now, self.down);
        at > cutoff || (self.up.is_none() && at == cutoff)
    }

    /// Whether a recommendation of `at` can hold a scale-up at `now`.
    fn hold_up(&self, now: Timestamp, at: Timestamp) -> bool {
        self.up.is_some_and(|window| at > before(now, window))
    }
}

/// Both directions count changes of both directions (T40).
fn longest_period(spec: &Spec) -> SignedDuration {
    let rules = spec.behavior.iter().flat_map(|b| [&b.up, &b.down]);
    rules.flat_map(|r| &r.policies).map(|p| p.period).max().unwrap_or(SignedDuration::ZERO)
}

/// In whole seconds, oldest first; of the same second, in the order in which they came.
fn rounded(list: &[TimestampedReplicas]) -> Vec<TimestampedReplicas> {
    // By the exact time first: two steps within a second keep their order.
    let mut list = list.to_vec();
    list.sort_by_key(|s| s.at);
    list.into_iter().map(round).map(|s| TimestampedReplicas { value: s.value.max(0), ..s }).collect()
}

fn round(exact: TimestampedReplicas) -> TimestampedReplicas {
    let at = exact.at.max(Timestamp::UNIX_EPOCH);
    let up = at.as_second() + i64::from(at.subsec_nanosecond() > 0);
    let at = Timestamp::from_second(up).or(Timestamp::from_second(at.as_second())).unwrap_or(at);
    TimestampedReplicas { at, ..exact }
}

/// Of sorted recommendations those that can still decide: in the down window the ones that no later one reaches, in
/// the up window the ones that no later one is as low as, and the newest.
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
    // The outer one of each chunk, held until the end of the chunk: longer, never shorter.
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
    let list: Vec<_> = changes.iter().map(|c| TimestampedReplicas { value: c.by, at: c.at }).collect();
    let mut list = rounded(&list);
    list.retain(|c| c.value > 0 && c.at > since);
    thin(&list, |chunk| {
        let sum = chunk.iter().fold(0_i32, |sum, c| sum.saturating_add(c.value));
        Some(TimestampedReplicas { value: sum, at: chunk.last()?.at })
    })
}

/// At most [`MOST`]: neighbours become one.
fn thin<T: Clone>(list: &[T], one: impl Fn(&[T]) -> Option<T>) -> Vec<T> {
    match list.len() {
        0..=MOST => list.to_vec(),
        many => list.chunks(many.div_ceil(MOST)).filter_map(one).collect(),
    }
}
