//! One round of a ScaledObject: ask, decide, act, report (docs/spec/keda.md 3.2).

use std::sync::Arc;
use std::time::Duration;

use api::autoscaling::v2::MetricSpec;
use api::keda::{Condition, GroupVersionKindResource, ScaledObject, types};
use keda::activity::{self, ActivityState, TriggerMetric, TriggerResult};
use keda::executor::{self, ExecutorInput, ScaleChange, ScaleReason, ScaleResult};
use keda::{fallback, status};
use tokio::time::Instant;

use super::{PollOutcome, SHARED, last_active};
use crate::operator::context::{ObjectEntry, OperatorContext};
use crate::operator::direct::{self, Round};
use crate::operator::event_recorder::EventSubject;
use crate::operator::id::{Id, Name};
use crate::operator::raw_metrics::MetricRequester;
use crate::operator::reconcile::scaling_mode;
use crate::operator::record::{self, RoundRecord};
use crate::operator::scalers_cache::{
    CachedScaler, SampleQuery, ScaledResource, ScalersCache, TriggerSamples, told,
};
use crate::operator::settings::ScalingMode;

/// SampleQuery a reconcile begins to say that it did not find the target.
const NO_TARGET: &str = "ScaledObject doesn't have correct scaleTargetRef specification";
const REFUSED: &str = "ScaledObjectCheckFailed";

/// SampleQuery often it is decided anew when the count is another than it was taken for.
const ATTEMPTS: u32 = 3;

pub(super) async fn poll(context: &OperatorContext, id: &Id) -> PollOutcome {
    round(context, id, Ask::IfOld).await
}

/// Whether sources are asked though there are samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ask {
    /// If nobody has asked them for a while.
    IfOld,
    /// In any case.
    Now,
}

/// One round.
pub(super) async fn round(context: &OperatorContext, id: &Id, ask: Ask) -> PollOutcome {
    let Some(object) = context.store().object(id) else { return PollOutcome::default() };
    let entry = context.entry(id);
    let owner = ScaledResource::Object(Arc::clone(&object));
    let triggers = context.triggers(&entry, &owner);
    let (age, failures) = match ask {
        Ask::IfOld => {
            (context.settings.age(age(context, &entry, &owner, &triggers)), context.settings.age(SHARED))
        }
        Ask::Now => (Duration::ZERO, Duration::ZERO),
    };
    let how = SampleQuery {
        age,
        failures,
        // What is as old as a poll is no answer to the next one.
        others: context.builder.backends.web.settings().fresh.min(owner.interval() / 2),
        deadline: context.settings.source_deadline,
        wanted: &|_| true,
        records: None,
    };
    let asked = context.clock.now();
    // Sources may take their time; others may act on the object meanwhile.
    let heard = triggers.ask(&context.builder, &owner, how).await;
    entry.state().asked = Some(Instant::now());
    context.raw_metrics.publish(MetricRequester::Poll, context.clock.now(), id, &triggers, &heard);
    let compat = context.settings.compat;
    let known = |(slot, heard): (&CachedScaler, &TriggerSamples)| {
        heard.specs.clone().unwrap_or_else(|_| last(&object, slot))
    };
    let specs: Vec<Vec<MetricSpec>> = triggers.slots().iter().zip(&heard).map(known).collect();
    let unbuilt = heard.iter().filter(|heard| !heard.is_built).find_map(|heard| heard.specs.clone().err());
    let told = told(heard, compat);

    let _alone = entry.gate.lock().await;
    let Some(object) = context.store().object(id) else { return PollOutcome::default() };
    if object.metadata.deletion_timestamp.is_some()
        || !triggers.are_of(&ScaledResource::Object(Arc::clone(&object)))
    {
        return PollOutcome::default();
    }
    if compat.is_strict() && matches!(triggers.formula(), Some(Err(_))) || is_lost(&object) {
        // Without a formula nothing is built, and nothing is decided about a target that is not there.
        return PollOutcome::default();
    }
    if object.is_paused() && object.status.conditions.state(types::PAUSED) != api::keda::ConditionStatus::True
    {
        // The reconcile that is on its way says so, and tells it.
        return PollOutcome::default();
    }
    if compat.is_strict()
        && let Some(error) = unbuilt.clone()
    {
        // To the original, what cannot be built is the end of the round (docs/spec/keda.md 3.2).
        skip(context, &object, error);
        return PollOutcome::default();
    }
    let needs = fallback::needs(&object, &told, compat);
    let facts = context.reader.facts(&object, needs).await;
    let now = context.clock.now();
    let round = activity::PollRound { now, object: &object, formula: triggers.formula() };
    let state = activity::activity_state(&round, &told, &facts, compat);
    for event in &state.events {
        context.events.record_poll(EventSubject::Object, &object.metadata, event);
    }
    note(context, &entry, &object, &told, &state);
    if compat.is_strict() && !state.rebuild.is_empty() {
        // The original builds all of them anew as soon as one fails; else that one is, while it is asked.
        entry.drop_triggers();
    }
    if let Some(error) = &state.skipped {
        tracing::warn!(object = %id, error, "a round is skipped");
        report(context, id, &state.changes).await;
        return PollOutcome::default();
    }
    // Times of activity are whole seconds.
    let is_newer = |time: jiff::Timestamp| time.as_second() >= asked.as_second();
    if !state.active && !compat.is_strict() && entry.state().last_active.is_some_and(is_newer) {
        // A source has told of activity by itself since: what others were asked before says nothing about that.
        report(context, id, &state.changes).await;
        return PollOutcome::default();
    }
    let object =
        if state.active || compat.is_strict() { object } else { last_active::known(&entry, &object, now) };
    let object = match unbuilt {
        // Nobody waits for the fallback of what cannot even be asked: its cause is told.
        Some(_) if !state.is_falling_back && object.spec.fallback.is_some() => without_fallback(&object),
        _ => object,
    };
    let woke =
        state.active && object.status.conditions.state(types::ACTIVE) != api::keda::ConditionStatus::True;
    if scaling_mode(context, &object) == ScalingMode::Direct {
        let formula = triggers.formula();
        let round =
            Round { object: &object, told: &told, facts: &facts, formula, specs: &specs, state: &state };
        direct::round(context, id, &entry, round).await;
    } else {
        let input = ExecutorInput::of_round(now, &object, &state);
        let (formula, active) = (triggers.formula(), state.active);
        let said = RoundRecord { now, object: &object, told: &told, facts: &facts, formula, active, compat };
        decide_and_write(context, id, &object, input, state.changes.clone(), said.round()).await;
    }
    PollOutcome { is_stale: is_stale(&object, &told), woke }
}

