//! Whether we lead.

use std::sync::Arc;

use jiff::Timestamp;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use crate::clock::Clock;

/// Whether we lead. Cheap to clone; asked at every write.
///
/// The answer is yes only while the election says so *and* less than the lease duration, minus a margin, has passed
/// since the start of the last renewal that succeeded. Others count the lease from a later moment, when they saw the
/// effect of that renewal; so whoever asks before each write never writes after somebody else may have taken over, even
/// if the process was stopped, starved or asleep and the election could not notice. Both clocks must agree: that which
/// never jumps stands still while a machine is suspended, that of the world does not.
#[derive(Clone, Debug)]
pub struct Leadership(ElectionMode);

#[derive(Clone, Debug)]
enum ElectionMode {
    Alone,
    Elected { view: watch::Receiver<LeadershipView>, clock: Clock },
}

/// What the election tells.
#[derive(Clone, Debug, Default)]
pub(super) struct LeadershipView {
    pub(super) term: Option<Term>,
    pub(super) holder: Option<Arc<str>>,
    pub(super) transitions: Option<u32>,
    /// Set once we are about to give the lease back: no answer on its way may make us lead again.
    pub(super) stopping: bool,
}

/// Until when we may act, by both clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Term {
    pub(super) until: Instant,
    pub(super) wall: Timestamp,
}

impl Leadership {
    /// Nobody else is there: we always lead.
    pub fn without_election() -> Self {
        Self(ElectionMode::Alone)
    }

    pub(super) fn elected(view: watch::Receiver<LeadershipView>, clock: Clock) -> Self {
        Self(ElectionMode::Elected { view, clock })
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

    /// Waits until we no longer lead. A jump of the world's clock makes `leads` false until the next renewal, but does
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

    /// Who leads, as last seen; none if nobody does or nothing was seen yet. Alone, there is nobody to name.
    pub fn holder(&self) -> Option<Arc<str>> {
        let ElectionMode::Elected { view, .. } = &self.0 else { return None };
        view.borrow().holder.clone()
    }

    /// How often the lease has changed hands, as last seen.
    pub fn transitions(&self) -> Option<u32> {
        let ElectionMode::Elected { view, .. } = &self.0 else { return None };
        view.borrow().transitions
    }
}
