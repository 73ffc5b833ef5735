//! A source tells of activity by itself (spec 3.8).

use keda::executor::Input;
use keda::status::Changes;

use super::object::decide_and_write;
use crate::operator::core::Core;
use crate::operator::direct;
use crate::operator::id::Kind;
use crate::operator::reconcile::act;
use crate::operator::settings::Act;
use crate::operator::triggers::Pushed;

/// Acts on what was told. What comes before the object was reconciled is found by its first poll.
pub(crate) async fn pushed(core: &Core, pushed: &Pushed) {
    let id = &pushed.id;
    if id.kind == Kind::Job || !core.hand.leadership.leads() {
        return;
    }
    let Some(item) = core.known_item(id) else { return };
    let _alone = item.gate.lock().await;
    let Some(object) = core.world().object(id) else { return };
    if object.metadata.deletion_timestamp.is_some() || object.is_paused() {
        return;
    }
    let prefix = format!("s{}-", pushed.trigger);
    let metric = object.status.external_metric_names.iter().find(|name| name.starts_with(&prefix));
    let Some(metric) = metric else { return };
    let metric = [metric.clone()];
    if act(core, &object) == Act::Direct {
        direct::pushed(core, id, &object, &metric).await;
        return;
    }
    let input = Input::of_push(core.clock.now(), &object, &metric);
    decide_and_write(core, id, &object, input, Changes::default()).await;
}
