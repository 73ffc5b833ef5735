//! What time it is. The binary owns the system's clock; tests hand in their own.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

/// Tells the time of the world, which may jump. Durations are measured with tokio's clock, which does not.
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> Timestamp + Send + Sync>);

impl Clock {
    /// A clock that asks `now`.
    pub fn new(now: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        Self(Arc::new(now))
    }

    /// The clock of this machine.
    pub fn system() -> Self {
        Self::new(Timestamp::now)
    }

    /// The time.
    pub fn now(&self) -> Timestamp {
        (self.0)()
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Clock")
    }
}

/// A clock that does not jump: the time of the world when it was last set, plus what has passed since.
#[derive(Debug)]
pub struct SteadyClock {
    world: Clock,
    set: Mutex<(Timestamp, Instant)>,
}

/// What a clock may be off before that counts as a jump.
const JUMP: SignedDuration = SignedDuration::from_secs(1);

impl SteadyClock {
    /// Set by `world`.
    pub fn new(world: Clock) -> Self {
        let set = Mutex::new((world.now(), Instant::now()));
        Self { world, set }
    }

    /// The time.
    pub fn now(&self) -> Timestamp {
        let (at, since) = *self.set.lock().unwrap_or_else(PoisonError::into_inner);
        let passed = SignedDuration::try_from(since.elapsed()).unwrap_or(SignedDuration::ZERO);
        at.checked_add(passed).unwrap_or(Timestamp::MAX)
    }

    /// Sets it by the clock of the world again; by how much that has jumped, if it has.
    pub fn resync(&self) -> Option<SignedDuration> {
        let (ours, theirs) = (self.now(), self.world.now());
        *self.set.lock().unwrap_or_else(PoisonError::into_inner) = (theirs, Instant::now());
        let step = theirs.duration_since(ours);
        (step.abs() > JUMP).then_some(step)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_steady_clock_goes_on_and_tells_by_how_much_the_world_has_jumped() {
        let world = Arc::new(Mutex::new(Timestamp::UNIX_EPOCH));
        let told = world.clone();
        let steady = SteadyClock::new(Clock::new(move || *told.lock().unwrap()));
        let seconds = |seconds| Timestamp::from_second(seconds).unwrap();
        tokio::time::advance(Duration::from_secs(10)).await;
        assert_eq!(steady.now(), seconds(10));
        *world.lock().unwrap() = seconds(10);
        assert_eq!(steady.resync(), None);
        *world.lock().unwrap() = seconds(3600);
        assert_eq!(steady.now(), seconds(10), "it does not jump by itself");
        assert_eq!(steady.resync(), Some(SignedDuration::from_secs(3590)));
        assert_eq!(steady.now(), seconds(3600));
        *world.lock().unwrap() = seconds(0);
        assert_eq!(steady.resync(), Some(SignedDuration::from_secs(-3600)));
    }
}
