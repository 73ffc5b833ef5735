//! A source tells of activity by itself (docs/spec/keda.md 3.8): that there is work, but not how much.

use std::time::Duration;

use keda::executor::ExecutorInput;
use keda::status::StatusChanges;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until, timeout};

use super::SHARED;
use super::object::{Ask, decide_and_write, round};
use crate::operator::context::{ObjectEntry, OperatorContext, PushState};
use crate::operator::id::{Id, Kind};
use crate::operator::reconcile::scaling_mode;
use crate::operator::record;
use crate::operator::scalers_cache::{PendingPush, PushNotification};
use crate::operator::settings::ScalingMode;

/// So long the source may take to say how much work there is before the target is woken without knowing that.
const HEAD_START: Duration = Duration::from_millis(50);

/// Acts on what was told. What comes before the object was reconciled is found by its first poll.
pub(crate) async fn pushed(context: &OperatorContext, pushed: PushNotification) {
    let PushNotification { id, trigger, ticket } = pushed;
    let id = &id;
    if id.kind == Kind::Job || !context.client.leadership.is_leader() {
        return;
    }
    let Some(entry) = context.known_entry(id) else { return };
    let Some(object) = context.store().object(id) else { return };
    if scaling_mode(context, &object) == ScalingMode::Direct {
        // Whoever tells meanwhile is noted by that.
        drop(ticket);
        size(context, id, &entry, trigger).await;
    } else {
        wake(context, id, &entry, trigger, Some(ticket)).await;
    }
}

/// Rest ends. If it has ended, it is noted that there is work.
async fn wake(
    context: &OperatorContext,
    id: &Id,
    entry: &ObjectEntry,
    trigger: usize,
    ticket: Option<PendingPush>,
) {
    let _alone = entry.gate.lock().await;
    // What is told from here on is news.
    drop(ticket);
    let Some(object) = context.store().object(id) else { return };
    if object.metadata.deletion_timestamp.is_some() || object.is_paused() {
        return;
    }
    let prefix = format!("s{trigger}-");
    let metric = object.status.external_metric_names.iter().find(|name| name.starts_with(&prefix));
    let Some(metric) = metric else { return };
    let metric = [metric.clone()];
    let input = ExecutorInput::of_push(context.clock.now(), &object, &metric);
    let said = record::pushed(&object, metric.first().map_or("", String::as_str));
    decide_and_write(context, id, &object, input, StatusChanges::default(), said).await;
}

/// Where no HPA does it: asks at once how much work there is, and acts on that; whoever is slow to say does not delay the
/// waking. However often it is pushed, there is one such round at a time, and no more than one per second.
async fn size(context: &OperatorContext, id: &Id, entry: &ObjectEntry, trigger: usize) {
    if !entry.state().polled || !begins(entry) {
        return;
    }
    loop {
        let last = entry.state().pushed;
        if let Some(next) = last.map(|last| last + SHARED).filter(|next| *next > Instant::now()) {
            wake(context, id, entry, trigger, None).await;
            sleep_until(next).await;
        }
        entry.state().pushed = Some(Instant::now());
        let asked = Notify::new();
        let ask = async {
            round(context, id, Ask::Now).await;
            asked.notify_one();
        };
        let act = async {
            // It is acted on in any case, also if the source contradicts itself.
            let _ = timeout(HEAD_START, asked.notified()).await;
            wake(context, id, entry, trigger, None).await;
        };
        tokio::join!(ask, act);
        if ends(entry) {
            return;
        }
    }
}

/// Whether a round begins; else the one that runs is followed by another.
fn begins(entry: &ObjectEntry) -> bool {
    let mut object_state = entry.state();
    let was = object_state.pushing;
    object_state.pushing = if was == PushState::Idle { PushState::Asking } else { PushState::Again };
    was == PushState::Idle
}

/// Whether it is over; else there is another round.
fn ends(entry: &ObjectEntry) -> bool {
    let mut object_state = entry.state();
    let is_over = object_state.pushing != PushState::Again;
    object_state.pushing = if is_over { PushState::Idle } else { PushState::Asking };
    is_over
}
