//! Tracks a connection: running requests, idle time, cancelled requests, and the rank of its client.

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use locks::MutexExt as _;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

/// How many requests a client may cancel at once, before its connection is closed (HTTP/2 rapid reset).
const MAX_CANCELLED_REQUESTS: f64 = 200.0;

/// How many more requests a client may cancel, per second.
const CANCELLED_REQUESTS_PER_SECOND: f64 = 10.0;

/// The rank of the client of a connection. Connections of a lower rank make room for new ones first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ConnectionRank {
    /// A client of which no request was allowed yet.
    #[default]
    Unknown,
    /// A user who was authenticated and authorized.
    Authorized,
    /// The API server, which passes on the requests of its users.
    FrontProxy,
}

/// Counts the running requests of a connection. The idle timeout polls it, so that requests wake no other task.
#[derive(Clone, Debug)]
pub(crate) struct Activity(Arc<ConnectionActivity>);

#[derive(Debug)]
struct ConnectionActivity {
    state: Mutex<ActivityState>,
    close: Notify,
}

#[derive(Debug)]
struct ActivityState {
    running: usize,
    has_begun: bool,
    /// When the last request began or ended, or the connection began.
    changed: Instant,
    rank: ConnectionRank,
    /// How many more requests may be cancelled, and when that was computed.
    cancellable: (f64, Instant),
}

/// What a connection does at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ActivitySnapshot {
    pub(super) rank: ConnectionRank,
    pub(super) is_busy: bool,
    /// Since when it is idle, or when its last request began.
    pub(super) since: Instant,
}

/// A connection is busy until this is dropped.
#[derive(Debug)]
pub(crate) struct Busy(Activity);

/// Counts a cancelled request when it is dropped before the end of the request.
#[derive(Debug)]
pub(super) struct CancellationGuard(Option<Activity>);

impl Activity {
    pub(crate) fn new() -> Self {
        let now = Instant::now();
        let state = ActivityState {
            running: 0,
            has_begun: false,
            changed: now,
            rank: ConnectionRank::default(),
            cancellable: (MAX_CANCELLED_REQUESTS, now),
        };
        Self(Arc::new(ConnectionActivity { state: Mutex::new(state), close: Notify::new() }))
    }

    /// Busy until the result is dropped.
    pub(crate) fn begin(&self) -> Busy {
        let mut state = self.state();
        state.running += 1;
        (state.has_begun, state.changed) = (true, Instant::now());
        drop(state);
        Busy(self.clone())
    }

    /// The handshake is complete; the timeout of the first request begins.
    pub(super) fn handshake_completed(&self) {
        self.state().changed = Instant::now();
    }

    /// Raises the rank; a connection never loses it.
    pub(crate) fn rise(&self, rank: ConnectionRank) {
        let mut state = self.state();
        state.rank = state.rank.max(rank);
    }

    /// Whether a request has begun.
    pub(super) fn has_begun(&self) -> bool {
        self.state().has_begun
    }

    pub(super) fn snapshot(&self) -> ActivitySnapshot {
        let state = self.state();
        ActivitySnapshot { rank: state.rank, is_busy: state.running > 0, since: state.changed }
    }

    /// Requests the task of the connection to close it.
    pub(super) fn close(&self) {
        self.0.close.notify_one();
    }

    /// Returns when the connection must be closed.
    pub(super) async fn closed(&self) {
        self.0.close.notified().await;
    }

    /// Counts the request as cancelled unless [`CancellationGuard::ended`] is called.
    pub(super) fn guard(&self) -> CancellationGuard {
        CancellationGuard(Some(self.clone()))
    }

    /// Returns after the connection was idle for `limit`, or had no request within `first`.
    pub(super) async fn idle(self, limit: Duration, first: Duration) {
        loop {
            let now = Instant::now();
            let until = {
                let state = self.state();
                match (state.running, state.has_begun) {
                    (0, false) => state.changed + first.min(limit),
                    (0, true) => state.changed + limit,
                    _ => now + limit,
                }
            };
            if until <= now {
                return;
            }
            sleep_until(until).await;
        }
    }

    fn cancelled(&self) {
        let now = Instant::now();
        let mut state = self.state();
        let (left, at) = state.cancellable;
        let earned = now.saturating_duration_since(at).as_secs_f64() * CANCELLED_REQUESTS_PER_SECOND;
        let left = (left + earned).min(MAX_CANCELLED_REQUESTS) - 1.0;
        state.cancellable = (left, now);
        // The API server passes on what its users cancel.
        if left < 0.0 && state.rank != ConnectionRank::FrontProxy {
            drop(state);
            self.close();
        }
    }

    fn state(&self) -> MutexGuard<'_, ActivityState> {
        self.0.state.locked()
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.running = state.running.saturating_sub(1);
        state.changed = Instant::now();
    }
}

impl CancellationGuard {
    /// The request has ended.
    pub(super) fn ended(mut self) {
        self.0 = None;
    }
}

impl Drop for CancellationGuard {
    fn drop(&mut self) {
        if let Some(activity) = self.0.take() {
            activity.cancelled();
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    const IDLE_TIMEOUT: Duration = Duration::from_secs(90);
    const FIRST_REQUEST_TIMEOUT: Duration = Duration::from_secs(5);

    #[tokio::test(start_paused = true)]
    async fn a_busy_connection_is_not_idle() {
        let activity = Activity::new();
        let start = tokio::time::Instant::now();
        let busy = activity.begin();
        let end = async {
            tokio::time::sleep(Duration::from_secs(500)).await;
            drop(busy);
            tokio::time::sleep(Duration::from_mins(1)).await;
            drop(activity.begin());
        };
        futures::join!(activity.clone().idle(IDLE_TIMEOUT, FIRST_REQUEST_TIMEOUT), end);
        assert_eq!(start.elapsed(), Duration::from_secs(500 + 60 + 90));
    }

    #[tokio::test(start_paused = true)]
    async fn the_first_request_has_a_shorter_limit() {
        let start = tokio::time::Instant::now();
        Activity::new().idle(IDLE_TIMEOUT, FIRST_REQUEST_TIMEOUT).await;
        assert_eq!(start.elapsed(), FIRST_REQUEST_TIMEOUT);
    }

    #[tokio::test(start_paused = true)]
    async fn too_many_cancelled_requests_close_the_connection() {
        let (user, proxy) = (Activity::new(), Activity::new());
        proxy.rise(ConnectionRank::FrontProxy);
        proxy.rise(ConnectionRank::Authorized);
        for activity in [&user, &proxy] {
            (0..200).for_each(|_| drop(activity.guard()));
            activity.guard().ended();
            assert!(activity.closed().now_or_never().is_none());
            // A second earns ten more.
            tokio::time::advance(Duration::from_secs(1)).await;
            (0..10).for_each(|_| drop(activity.guard()));
            assert!(activity.closed().now_or_never().is_none());
            drop(activity.guard());
        }
        assert!(user.closed().now_or_never().is_some());
        assert!(proxy.closed().now_or_never().is_none());
    }
}
