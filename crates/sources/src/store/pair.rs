//! Two points of one node or container, and the rate between them.

use std::time::Duration;

use api::provider::Compat;

use crate::kubelet::Point;

/// The last point and the one before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pair {
    last: Mark,
    memory: u64,
    /// [`NONE`] if there is none.
    before: Mark,
}

/// What counts of a point for a rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Mark {
    /// Nanoseconds since the epoch; unknown is before everything.
    start: i64,
    /// Nanoseconds since the epoch.
    time: i64,
    /// Nanoseconds of processor time.
    cpu: u64,
}

const UNKNOWN: i64 = i64::MIN;
const NONE: Mark = Mark { start: UNKNOWN, time: i64::MIN, cpu: 0 };

/// What two points tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rate {
    /// Billionths of a core, and over how many nanoseconds.
    Known { nanocores: u64, window: i64 },
    /// There is one point only.
    OnePoint,
    /// The counter or the start went backwards.
    Backwards,
}

impl Pair {
    /// The points of a node, now that there is a new one.
    pub(crate) fn of_node(new: &Point, known: Option<&Self>, compat: Compat) -> Self {
        let new_mark = Mark::of(new);
        let before = known.map_or(NONE, |known| known.earlier_than(&new_mark, compat));
        Self { last: new_mark, memory: new.memory, before }
    }

    /// The points of a container, now that there is a new one.
    pub(crate) fn of_container(
        new: &Point,
        known: Option<&Self>,
        resolution: Duration,
        compat: Compat,
    ) -> Self {
        /// Younger ones have not done enough to tell.
        const YOUNG: i64 = 10_000_000_000;
        let mark = Mark::of(new);
        let age = mark.time.saturating_sub(mark.start);
        let resolution = i64::try_from(resolution.as_nanos()).unwrap_or(i64::MAX);
        if age >= YOUNG && age < resolution {
            // It started with nothing used: one point is enough.
            let before = Mark { time: mark.start, cpu: 0, ..mark };
            return Self { last: mark, memory: new.memory, before };
        }
        // One that started after the last point is another one.
        let same = known.filter(|known| mark.start < known.last.time);
        Self::of_node(new, same, compat)
    }

    /// The rate of processor time.
    pub(crate) fn rate(&self) -> Rate {
        if self.before == NONE {
            return Rate::OnePoint;
        }
        if self.last.is_backwards_from(&self.before) {
            return Rate::Backwards;
        }
        let window = self.last.time.saturating_sub(self.before.time);
        let used = self.last.cpu - self.before.cpu;
        // As Go computes seconds, to the last bit.
        let seconds = (window / 1_000_000_000) as f64 + (window % 1_000_000_000) as f64 / 1e9;
        Rate::Known { nanocores: (used as f64 / seconds) as u64, window }
    }

    /// Whether there are two points.
    pub(crate) fn is_complete(&self) -> bool {
        self.before != NONE
    }

    /// When the last point was measured, in nanoseconds since the epoch.
    pub(crate) fn time(&self) -> i64 {
        self.last.time
    }

    /// The last working set in bytes.
    pub(crate) fn memory(&self) -> u64 {
        self.memory
    }

    /// Which of these points comes before a new one.
    fn earlier_than(&self, new: &Mark, compat: Compat) -> Mark {
        let before = if new.time > self.last.time {
            self.last
        } else if self.before.time < new.time {
            // The kubelet has measured nothing new: the last real interval stays.
            self.before
        } else {
            NONE
        };
        if compat.is_strict() || before == NONE {
            return before;
        }
        // A counter that went backwards was started anew, whatever its start says: nothing is known about the rate. A start
        // that went backwards, or is not told this time, says nothing against a counter that went on.
        if new.cpu < before.cpu { NONE } else { Mark { start: new.start, ..before } }
    }
}

impl Mark {
    fn of(point: &Point) -> Self {
        Self { start: point.start.unwrap_or(UNKNOWN), time: point.time, cpu: point.cpu }
    }

    fn is_backwards_from(&self, before: &Self) -> bool {
        self.start < before.start || self.cpu < before.cpu
    }
}
