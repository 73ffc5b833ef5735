//! A push trigger reports activity by itself (docs/spec/keda.md 3.8): it says that there is load, but not how much.

use std::time::Duration;

use keda::executor::ExecutorInput;
use keda::status::StatusChanges;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until, timeout};

use super::SHARED_SAMPLE_MAX_AGE;
use super::object::{SampleAge, poll_object};
use super::scale::decide_and_scale;
use crate::operator::apply::Applier;
use crate::operator::context::OperatorContext;
use crate::operator::id::{ResourceId, ResourceKind};
use crate::operator::object_state::{ObjectEntry, PushState};
use crate::operator::record;
use crate::operator::scalers_cache::PendingPush;
use crate::operator::settings::ScalingMode;

/// The time that the source has to report a value before the target is activated without one.
const QUERY_HEAD_START: Duration = Duration::from_millis(50);

/// Acts on a push. A push before the first reconcile of the object is dropped: the first poll finds the activity.
pub(crate) async fn act_on_push(
    context: &OperatorContext,
    id: &ResourceId,
    trigger: usize,
    pending: PendingPush,
) {
    if id.kind == ResourceKind::Job || !context.client.leadership.is_leader() {
        return;
    }
    let Some(entry) = context.known_entry(id) else { return };
    let Some(object) = context.store().object(id) else { return };
    if context.scaling_mode(&object) == ScalingMode::Direct {
        // Pushes that follow are counted in the push state.
        drop(pending);
        query_and_activate(context, id, &entry, trigger).await;
    } else {
        activate(context, id, &entry, trigger, Some(pending)).await;
    }
}

/// Activates the target; if it is active already, the time of activity is recorded.
async fn activate(
    context: &OperatorContext,
    id: &ResourceId,
    entry: &ObjectEntry,
    trigger: usize,
    pending: Option<PendingPush>,
) {
    let _lock = entry.decision_lock.lock().await;
    // A push from here on is a new one.
    drop(pending);
    let Some(object) = context.store().object(id) else { return };
    if object.metadata.deletion_timestamp.is_some() || object.is_paused() {
        return;
    }
    let prefix = format!("s{trigger}-");
    let metric = object.status.external_metric_names.iter().find(|name| name.starts_with(&prefix));
    let Some(metric) = metric else { return };
    let metric = [metric.clone()];
    let input = ExecutorInput::of_push(context.clock.now(), &object, &metric);
    let record = record::pushed(&object, metric.first().map_or("", String::as_str));
    let applier = Applier { context, id, metadata: &object.metadata };
    decide_and_scale(applier, &object, input, StatusChanges::default(), record).await;
}

/// In scaling mode `direct`: queries the source at once and scales by its value. A slow source does not delay the activation.
/// However many pushes arrive, one such poll runs at a time, and at most one per second.
async fn query_and_activate(context: &OperatorContext, id: &ResourceId, entry: &ObjectEntry, trigger: usize) {
    if !entry.state().polled || !begin(entry) {
        return;
    }
    let _reset = ResetPushState(entry);
    loop {
        let last = entry.state().push_queried_at;
        if let Some(next) =
            last.map(|last| last + SHARED_SAMPLE_MAX_AGE).filter(|next| *next > Instant::now())
        {
            activate(context, id, entry, trigger, None).await;
            sleep_until(next).await;
        }
        entry.state().push_queried_at = Some(Instant::now());
        let queried = Notify::new();
        let query = async {
            poll_object(context, id, SampleAge::New).await;
            queried.notify_one();
        };
        let activation = async {
            // The target is activated in any case, even if the source reports no load.
            let _ = timeout(QUERY_HEAD_START, queried.notified()).await;
            activate(context, id, entry, trigger, None).await;
        };
        tokio::join!(query, activation);
        if end(entry) {
            return;
        }
    }
}

/// Whether a query begins; otherwise the one that runs is followed by another.
fn begin(entry: &ObjectEntry) -> bool {
    let mut state = entry.state();
    let was = state.push;
    state.push = if was == PushState::Idle { PushState::Querying } else { PushState::QueryingAgain };
    was == PushState::Idle
}

/// Ends queries when it is dropped, so that a panic does not block the pushes that follow.
struct ResetPushState<'a>(&'a ObjectEntry);

impl Drop for ResetPushState<'_> {
    fn drop(&mut self) {
        self.0.state().push = PushState::Idle;
    }
}

/// Whether queries are over; otherwise another one follows.
fn end(entry: &ObjectEntry) -> bool {
    let mut state = entry.state();
    let is_over = state.push != PushState::QueryingAgain;
    state.push = if is_over { PushState::Idle } else { PushState::Querying };
    is_over
}
