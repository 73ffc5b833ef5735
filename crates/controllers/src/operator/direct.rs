//! 0 ↔ N without an HPA: our own engine decides, in the same rounds.

use api::keda::ScaledObject;
use keda::activity::{State, Told};
use keda::executor::Input;
use keda::status::Changes;

use super::core::{Core, Item};
use super::id::Id;
use super::poll::decide_and_write;

/// What the engine remembers of an object.
#[derive(Debug, Default)]
pub(crate) struct Memory {}

/// Decides after a round. Whoever calls holds the object's gate.
pub(crate) async fn round(
    core: &Core,
    id: &Id,
    _item: &Item,
    object: &ScaledObject,
    _told: &[Told],
    state: State,
) {
    let input = Input::of_round(core.clock.now(), object, &state);
    decide_and_write(core, id, object, input, state.changes.clone()).await;
}

/// Decides when a source has told of activity by itself.
pub(crate) async fn pushed(core: &Core, id: &Id, _item: &Item, object: &ScaledObject, metric: &[String; 1]) {
    let input = Input::of_push(core.clock.now(), object, metric);
    decide_and_write(core, id, object, input, Changes::default()).await;
}
