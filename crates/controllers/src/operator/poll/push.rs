//! A source tells of activity by itself (docs/spec/keda.md 3.8): that there is work, but not how much.

use std::time::Duration;

use keda::executor::Input;
use keda::status::Changes;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until, timeout};

use super::SHARED;
use super::object::{Ask, decide_and_write, round};
use crate::operator::core::{Core, Item, Pushing};
use crate::operator::id::{Id, Kind};
use crate::operator::reconcile::act;
use crate::operator::record;
use crate::operator::settings::Act;
use crate::operator::triggers::{Pushed, Ticket};

/// So long the source may take to say how much work there is before the target is woken without knowing that.
const HEAD_START: Duration = Duration::from_millis(50);

/// Acts on what was told. What comes before the object was reconciled is found by its first poll.
pub(crate) async fn pushed(core: &Core, pushed: Pushed) {
    let Pushed { id, trigger, ticket } = pushed;
    let id = &id;
    if id.kind == Kind::Job || !core.hand.leadership.leads() {
        return;
    }
    let Some(item) = core.known_item(id) else { return };
    let Some(object) = core.world().object(id) else { return };
    if act(core, &object) == Act::Direct {
        // Whoever tells meanwhile is noted by that.
        drop(ticket);
        size(core, id, &item, trigger).await;
    } else {
        wake(core, id, &item, trigger, Some(ticket)).await;
    }
}

/// Rest ends. If it has ended, it is noted that there is work.
async fn wake(core: &Core, id: &Id, item: &Item, trigger: usize, ticket: Option<Ticket>) {
    let _alone = item.gate.lock().await;
    // What is told from here on is news.
    drop(ticket);
    let Some(object) = core.world().object(id) else { return };
    if object.metadata.deletion_timestamp.is_some() || object.is_paused() {
        return;
    }
    let prefix = format!("s{trigger}-");
    let metric = object.status.external_metric_names.iter().find(|name| name.starts_with(&prefix));
    let Some(metric) = metric else { return };
    let metric = [metric.clone()];
    let input = Input::of_push(core.clock.now(), &object, &metric);
    let said = record::pushed(&object, metric.first().map_or("", String::as_str));
    decide_and_write(core, id, &object, input, Changes::default(), said).await;
}

/// Where no HPA does it: asks at once how much work there is, and acts on that; whoever is slow to say does not delay the
/// waking. However often it is pushed, there is one such round at a time, and no more than one per second.
async fn size(core: &Core, id: &Id, item: &Item, trigger: usize) {
    if !item.notes().polled || !begins(item) {
        return;
    }
    loop {
        let last = item.notes().pushed;
        if let Some(next) = last.map(|last| last + SHARED).filter(|next| *next > Instant::now()) {
            wake(core, id, item, trigger, None).await;
            sleep_until(next).await;
        }
        item.notes().pushed = Some(Instant::now());
        let asked = Notify::new();
        let ask = async {
            round(core, id, Ask::Now).await;
            asked.notify_one();
        };
        let act = async {
            // It is acted on in any case, also if the source contradicts itself.
            let _ = timeout(HEAD_START, asked.notified()).await;
            wake(core, id, item, trigger, None).await;
        };
        tokio::join!(ask, act);
        if ends(item) {
            return;
        }
    }
}

/// Whether a round begins; else the one that runs is followed by another.
fn begins(item: &Item) -> bool {
    let mut notes = item.notes();
    let was = notes.pushing;
    notes.pushing = if was == Pushing::Idle { Pushing::Asking } else { Pushing::Again };
    was == Pushing::Idle
}

/// Whether it is over; else there is another round.
fn ends(item: &Item) -> bool {
    let mut notes = item.notes();
    let is_over = notes.pushing != Pushing::Again;
    notes.pushing = if is_over { Pushing::Idle } else { Pushing::Asking };
    is_over
}