/// SampleQuery old a sample may be for a poll. The HPA of a target that is awake asks more often than we do, and what it was told since
/// our last poll does for us too; at rest nobody asks but we. A source that tells of activity itself has told since.
fn age(
    context: &OperatorContext,
    entry: &ObjectEntry,
    owner: &ScaledResource,
    triggers: &ScalersCache,
) -> Duration {
    if triggers.are_pushed() {
        return SHARED;
    }
    let since = entry.state().asked.map_or(Duration::ZERO, |asked| asked.elapsed());
    context.settings.sample_age.min(owner.interval() / 2).min(since).max(SHARED)
}

/// Decides, writes the count and the status, and tells (docs/spec/keda.md 3.6, 3.9). Whoever calls holds the object's gate.
pub(crate) async fn decide_and_write(
    context: &OperatorContext,
    id: &Id,
    object: &ScaledObject,
    input: ExecutorInput<'_>,
    changes: status::StatusChanges,
    round: engine::TriggerPoll,
) {
    let name = Name::new(&object.metadata.namespace, &object.status.hpa_name);
    let said = context.store().hpas.get(&name).and_then(|hpa| hpa.scaling_active.clone());
    let said = said.as_deref().map(std::slice::from_ref);
    let mut current = context.reader.current(object).await;
    let mut attempt = 1;
    let (input, decision, scaled) = loop {
        let input = input.clone().with(current, said);
        let decision = executor::decide(&input, context.settings.compat);
        if let Some(error) = &decision.error {
            tracing::warn!(object = %id, error, "nothing can be decided");
        }
        let scaled = match (decision.scale, &object.status.scale_target_gvkr) {
            (Some(change), Some(target)) => Some(scale(context, id, target, &input, change).await),
            _ => None,
        };
        match scaled {
            // What was watched is old by now: it is decided again from what was found.
            Some(Outcome::Moved { to }) if attempt < ATTEMPTS => {
                current = Ok(to);
                attempt += 1;
            }
            scaled => break (input, decision, scaled.map(Outcome::told)),
        }
    };
    record::keep_activity(context, id, &input, &decision, scaled.as_ref(), round);
    let outcome = decision.finish(scaled.as_ref());
    for event in &outcome.events {
        context.events.record_poll(EventSubject::Object, &object.metadata, event);
    }
    report(context, id, &changes.then(outcome.changes)).await;
}

/// What came of a change of the count.
enum Outcome {
    /// It was tried.
    Tried(ScaleResult),
    /// It was not: the count is another than it was taken for.
    Moved { to: i32 },
}

impl Outcome {
    fn told(self) -> ScaleResult {
        match self {
            Self::Tried(scaled) => scaled,
            Self::Moved { to } => {
                let error = "others change the count all the time; the next round decides again".to_owned();
                ScaleResult::NotWritten { from: to, error }
            }
        }
    }
}

