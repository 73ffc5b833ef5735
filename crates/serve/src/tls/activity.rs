//! Tracks whether a connection is idle.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

/// Counts the running requests of a connection. The idle timeout polls it, so that requests wake no other task.
#[derive(Clone, Debug)]
pub(crate) struct Activity(Arc<Mutex<ActivityState>>);

#[derive(Debug)]
struct ActivityState {
    running: usize,
    /// When the last request ended, or the connection began.
    ended: Instant,
}

/// A connection is busy until this is dropped.
#[derive(Debug)]
pub(crate) struct Busy(Activity);

impl Activity {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Mutex::new(ActivityState { running: 0, ended: Instant::now() })))
    }

    /// Busy until the result is dropped.
    pub(crate) fn begin(&self) -> Busy {
        self.state().running += 1;
        Busy(self.clone())
    }

    /// Returns after the connection was idle for `limit`.
    pub(super) async fn idle(self, limit: Duration) {
        loop {
            let now = Instant::now();
            let until = {
                let state = self.state();
                if state.running == 0 { state.ended + limit } else { now + limit }
            };
            if until <= now {
                return;
            }
            sleep_until(until).await;
        }
    }

    fn state(&self) -> MutexGuard<'_, ActivityState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.running = state.running.saturating_sub(1);
        state.ended = Instant::now();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_busy_connection_is_not_idle() {
        let activity = Activity::new();
        let limit = Duration::from_secs(90);
        let start = tokio::time::Instant::now();
        let busy = activity.begin();
        let end = async {
            tokio::time::sleep(Duration::from_secs(500)).await;
            drop(busy);
            tokio::time::sleep(Duration::from_mins(1)).await;
            drop(activity.begin());
        };
        futures::join!(activity.clone().idle(limit), end);
        assert_eq!(start.elapsed(), Duration::from_secs(500 + 60 + 90));
    }
}
