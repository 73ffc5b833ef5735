//! How a watch fares.

use std::sync::Arc;

use tokio::sync::watch;
use tokio::time::Instant;

/// How a watch fares, for health, metrics and logs. Cheap to clone.
#[derive(Clone, Debug)]
pub struct WatchHealth(Arc<watch::Sender<WatchCondition>>);

/// A watch at some moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WatchCondition {
    /// Whether a whole list was ever handed over.
    pub synced: bool,
    /// ListConsistency when nothing is heard from the server; absent while it is.
    pub disconnected_since: Option<Instant>,
    /// What went wrong last; stays after it is over.
    pub last_error: Option<String>,
    /// Whether the collection does not exist at the moment.
    pub absent: bool,
    /// How often everything was listed.
    pub lists: u64,
    /// How often something went wrong and was begun again.
    pub restarts: u64,
    /// How many objects could not be read.
    pub unreadable: u64,
}

impl Default for WatchHealth {
    fn default() -> Self {
        let begun = WatchCondition { disconnected_since: Some(Instant::now()), ..WatchCondition::default() };
        Self(Arc::new(watch::Sender::new(begun)))
    }
}

impl WatchHealth {
    /// Everything at once.
    pub fn condition(&self) -> WatchCondition {
        self.0.borrow().clone()
    }

    /// Whether a whole list was ever handed over.
    pub fn synced(&self) -> bool {
        self.0.borrow().synced
    }

    /// Whether the collection does not exist at the moment, as that of a definition that is not installed.
    pub fn absent(&self) -> bool {
        self.0.borrow().absent
    }

    /// ListConsistency when nothing is heard from the server; absent while it is.
    pub fn disconnected_since(&self) -> Option<Instant> {
        self.0.borrow().disconnected_since
    }

    /// What went wrong last.
    pub fn last_error(&self) -> Option<String> {
        self.0.borrow().last_error.clone()
    }

    /// How often everything was listed.
    pub fn lists(&self) -> u64 {
        self.0.borrow().lists
    }

    /// How often something went wrong and was begun again.
    pub fn restarts(&self) -> u64 {
        self.0.borrow().restarts
    }

    /// How many objects could not be read.
    pub fn unreadable(&self) -> u64 {
        self.0.borrow().unreadable
    }

    /// Waits until a whole list was handed over. Somebody must read the stream meanwhile.
    pub async fn wait_synced(&self) {
        self.wait_until(|condition| condition.synced).await;
    }

    /// Waits until the watch fares so.
    pub async fn wait_until(&self, so: impl FnMut(&WatchCondition) -> bool) {
        // We hold the sender ourselves, so it cannot go away.
        let _ = self.0.subscribe().wait_for(so).await;
    }

    pub(super) fn note(&self, change: impl FnOnce(&mut WatchCondition)) {
        self.0.send_modify(change);
    }
}
