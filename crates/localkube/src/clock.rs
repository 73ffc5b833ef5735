//! The time of a cluster: it starts at the system's time and goes on as tokio's does, so that it stands still, and
//! jumps, in tests under paused time.

use jiff::Timestamp;
use tokio::time::Instant;

/// A clock that follows tokio's.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    start: Timestamp,
    since: Instant,
}

impl Clock {
    /// A clock that shows `start` now.
    pub fn starting_at(start: Timestamp) -> Self {
        Self { start, since: Instant::now() }
    }

    /// A clock that shows the system's time now.
    pub fn system() -> Self {
        let since_1970 =
            std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        let start = jiff::SignedDuration::try_from(since_1970).ok();
        let start = start.and_then(|since| Timestamp::from_duration(since).ok());
        Self::starting_at(start.unwrap_or(Timestamp::UNIX_EPOCH))
    }

    /// What it shows now.
    pub fn now(&self) -> Timestamp {
        self.start.saturating_add(self.since.elapsed()).unwrap_or(self.start)
    }
}