/// Writes a count. Who wakes or lifts must not take away what somebody else has added since the target was looked at.
async fn scale(
    context: &OperatorContext,
    id: &Id,
    target: &GroupVersionKindResource,
    input: &ExecutorInput<'_>,
    change: ScaleChange,
) -> Outcome {
    let object = input.object;
    let (namespace, name) = (&object.metadata.namespace, &object.spec.scale_target_ref.name);
    let adds = change.why != ScaleReason::Deactivate && !context.settings.compat.is_strict();
    let expected = input.current.as_ref().ok().copied().filter(|_| adds);
    let scaled = context.client.scale_from(namespace, name, target, expected, change.to).await;
    match &scaled {
        ScaleResult::NotWritten { from, .. } if expected.is_some_and(|expected| expected != *from) => {
            return Outcome::Moved { to: *from };
        }
        ScaleResult::NotRead(error) | ScaleResult::NotWritten { error, .. } => {
            tracing::warn!(object = %id, to = change.to, error, "failed to scale a target");
        }
        ScaleResult::Written { .. } => {
            tracing::info!(object = %id, to = change.to, why = ?change.why, "scaled")
        }
    }
    Outcome::Tried(scaled)
}

/// Writes what has changed into the newest status that is known.
pub(crate) async fn report(context: &OperatorContext, id: &Id, changes: &status::StatusChanges) {
    let (Some(object), Some(entry)) = (context.store().object(id), context.known_entry(id)) else { return };
    let mut changes = changes.clone();
    if !context.settings.compat.is_strict() {
        changes = last_active::leave_out(&entry, &object, changes);
    }
    if !changes.change(&object.status) {
        return;
    }
    let mut status = object.status.clone();
    changes.apply(&mut status);
    if let Some(patch) = status::difference(&object.status, &status)
        && let Err(error) = context.write_object(id, &patch, "status").await
        && !error.is_not_found()
    {
        tracing::warn!(object = %id, %error, "failed to write a status");
    }
}

/// What a query has changed is written, if it is for us to write.
pub(crate) async fn after_query(context: &OperatorContext, id: &Id, changes: &status::StatusChanges) {
    if context.client.leadership.is_leader() {
        report(context, id, changes).await;
    }
}

/// What is kept until the next round.
fn note(
    context: &OperatorContext,
    entry: &ObjectEntry,
    object: &ScaledObject,
    told: &[TriggerResult],
    state: &ActivityState,
) {
    let failed = told.iter().filter(|told| match &told.metrics {
        Err(_) => true,
        Ok(metrics) => {
            metrics.iter().any(|m| matches!(m, TriggerMetric::External(sample) if sample.reading.is_err()))
        }
    });
    let failed = failed.count();
    let mut object_state = entry.state();
    let is_cached = |trigger: &api::keda::Trigger| trigger.use_cached_metrics;
    if !object.spec.triggers.iter().any(is_cached) {
        object_state.records.clear();
    } else if state.skipped.is_none() {
        object_state.records.clone_from(&state.records);
    }
    object_state.composite = object.modifiers().map(|_| state.active);
    object_state.yielded = state.composite.as_ref().map(quantity::Quantity::as_f64);
    let errors = object_state.errors.get_or_insert(0);
    *errors += failed as u64;
    drop(object_state);
    context.counters.polled();
}

fn without_fallback(object: &ScaledObject) -> Arc<ScaledObject> {
    let mut object = object.clone();
    object.spec.fallback = None;
    Arc::new(object)
}

/// Whether the last reconcile did not find the target.
fn is_lost(object: &ScaledObject) -> bool {
    let ready = object.status.conditions.get(types::READY);
    let is_so = |ready: &Condition| ready.reason == REFUSED && ready.message.starts_with(NO_TARGET);
    ready.is_some_and(is_so)
}

fn skip(context: &OperatorContext, object: &ScaledObject, error: String) {
    let event = keda::event::Event::warning("KEDAScalerFailed", error);
    context.events.record_poll(EventSubject::Object, &object.metadata, &event);
    context.counters.failed(&object.metadata, EventSubject::Object);
}

/// The metrics that a trigger had when it last told; by their names alone if that was before we came.
fn last(object: &ScaledObject, slot: &CachedScaler) -> Vec<MetricSpec> {
    let told = slot.last_specs();
    if told.is_empty() { keda::hpa::metrics_from_status(object, slot.index()) } else { told }
}

/// Whether the triggers have metrics that the HPA does not know; a trigger that does not tell says nothing about that.
fn is_stale(object: &ScaledObject, told: &[TriggerResult]) -> bool {
    let known = &object.status.external_metric_names;
    told.iter().flat_map(TriggerResult::samples).any(|sample| !known.contains(&sample.name))
}
