//! The health of watches and the liveness of a loop, for `/readyz`, `/livez` and exported metrics.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

/// Why a health check fails, in the words of `/readyz?verbose`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct CheckFailure(pub String);

impl From<String> for CheckFailure {
    fn from(reason: String) -> Self {
        Self(reason)
    }
}

impl From<&str> for CheckFailure {
    fn from(reason: &str) -> Self {
        Self(reason.to_owned())
    }
}

/// The health of one watch. Cheap to clone; all clones are the same.
#[derive(Clone, Debug)]
pub struct WatchHealth(Arc<watch::Sender<WatchCondition>>);

/// The condition of a watch at some moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WatchCondition {
    /// Whether a complete list was ever delivered.
    pub synced: bool,
    /// Since when the server sends nothing; none while it does.
    pub disconnected_since: Option<Instant>,
    /// The last error; it stays after the watch has recovered.
    pub last_error: Option<String>,
    /// HTTP status of the last error; none if there was no response.
    pub last_error_code: Option<u16>,
    /// Whether the collection does not exist at the moment.
    pub absent: bool,
    /// How many complete lists were received.
    pub lists: u64,
    /// How many requests failed and were sent again.
    pub restarts: u64,
    /// How many objects could not be decoded.
    pub unreadable: u64,
    /// How often the task of the watch ended or panicked and was restarted.
    pub task_restarts: u64,
    /// Whether the task of the watch ended or panicked and no complete list was delivered since: the store holds old data.
    pub is_stale: bool,
}

impl WatchCondition {
    /// Whether the store holds what the server reported: listed, and its task has not ended since.
    pub fn is_current(&self) -> bool {
        (self.synced || self.absent) && !self.is_stale
    }
}

impl Default for WatchHealth {
    fn default() -> Self {
        let begun = WatchCondition { disconnected_since: Some(Instant::now()), ..WatchCondition::default() };
        Self(Arc::new(watch::Sender::new(begun)))
    }
}

impl WatchHealth {
    /// The whole condition.
    pub fn condition(&self) -> WatchCondition {
        self.0.borrow().clone()
    }

    /// Whether a complete list was ever delivered.
    pub fn synced(&self) -> bool {
        self.0.borrow().synced
    }

    /// Whether the collection does not exist at the moment: its definition is not installed.
    pub fn absent(&self) -> bool {
        self.0.borrow().absent
    }

    /// Whether the store holds what the server reported: listed, and its task has not ended since.
    pub fn is_current(&self) -> bool {
        self.0.borrow().is_current()
    }

    /// Whether the store is current and the server still sends changes.
    pub fn is_connected(&self) -> bool {
        let condition = self.0.borrow();
        condition.synced && !condition.is_stale && condition.disconnected_since.is_none()
    }

    /// Since when the server sends nothing; none while it does.
    pub fn disconnected_since(&self) -> Option<Instant> {
        self.0.borrow().disconnected_since
    }

    /// The last error.
    pub fn last_error(&self) -> Option<String> {
        self.0.borrow().last_error.clone()
    }

    /// How many complete lists were received.
    pub fn lists(&self) -> u64 {
        self.0.borrow().lists
    }

    /// How many requests failed and were sent again.
    pub fn restarts(&self) -> u64 {
        self.0.borrow().restarts
    }

    /// How many objects could not be decoded.
    pub fn unreadable(&self) -> u64 {
        self.0.borrow().unreadable
    }

    /// Waits until a complete list was delivered. The stream must be polled meanwhile.
    pub async fn wait_synced(&self) {
        self.wait_until(|condition| condition.synced).await;
    }

    /// Waits until the condition fulfils `predicate`.
    pub async fn wait_until(&self, predicate: impl FnMut(&WatchCondition) -> bool) {
        // This value holds the sender, so the channel cannot close.
        let _ = self.0.subscribe().wait_for(predicate).await;
    }

    /// Changes the condition and wakes those that wait for it.
    pub fn update(&self, change: impl FnOnce(&mut WatchCondition)) {
        self.0.send_modify(change);
    }
}

/// Whether a loop still runs, and whether its stores were filled. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Liveness(Arc<LoopState>);

#[derive(Debug, Default)]
struct LoopState {
    /// Seconds after the start of the last [`Liveness::mark_alive`].
    last_alive: AtomicU64,
    synced: AtomicBool,
    started: OnceLock<Instant>,
}

impl Liveness {
    /// The loop starts.
    pub fn start(&self) {
        self.0.started.get_or_init(Instant::now);
    }

    /// Everything that is watched was listed once.
    pub fn mark_synced(&self) {
        self.0.synced.store(true, Ordering::Relaxed);
    }

    /// The loop has made progress.
    pub fn mark_alive(&self) {
        let since = self.0.started.get().map_or(0, |started| started.elapsed().as_secs());
        self.0.last_alive.store(since, Ordering::Relaxed);
    }

    /// Whether everything that is watched was listed once.
    pub fn synced(&self) -> bool {
        self.0.synced.load(Ordering::Relaxed)
    }

    /// Whether the loop has made progress within `limit`. A loop that is not synced yet counts as alive.
    pub fn is_alive(&self, limit: Duration) -> bool {
        let Some(started) = self.0.started.get().filter(|_| self.synced()) else { return true };
        let silent = started.elapsed().as_secs().saturating_sub(self.0.last_alive.load(Ordering::Relaxed));
        silent <= limit.as_secs()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn loop_without_iterations_is_not_alive() {
        let liveness = Liveness::default();
        liveness.start();
        tokio::time::advance(Duration::from_mins(1)).await;
        assert!(liveness.is_alive(Duration::from_secs(30)), "not synced yet");
        liveness.mark_synced();
        assert!(!liveness.is_alive(Duration::from_secs(30)));
        liveness.mark_alive();
        assert!(liveness.is_alive(Duration::from_secs(30)));
    }
}
