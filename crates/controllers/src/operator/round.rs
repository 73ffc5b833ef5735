//! One turn of one object: reconcile if that was asked for, then poll if it is due.

use std::sync::Arc;
use std::time::Duration;

use super::core::Core;
use super::id::{Id, Kind};
use super::poll::poll;
use super::reconcile::{Reconciled, pause, reconcile};
use super::record;
use super::triggers::group;
use super::wheel::{Pace, Turn};

/// How long a ScaledJob waits for its jobs to be seen.
const MOMENT: Duration = Duration::from_millis(100);

/// What follows from a turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ended {
    /// The object is gone.
    pub(crate) is_gone: bool,
    /// How it is polled from now on, if it is.
    pub(crate) pace: Option<Pace>,
    /// After how long it wants another turn in any case.
    pub(crate) again: Option<Duration>,
    /// Whether it found something to do where there was nothing.
    pub(crate) woke: bool,
}

/// Has a turn.
pub(crate) async fn turn(core: Arc<Core>, turn: Turn, jobs_seen: bool) -> (Id, Ended) {
    let Turn { id, poll: due } = turn;
    let ended = run(&core, &id, due, jobs_seen).await;
    (id, ended)
}

async fn run(core: &Core, id: &Id, due: Option<Duration>, jobs_seen: bool) -> Ended {
    if core.owner(id).is_none() {
        core.forget(id);
        record::forget(core, id);
        core.counters.forget(id);
        return Ended { is_gone: true, ..Ended::default() };
    }
    if id.kind == Kind::Job && !jobs_seen {
        return Ended { again: Some(MOMENT), ..state(core, id) };
    }
    let item = core.item(id);
    let (mut again, mut woke) = (None, false);
    let is_asked = !std::mem::replace(&mut item.notes().settled, true);
    if is_asked {
        let outcome = reconcile(core, id).await;
        let mut notes = item.notes();
        notes.known = true;
        match outcome {
            Reconciled::Polled | Reconciled::Still | Reconciled::Ended => notes.failures = 0,
            Reconciled::Failed => {
                notes.failures = notes.failures.saturating_add(1);
                notes.settled = false;
                again = Some(pause(notes.failures));
            }
        }
    }
    // What was edited is not left to wait for its next poll.
    let generation = core.owner(id).map(|owner| owner.metadata().generation);
    let before = item.notes().generation;
    let is_edited = is_asked && before.is_some() && before != generation;
    if due.is_some() || is_edited {
        {
            let mut notes = item.notes();
            notes.late = due.or(notes.late);
            notes.generation = generation;
        }
        if item.notes().polled {
            let polled = poll(core, id).await;
            woke = polled.woke;
            if polled.is_stale {
                item.notes().settled = false;
                again = Some(Duration::ZERO);
            }
        }
    }
    Ended { again, woke, ..state(core, id) }
}

/// How an object is polled.
fn state(core: &Core, id: &Id) -> Ended {
    let Some(item) = core.known_item(id).filter(|item| item.notes().polled) else { return Ended::default() };
    let pace = core.owner(id).map(|owner| {
        let group = item.triggers().map_or_else(|| group(owner.triggers()), |known| known.group());
        Pace { interval: owner.period(), group }
    });
    Ended { pace, ..Ended::default() }
}
