//! Whether the main thread of a process makes progress, seen from another thread.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::{Instant, sleep};

/// The interval of beats.
const BEAT_INTERVAL: Duration = Duration::from_secs(1);
/// A main thread that was silent for longer makes no progress.
pub const HEARTBEAT_TIMEOUT: Duration = Duration::from_secs(30);

/// Beats of the main thread. Cheap to clone; all clones are the same.
///
/// A task of the main thread beats every second; it cannot while that thread is stuck in a computation. Threads that renew a
/// lease or answer probes check the beats, so that neither keeps a process alive that makes no progress.
#[derive(Clone, Debug)]
pub struct Heartbeat(Arc<Beats>);

#[derive(Debug)]
struct Beats {
    started: Instant,
    /// Milliseconds after the start of the last beat.
    last: AtomicU64,
}

impl Default for Heartbeat {
    /// Beats from now on.
    fn default() -> Self {
        Self(Arc::new(Beats { started: Instant::now(), last: AtomicU64::new(0) }))
    }
}

impl Heartbeat {
    /// Beats on the thread that polls it, for ever.
    pub async fn run(self) {
        loop {
            self.beat();
            sleep(BEAT_INTERVAL).await;
        }
    }

    fn beat(&self) {
        self.0.last.store(self.0.since_start(), Ordering::Relaxed);
    }

    /// Whether the last beat is at most [`HEARTBEAT_TIMEOUT`] old.
    pub fn is_beating(&self) -> bool {
        let last = self.0.last.load(Ordering::Relaxed);
        u128::from(self.0.since_start().saturating_sub(last)) <= HEARTBEAT_TIMEOUT.as_millis()
    }
}

impl Beats {
    fn since_start(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_thread_that_does_not_beat_makes_no_progress() {
        let heartbeat = Heartbeat::default();
        assert!(heartbeat.is_beating(), "it has just started");
        let beating = tokio::spawn(heartbeat.clone().run());
        sleep(HEARTBEAT_TIMEOUT * 10).await;
        assert!(heartbeat.is_beating());
        beating.abort();
        sleep(HEARTBEAT_TIMEOUT / 2).await;
        assert!(heartbeat.is_beating());
        sleep(HEARTBEAT_TIMEOUT).await;
        assert!(!heartbeat.is_beating());
        heartbeat.beat();
        assert!(heartbeat.is_beating());
    }
}
