//! Two points of one node or container, and their CPU rate.

use std::time::Duration;

use api::provider::Compat;

use crate::kubelet::MetricsPoint;

/// The last point and the one before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PointPair {
    last: CpuPoint,
    memory: u64,
    /// The previous point; [`NO_POINT`] if there is none.
    before: CpuPoint,
}

/// The part of a point that a rate needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct CpuPoint {
    /// Start time in nanoseconds since the epoch; [`UNKNOWN_START`] sorts before every other.
    start: i64,
    /// Nanoseconds since the epoch.
    time: i64,
    /// Cumulative CPU time in nanoseconds.
    cpu: u64,
}

const UNKNOWN_START: i64 = i64::MIN;
const NO_POINT: CpuPoint = CpuPoint { start: UNKNOWN_START, time: i64::MIN, cpu: 0 };

/// Rate between two points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CpuRate {
    /// Rate in nanocores, and the window in nanoseconds.
    Known { nanocores: u64, window: i64 },
    /// There is only one point.
    OnePoint,
    /// The counter or the start time went backwards.
    Backwards,
}

impl PointPair {
    /// Adds a point of a node.
    pub(crate) fn of_node(new: &MetricsPoint, known: Option<&Self>, compat: Compat) -> Self {
        let new_mark = CpuPoint::of(new);
        let before = known.map_or(NO_POINT, |known| known.earlier_than(&new_mark, compat));
        Self { last: new_mark, memory: new.memory, before }
    }

    /// Adds a point of a container.
    pub(crate) fn of_container(
        new: &MetricsPoint,
        known: Option<&Self>,
        resolution: Duration,
        compat: Compat,
    ) -> Self {
        /// A younger container has no meaningful rate.
        const MIN_AGE_NANOS: i64 = 10_000_000_000;
        let mark = CpuPoint::of(new);
        let age = mark.time.saturating_sub(mark.start);
        let resolution = i64::try_from(resolution.as_nanos()).unwrap_or(i64::MAX);
        if age >= MIN_AGE_NANOS && age < resolution {
            // The counter started at zero, so one point is enough for a rate.
            let before = CpuPoint { time: mark.start, cpu: 0, ..mark };
            return Self { last: mark, memory: new.memory, before };
        }
        // A container that started after the last point was restarted.
        let same = known.filter(|known| mark.start < known.last.time);
        Self::of_node(new, same, compat)
    }

    /// CPU rate between the two points.
    pub(crate) fn rate(&self) -> CpuRate {
        if self.before == NO_POINT {
            return CpuRate::OnePoint;
        }
        if self.last.is_backwards_from(&self.before) {
            return CpuRate::Backwards;
        }
        let window = self.last.time.saturating_sub(self.before.time);
        let used = self.last.cpu - self.before.cpu;
        // Computes seconds exactly as Go does, to the last bit.
        let seconds = (window / 1_000_000_000) as f64 + (window % 1_000_000_000) as f64 / 1e9;
        CpuRate::Known { nanocores: (used as f64 / seconds) as u64, window }
    }

    /// Whether there are two points.
    pub(crate) fn is_complete(&self) -> bool {
        self.before != NO_POINT
    }

    /// Time of the last point in nanoseconds since the epoch.
    pub(crate) fn time(&self) -> i64 {
        self.last.time
    }

    /// Working set of the last point in bytes.
    pub(crate) fn memory(&self) -> u64 {
        self.memory
    }

    /// Which stored point precedes a new one.
    fn earlier_than(&self, new: &CpuPoint, compat: Compat) -> CpuPoint {
        let before = if new.time > self.last.time {
            self.last
        } else if self.before.time < new.time {
            // The kubelet has no new measurement: keep the last interval.
            self.before
        } else {
            NO_POINT
        };
        if compat.is_strict() || before == NO_POINT {
            return before;
        }
        // A decreasing counter means a restart, whatever the start time says, so the rate is unknown. A start time
        // that went backwards or is missing does not invalidate an increasing counter.
        if new.cpu < before.cpu { NO_POINT } else { CpuPoint { start: new.start, ..before } }
    }
}

impl CpuPoint {
    fn of(point: &MetricsPoint) -> Self {
        Self { start: point.start.unwrap_or(UNKNOWN_START), time: point.time, cpu: point.cpu }
    }

    fn is_backwards_from(&self, before: &Self) -> bool {
        self.start < before.start || self.cpu < before.cpu
    }
}
