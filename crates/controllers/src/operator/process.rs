//! One turn of one object: reconcile if that was asked for, then poll if it is due.

use std::sync::Arc;
use std::time::Duration;

use super::context::OperatorContext;
use super::id::{Id, Kind};
use super::poll::poll;
use super::poll_scheduler::{DueObject, PollSchedule};
use super::reconcile::{ReconcileOutcome, pause, reconcile};
use super::record;
use super::scalers_cache::group;

/// SampleQuery long a ScaledJob waits for its jobs to be seen.
const MOMENT: Duration = Duration::from_millis(100);

/// What follows from a turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ProcessOutcome {
    /// The object is gone.
    pub(crate) is_gone: bool,
    /// SampleQuery it is polled from now on, if it is.
    pub(crate) schedule: Option<PollSchedule>,
    /// After how long it wants another turn in any case.
    pub(crate) again: Option<Duration>,
    /// Whether it found something to do where there was nothing.
    pub(crate) woke: bool,
}

/// Has a turn.
pub(crate) async fn process(
    context: Arc<OperatorContext>,
    turn: DueObject,
    jobs_seen: bool,
) -> (Id, ProcessOutcome) {
    let DueObject { id, poll: due } = turn;
    let ended = run(&context, &id, due, jobs_seen).await;
    (id, ended)
}

async fn run(context: &OperatorContext, id: &Id, due: Option<Duration>, jobs_seen: bool) -> ProcessOutcome {
    if context.owner(id).is_none() {
        context.forget(id);
        record::forget(context, id);
        context.counters.forget(id);
        return ProcessOutcome { is_gone: true, ..ProcessOutcome::default() };
    }
    if id.kind == Kind::Job && !jobs_seen {
        return ProcessOutcome { again: Some(MOMENT), ..state(context, id) };
    }
    let entry = context.entry(id);
    let (mut again, mut woke) = (None, false);
    let is_asked = !std::mem::replace(&mut entry.state().settled, true);
    if is_asked {
        let outcome = reconcile(context, id).await;
        let mut object_state = entry.state();
        object_state.known = true;
        match outcome {
            ReconcileOutcome::Polled | ReconcileOutcome::Still | ReconcileOutcome::Ended => {
                object_state.failures = 0
            }
            ReconcileOutcome::Failed => {
                object_state.failures = object_state.failures.saturating_add(1);
                object_state.settled = false;
                again = Some(pause(object_state.failures));
            }
        }
    }
    // What was edited is not left to wait for its next poll.
    let generation = context.owner(id).map(|owner| owner.metadata().generation);
    let before = entry.state().generation;
    let is_edited = is_asked && before.is_some() && before != generation;
    if due.is_some() || is_edited {
        {
            let mut object_state = entry.state();
            object_state.late = due.or(object_state.late);
            object_state.generation = generation;
        }
        if entry.state().polled {
            let polled = poll(context, id).await;
            woke = polled.woke;
            if polled.is_stale {
                entry.state().settled = false;
                again = Some(Duration::ZERO);
            }
        }
    }
    ProcessOutcome { again, woke, ..state(context, id) }
}

/// SampleQuery an object is polled.
fn state(context: &OperatorContext, id: &Id) -> ProcessOutcome {
    let Some(entry) = context.known_entry(id).filter(|entry| entry.state().polled) else {
        return ProcessOutcome::default();
    };
    let schedule = context.owner(id).map(|owner| {
        let group = entry.triggers().map_or_else(|| group(owner.triggers()), |known| known.group());
        PollSchedule { interval: owner.period(), group }
    });
    ProcessOutcome { schedule, ..ProcessOutcome::default() }
}
