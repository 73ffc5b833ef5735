//! The wall clock and the steady clock. This module alone reads the clock of the machine; tests inject their own.

use std::fmt;
use std::sync::{Arc, Mutex};

use jiff::{SignedDuration, Timestamp};
use locks::MutexExt as _;
use tokio::time::Instant;

/// The wall clock, which may jump. Durations are measured with tokio's clock, which does not.
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> Timestamp + Send + Sync>);

impl Clock {
    /// A clock that calls `now`.
    pub fn new(now: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        Self(Arc::new(now))
    }

    /// The clock of this machine.
    #[expect(clippy::disallowed_methods, reason = "this is the clock of the machine that others are given")]
    pub fn system() -> Self {
        Self::new(Timestamp::now)
    }

    /// The current time.
    pub fn now(&self) -> Timestamp {
        (self.0)()
    }
}

impl Default for Clock {
    fn default() -> Self {
        Self::system()
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Clock")
    }
}

/// A clock that does not jump: the wall clock when it was last set, plus the time that has passed since.
#[derive(Debug)]
pub struct SteadyClock {
    wall: Clock,
    set: Mutex<(Timestamp, Instant)>,
}

/// A difference that is larger counts as a jump of the wall clock.
const MIN_JUMP: SignedDuration = SignedDuration::from_secs(1);

impl SteadyClock {
    /// A clock that is set by `wall`.
    pub fn new(wall: Clock) -> Self {
        let set = Mutex::new((wall.now(), Instant::now()));
        Self { wall, set }
    }

    /// The time.
    pub fn now(&self) -> Timestamp {
        let (at, since) = *self.set.locked();
        let passed = SignedDuration::try_from(since.elapsed()).unwrap_or(SignedDuration::ZERO);
        at.checked_add(passed).unwrap_or(Timestamp::MAX)
    }

    /// Sets the clock by the wall clock again; returns by how much the wall clock has jumped, if it has.
    pub fn resync(&self) -> Option<SignedDuration> {
        let (ours, theirs) = (self.now(), self.wall.now());
        *self.set.locked() = (theirs, Instant::now());
        let step = theirs.duration_since(ours);
        (step.abs() > MIN_JUMP).then_some(step)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn steady_clock_goes_on_and_reports_jumps_of_the_wall_clock() {
        let wall = Arc::new(Mutex::new(Timestamp::UNIX_EPOCH));
        let read = wall.clone();
        let steady = SteadyClock::new(Clock::new(move || *read.lock().unwrap()));
        let seconds = |seconds| Timestamp::from_second(seconds).unwrap();
        tokio::time::advance(Duration::from_secs(10)).await;
        assert_eq!(steady.now(), seconds(10));
        *wall.lock().unwrap() = seconds(10);
        assert_eq!(steady.resync(), None);
        *wall.lock().unwrap() = seconds(3600);
        assert_eq!(steady.now(), seconds(10), "it does not jump by itself");
        assert_eq!(steady.resync(), Some(SignedDuration::from_secs(3590)));
        assert_eq!(steady.now(), seconds(3600));
        *wall.lock().unwrap() = seconds(0);
        assert_eq!(steady.resync(), Some(SignedDuration::from_secs(-3600)));
    }
}
