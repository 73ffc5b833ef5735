//! One round of a ScaledObject: ask, decide, act, report (spec 3.2).

use std::sync::Arc;

use api::autoscaling::v2::MetricSpec;
use api::keda::ScaledObject;
use keda::activity::{self, Metric, State, Told};
use keda::executor::{self, Input, Scaled};
use keda::{fallback, status};

use super::{Polled, SHARED};
use crate::operator::core::{Core, Item};
use crate::operator::direct::{self, Round};
use crate::operator::id::{Id, Name};
use crate::operator::reconcile::act;
use crate::operator::settings::Act;
use crate::operator::tell::Subject;
use crate::operator::triggers::{Heard, How, Owner, Slot};

pub(super) async fn poll(core: &Core, id: &Id) -> Polled {
    let Some(object) = core.world().object(id) else { return Polled::default() };
    let item = core.item(id);
    let owner = Owner::Object(Arc::clone(&object));
    let triggers = core.triggers(&item, &owner);
    let how = How {
        age: core.settings.age(SHARED),
        deadline: core.settings.source_deadline,
        wanted: &|_| true,
        records: None,
    };
    // Sources may take their time; others may act on the object meanwhile.
    let heard = triggers.ask(&core.maker, &owner, how).await;
    let known = |(slot, heard): (&Slot, &Heard)| heard.specs.clone().unwrap_or_else(|_| slot.last_specs());
    let specs: Vec<Vec<MetricSpec>> = triggers.slots().iter().zip(&heard).map(known).collect();
    let told: Vec<Told> = heard.into_iter().enumerate().map(|(index, heard)| heard.told(index)).collect();

    let _alone = item.gate.lock().await;
    let Some(object) = core.world().object(id) else { return Polled::default() };
    if object.metadata.deletion_timestamp.is_some() || !triggers.are_of(&Owner::Object(Arc::clone(&object))) {
        return Polled::default();
    }
    let compat = core.settings.compat;
    if compat.is_strict() && told.iter().any(|told| told.metrics.is_err()) {
        // To the original, what cannot be built is the end of the round (spec 3.2).
        skip(core, &object, &told);
        return Polled::default();
    }
    let needs = fallback::needs(&object, &told, compat);
    let facts = core.eyes.facts(&object, needs).await;
    let now = core.clock.now();
    let round = activity::Round { now, object: &object, formula: triggers.formula() };
    let state = activity::state(&round, &told, &facts, compat);
    for event in &state.events {
        core.tell.round(Subject::Object, &object.metadata, event);
    }
    note(core, &item, &object, &told, &state);
    if compat.is_strict() && !state.rebuild.is_empty() {
        // The original builds all of them anew as soon as one fails; else that one is, while it is asked.
        item.drop_triggers();
    }
    if let Some(error) = &state.skipped {
        tracing::warn!(object = %id, error, "a round is skipped");
        return Polled::default();
    }
    if act(core, &object) == Act::Direct {
        let formula = triggers.formula();
        let round =
            Round { object: &object, told: &told, facts: &facts, formula, specs: &specs, state: &state };
        direct::round(core, id, &item, round).await;
    } else {
        let input = Input::of_round(now, &object, &state);
        decide_and_write(core, id, &object, input, state.changes.clone()).await;
    }
    Polled { is_stale: is_stale(&object, &told) }
}

/// Decides, writes the count and the status, and tells (spec 3.6, 3.9). Whoever calls holds the object's gate.
pub(crate) async fn decide_and_write(
    core: &Core,
    id: &Id,
    object: &ScaledObject,
    input: Input<'_>,
    changes: status::Changes,
) {
    let current = core.eyes.current(object).await;
    let name = Name::new(&object.metadata.namespace, &object.status.hpa_name);
    let said = core.world().hpas.get(&name).and_then(|hpa| hpa.scaling_active.clone());
    let input = input.with(current, said.as_ref().map(std::slice::from_ref));
    let decision = executor::decide(&input, core.settings.compat);
    if let Some(error) = &decision.error {
        tracing::warn!(object = %id, error, "nothing can be decided");
    }
    let mut scaled = None;
    if let (Some(change), Some(target)) = (decision.scale, &object.status.scale_target_gvkr) {
        let (namespace, name) = (&object.metadata.namespace, &object.spec.scale_target_ref.name);
        let outcome = core.hand.scale_to(namespace, name, target, change.to).await;
        if let Scaled::NotRead(error) | Scaled::NotWritten { error, .. } = &outcome {
            tracing::warn!(object = %id, to = change.to, error, "failed to scale a target");
        } else {
            tracing::info!(object = %id, to = change.to, why = ?change.why, "scaled");
        }
        scaled = Some(outcome);
    }
    let outcome = decision.finish(scaled.as_ref());
    for event in &outcome.events {
        core.tell.round(Subject::Object, &object.metadata, event);
    }
    report(core, id, &changes.then(outcome.changes)).await;
}

/// Writes what has changed into the newest status that is known.
pub(crate) async fn report(core: &Core, id: &Id, changes: &status::Changes) {
    let Some(object) = core.world().object(id) else { return };
    let mut status = object.status.clone();
    if let Some(patch) = status::merge(&mut status, changes)
        && let Err(error) = core.write_object(id, &patch, "status").await
        && !error.is_not_found()
    {
        tracing::warn!(object = %id, %error, "failed to write a status");
    }
}

/// What a query has changed is written, if it is for us to write.
pub(crate) async fn after_query(core: &Core, id: &Id, changes: &status::Changes) {
    if core.hand.leadership.leads() {
        report(core, id, changes).await;
    }
}

/// What is kept until the next round.
fn note(core: &Core, item: &Item, object: &ScaledObject, told: &[Told], state: &State) {
    let failed = told.iter().filter(|told| match &told.metrics {
        Err(_) => true,
        Ok(metrics) => {
            metrics.iter().any(|m| matches!(m, Metric::External(sample) if sample.reading.is_err()))
        }
    });
    let failed = failed.count();
    let mut notes = item.notes();
    notes.records.clone_from(&state.records);
    notes.composite = object.modifiers().map(|_| state.active);
    let errors = notes.errors.get_or_insert(0);
    *errors += failed as u64;
    drop(notes);
    core.counters.polled();
}

fn skip(core: &Core, object: &ScaledObject, told: &[Told]) {
    for error in told.iter().filter_map(|told| told.metrics.as_ref().err()).take(1) {
        let event = keda::event::Event::warning("KEDAScalerFailed", error.clone());
        core.tell.round(Subject::Object, &object.metadata, &event);
        core.counters.failed(&object.metadata, Subject::Object);
    }
}

/// Whether the triggers have metrics that the HPA does not know; a trigger that does not tell says nothing about that.
fn is_stale(object: &ScaledObject, told: &[Told]) -> bool {
    let known = &object.status.external_metric_names;
    told.iter().flat_map(Told::samples).any(|sample| !known.contains(&sample.name))
}
