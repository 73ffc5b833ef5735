//! Whether this process holds the lease, checked before every write; and when a loop is to stop.

use std::net::SocketAddr;
use std::sync::Arc;

use jiff::Timestamp;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use crate::clock::Clock;

/// Whether this process leads. Cheap to clone; checked at every write.
///
/// The answer is yes only while the election says so *and* less than the lease duration, minus a margin, has passed
/// since the start of the last renewal that succeeded. Others count the lease from a later moment, when they saw the
/// effect of that renewal. So a process that checks before each write never writes after another may have become the leader,
/// even if the process was suspended or got no CPU time and the election could not notice. Both clocks must agree: the monotonic
/// clock stands still while a machine is suspended, the wall clock does not.
#[derive(Clone, Debug)]
pub struct Leadership(ElectionMode);

#[derive(Clone, Debug)]
enum ElectionMode {
    Alone,
    Elected { view: watch::Receiver<LeadershipView>, clock: Clock },
}

/// The state of an election, as the election publishes it.
#[derive(Clone, Debug, Default)]
pub struct LeadershipView {
    /// The term, while this process leads.
    pub term: Option<LeadershipTerm>,
    /// The holder of the lease, as last read.
    pub holder: Option<Arc<str>>,
    /// Where the holder serves the other replicas, as last read.
    pub address: Option<SocketAddr>,
    /// How often the lease has changed hands, as last read.
    pub transitions: Option<u32>,
    /// Whether the lease is about to be released: no response under way may make this process lead again.
    pub stopping: bool,
}

/// The end of the term, by both clocks: no write is started after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeadershipTerm {
    /// By the monotonic clock.
    pub until: Instant,
    /// By the wall clock.
    pub wall: Timestamp,
}

impl Leadership {
    /// No election: this process always leads.
    pub fn without_election() -> Self {
        Self(ElectionMode::Alone)
    }

    /// The leadership that an election publishes.
    pub fn elected(view: watch::Receiver<LeadershipView>, clock: Clock) -> Self {
        Self(ElectionMode::Elected { view, clock })
    }

    /// Whether there is an election, in which one of several processes leads.
    pub fn has_election(&self) -> bool {
        matches!(self.0, ElectionMode::Elected { .. })
    }

    /// Whether we lead at this moment: false as soon as our own deadline has passed, whatever the election does.
    pub fn is_leader(&self) -> bool {
        let ElectionMode::Elected { view, clock } = &self.0 else { return true };
        // An election that is no more renews nothing.
        let running = view.has_changed().is_ok();
        let term = view.borrow().term;
        running && term.is_some_and(|term| Instant::now() < term.until && clock.now() < term.wall)
    }

    /// Waits until we lead; for ever, once the election has ended.
    pub async fn acquired(&self) {
        let ElectionMode::Elected { view, .. } = &self.0 else { return };
        let mut view = view.clone();
        loop {
            view.mark_unchanged();
            if self.is_leader() {
                return;
            }
            if view.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    /// Waits until we no longer lead. A jump of the wall clock makes `is_leader` false until the next renewal, but does
    /// not end this.
    pub async fn lost(&self) {
        let ElectionMode::Elected { view, .. } = &self.0 else { return std::future::pending().await };
        let mut view = view.clone();
        loop {
            let term = view.borrow_and_update().term;
            let Some(term) = term.filter(|term| Instant::now() < term.until) else { return };
            tokio::select! {
                changed = view.changed() => if changed.is_err() { return },
                () = sleep_until(term.until) => {}
            }
        }
    }

    /// The holder of the lease, as last read; none if it has no holder, was not read yet, or there is no election.
    pub fn holder(&self) -> Option<Arc<str>> {
        let ElectionMode::Elected { view, .. } = &self.0 else { return None };
        view.borrow().holder.clone()
    }

    /// Where the leader serves the other replicas, as last seen; none if it has not written an address.
    pub fn address(&self) -> Option<SocketAddr> {
        let ElectionMode::Elected { view, .. } = &self.0 else { return None };
        view.borrow().address
    }

    /// How often the lease has changed hands, as last seen.
    pub fn transitions(&self) -> Option<u32> {
        let ElectionMode::Elected { view, .. } = &self.0 else { return None };
        view.borrow().transitions
    }
}

/// Why a loop stopped leading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TermEnd {
    /// The process is to stop.
    Stopped,
    /// The lease was lost; another process may lead.
    LeadershipLost,
}

/// Waits until `stop` becomes true, or its sender is dropped.
pub async fn stopped(stop: &mut watch::Receiver<bool>) {
    let _ = stop.wait_for(|stop| *stop).await;
}
