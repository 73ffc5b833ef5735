//! Processes one object that is due: reconciles it if it has changed, then polls it if a poll is due.

use std::time::Duration;

use tokio::time::Instant;

use super::context::OperatorContext;
use super::decide::conditions::ReconcileOutcome;
use super::id::{ResourceId, ResourceKind};
use super::poll::poll;
use super::poll_scheduler::{DueObject, PollSchedule};
use super::reconcile::reconcile;
use super::record;
use super::retry::retry_delay;
use super::scaled_resource::query_group;

/// How soon a ScaledJob is tried again while its jobs are not listed yet.
const JOB_LIST_RETRY_DELAY: Duration = Duration::from_millis(100);

/// What follows for the scheduler.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ProcessOutcome {
    /// The object is gone.
    pub(crate) is_gone: bool,
    /// When the object is polled; none if it is not.
    pub(crate) schedule: Option<PollSchedule>,
    /// When the object is due again, whatever its schedule.
    pub(crate) retry_after: Option<Duration>,
    /// The object has become active.
    pub(crate) activated: bool,
}

/// Processes an object. `jobs_listed` says whether the jobs of ScaledJobs are in the store.
pub(crate) async fn process(context: &OperatorContext, due: DueObject, jobs_listed: bool) -> ProcessOutcome {
    let DueObject { id, poll_delay, .. } = due;
    let id = &id;
    if context.owner(id).is_none() {
        context.forget(id);
        record::forget(context, id);
        context.counters.forget(id);
        return ProcessOutcome { is_gone: true, ..ProcessOutcome::default() };
    }
    if id.kind == ResourceKind::Job && !jobs_listed {
        return ProcessOutcome { retry_after: Some(JOB_LIST_RETRY_DELAY), ..scheduled(context, id) };
    }
    let entry = context.entry(id);
    let (mut retry_after, mut activated) = (None, false);
    let is_changed = !std::mem::replace(&mut entry.state().settled, true);
    if is_changed {
        let started = Instant::now();
        // In a box, because it is rare and larger than a poll.
        let outcome = Box::pin(reconcile(context, id)).await;
        let failed = outcome == ReconcileOutcome::Failed;
        context.queue_metrics.reconciled(id.kind, started.elapsed(), failed);
        let mut state = entry.state();
        state.reconciled = true;
        if failed {
            state.failures = state.failures.saturating_add(1);
            state.settled = false;
            retry_after = Some(retry_delay(state.failures));
        } else {
            state.failures = 0;
        }
    }
    // An edited object is polled at once.
    let generation = context.owner(id).map(|owner| owner.metadata().generation);
    let before = entry.state().polled_generation;
    let is_edited = is_changed && before.is_some() && before != generation;
    if poll_delay.is_some() || is_edited {
        {
            let mut state = entry.state();
            state.poll_delay = poll_delay.or(state.poll_delay);
            state.polled_generation = generation;
        }
        let is_polled = entry.state().polled;
        if is_polled {
            let outcome = poll(context, id).await;
            activated = outcome.activated;
            if outcome.hpa_is_stale {
                entry.state().settled = false;
                retry_after = Some(Duration::ZERO);
            }
        }
    }
    ProcessOutcome { retry_after, activated, ..scheduled(context, id) }
}

/// The poll schedule of an object.
fn scheduled(context: &OperatorContext, id: &ResourceId) -> ProcessOutcome {
    let Some(entry) = context.known_entry(id).filter(|entry| entry.state().polled) else {
        return ProcessOutcome::default();
    };
    let schedule = context.owner(id).map(|owner| {
        let group = entry.scalers().map_or_else(|| query_group(owner.triggers()), |known| known.group());
        PollSchedule { interval: owner.period(), group }
    });
    ProcessOutcome { schedule, ..ProcessOutcome::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The future of each poll is moved before it runs. It was 10 KB when it contained reconciles, decisions without an HPA and requests to
    /// the API server, which most polls do not have.
    #[test]
    fn future_is_small() {
        fn size<A, B, C, F>(_: impl FnOnce(A, B, C) -> F) -> usize {
            size_of::<F>()
        }
        let size = size(process);
        assert!(size < 6 << 10, "{size}");
    }
}
