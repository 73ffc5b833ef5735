//! The clock of a cluster: it starts at the system's time and advances with tokio's clock, so that it pauses and jumps
//! in tests with paused time.

use jiff::Timestamp;
use tokio::time::Instant;

/// A clock that advances with tokio's clock.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    start: Timestamp,
    since: Instant,
}

impl Clock {
    /// A clock that starts at `start`.
    pub fn starting_at(start: Timestamp) -> Self {
        Self { start, since: Instant::now() }
    }

    /// A clock that starts at the system's time.
    #[expect(clippy::disallowed_methods, reason = "this is the clock of the machine that others are given")]
    pub fn system() -> Self {
        let since_1970 =
            std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        let start = jiff::SignedDuration::try_from(since_1970).ok();
        let start = start.and_then(|since| Timestamp::from_duration(since).ok());
        Self::starting_at(start.unwrap_or(Timestamp::UNIX_EPOCH))
    }

    /// The current time.
    pub fn now(&self) -> Timestamp {
        self.start.saturating_add(self.since.elapsed()).unwrap_or(self.start)
    }
}
