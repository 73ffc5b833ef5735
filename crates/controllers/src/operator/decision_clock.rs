//! The clock of decisions: cooldowns and stabilization windows keep their length when the machine's clock is set.

use std::sync::Mutex;

use cluster::Clock;
use cluster::clock::SteadyClock;
use jiff::{SignedDuration, Timestamp};
use locks::MutexExt as _;

/// A clock that does not jump, and by how much the machine's clock has jumped since the start.
#[derive(Debug)]
pub(crate) struct DecisionClock {
    steady: SteadyClock,
    jumped: Mutex<SignedDuration>,
}

impl DecisionClock {
    pub(crate) fn new(clock: Clock) -> Self {
        Self { steady: SteadyClock::new(clock), jumped: Mutex::default() }
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.steady.now()
    }

    /// The sum of all jumps. State that is changed outside of its lock is shifted by the difference when it is put back.
    pub(crate) fn jumped(&self) -> SignedDuration {
        *self.jumped.locked()
    }

    /// Follows the machine's clock; returns by how much that clock has jumped, if it has. The caller shifts stored times by it.
    pub(crate) fn resync(&self) -> Option<SignedDuration> {
        let step = self.steady.resync()?;
        let mut jumped = self.jumped.locked();
        *jumped = jumped.saturating_add(step);
        Some(step)
    }
}
