//! How an object is after a round over all its triggers (docs/spec/keda.md 3.2, 3.4).

use std::collections::BTreeMap;

use api::keda::{COMPOSITE_METRIC, ConditionStatus as Truth, ScaledObject, Trigger, types};
use api::provider::Compat;
use jiff::Timestamp;
use quantity::Quantity;

use super::gather::{Failure, Gathered, Gathering};
use super::{Formula, Reading, Record, State, Told};
use crate::event::Event;
use crate::fallback::Facts;

/// A round over all triggers.
#[derive(Clone, Copy, Debug)]
pub struct Round<'a> {
    /// The time.
    pub now: Timestamp,
    /// Whose triggers.
    pub object: &'a ScaledObject,
    /// The formula of the object.
    pub formula: Formula<'a>,
}

/// How an object is after all its triggers were asked: `told` holds one entry per trigger, in their order.
pub fn state(round: &Round<'_>, told: &[Told], facts: &Facts, compat: Compat) -> State {
    let object = round.object;
    let gathered = Gathered::of(object, told, facts, compat, |_| true);
    let mut state = State {
        error: gathered.failures.first().map(|failure| said(object, failure)),
        is_falling_back: gathered.fallback().is_some(),
        records: records(object, &gathered, compat),
        events: gathered.events(Some(match object.modifiers() {
            Some(_) => "KEDAMetricSourceFailed",
            None => "KEDAScalerFailed",
        })),
        rebuild: gathered.rebuild(told, compat),
        changes: gathered.changes.clone(),
        ..State::default()
    };
    for one in told {
        let of_trigger = gathered.metrics.iter().filter(|metric| metric.trigger == one.trigger);
        let names = active_metrics(of_trigger, compat);
        state.active |= names.is_some();
        state.active_metrics.extend(names.into_iter().flatten());
    }
    state.active_triggers.clone_from(&state.active_metrics);
    if object.modifiers().is_some() {
        compose(round, &gathered, compat, &mut state);
    }
    // Nobody but the HPA knows what processors do, and it does not work for what is at zero.
    if object.spec.triggers.iter().all(Trigger::is_resource) && state.error.is_none() {
        state.active = true;
    }
    // What is told follows the condition; in the original, values, and so it tells the same again and again (trap 33).
    let is_told = if compat.is_strict() { state.is_falling_back } else { is_true(&gathered.object) };
    if state.skipped.is_none() {
        state.events.extend(turn(is_true(object), is_told));
    }
    state
}

/// A formula says what is active, not the triggers.
fn compose(round: &Round<'_>, gathered: &Gathered<'_>, compat: Compat, state: &mut State) {
    state.active = false;
    state.active_triggers.clear();
    if state.error.is_none() {
        match is_composite_active(round, gathered, compat) {
            Ok((active, value)) => {
                (state.active, state.composite) = (active, Some(value));
                if active {
                    state.active_triggers = vec![COMPOSITE_METRIC.to_owned()];
                }
            }
            Err(Unknown::Limit(error)) if compat.is_strict() => state.skipped = Some(error),
            // What cannot be computed is nothing to the original, and scaled to zero.
            Err(Unknown::Value(_)) if compat.is_strict() => {}
            Err(Unknown::Limit(error) | Unknown::Value(error)) => {
                state.events.push(Event::warning("KEDAMetricSourceFailed", error.clone()));
                state.error = Some(error);
            }
        }
    }
    // In the original the metrics of a formula are never active.
    if compat.is_strict() {
        state.active_metrics.clone_from(&state.active_triggers);
    }
}

/// Why it is not known whether a formula is active.
enum Unknown {
    /// Its value is not known.
    Value(String),
    /// It is not known above which value it is.
    Limit(String),
}

/// Whether a formula is active, and what it yields.
fn is_composite_active(
    round: &Round<'_>,
    gathered: &Gathered<'_>,
    compat: Compat,
) -> Result<(bool, Quantity), Unknown> {
    let composite = gathered.composite(round.formula, round.now).map_err(Unknown::Value);
    let limit = match round.object.modifiers().map(|modifiers| modifiers.activation_target.as_str()) {
        None | Some("") => 0.0,
        Some(text) => {
            let wrong = |why: &dyn std::fmt::Display| {
                Unknown::Limit(format!("scalingModifiers.ActivationTarget parsing error {text:?}: {why}"))
            };
            let limit = crate::modifiers::parse_float(text).map_err(|error| wrong(&error))?;
            if limit.is_nan() && !compat.is_strict() {
                return Err(wrong(&"nothing is above that"));
            }
            limit
        }
    };
    let value = composite?.value;
    Ok((value.as_f64() > limit, value))
}

/// The active metrics of a trigger, if it is active: by the names of their values in the original, where the last metric
/// speaks for all of them.
fn active_metrics<'a>(
    metrics: impl Iterator<Item = &'a Gathering<'a>>,
    compat: Compat,
) -> Option<Vec<String>> {
    let mut names = Vec::new();
    let mut is_active = false;
    for metric in metrics {
        let Ok(served) = &metric.served else { continue };
        let own = match served.replicas {
            // What falls back to nothing at all has nothing to do.
            Some(replicas) => compat.is_strict() || replicas > 0,
            None => metric.sample.reading.as_ref().is_ok_and(|reading| reading.active),
        };
        if compat.is_strict() {
            is_active = own;
            names.extend(served.values.iter().map(|value| value.name.clone()));
        } else if own {
            is_active = true;
            names.push(metric.sample.name.clone());
        }
    }
    is_active.then_some(names)
}

/// What is remembered of metrics of triggers with `useCachedMetrics`: what was said. The original remembers what it
/// served instead.
fn records(object: &ScaledObject, gathered: &Gathered<'_>, compat: Compat) -> BTreeMap<String, Record> {
    let is_kept = |metric: &&Gathering<'_>| {
        object.spec.triggers.get(metric.trigger).is_some_and(|trigger| trigger.use_cached_metrics)
    };
    let record = |metric: &Gathering<'_>| match &metric.served {
        _ if !compat.is_strict() => metric.sample.reading.clone(),
        Ok(served) => {
            let said = metric.sample.reading.as_ref().is_ok_and(|reading| reading.active);
            Ok(Reading { values: served.values.clone(), active: served.replicas.is_some() || said })
        }
        Err(error) => Err(error.clone()),
    };
    let kept = gathered.metrics.iter().filter(is_kept);
    kept.map(|metric| (metric.sample.name.clone(), record(metric))).collect()
}

/// That numbers stand for sources from now on, or no longer.
fn turn(was_falling_back: bool, is_falling_back: bool) -> Option<Event> {
    match (was_falling_back, is_falling_back) {
        (false, true) => {
            Some(Event::normal("ScaledObjectFallbackActivated", "ScaledObject fallback is active"))
        }
        (true, false) => Some(Event::normal(
            "ScaledObjectFallbackDeactivated",
            "ScaledObject fallback is no longer active",
        )),
        _ => None,
    }
}

/// Whether numbers stand for sources, as the condition says.
fn is_true(object: &ScaledObject) -> bool {
    object.status.conditions.state(types::FALLBACK) == Truth::True
}

/// Which trigger failed, and why.
fn said(object: &ScaledObject, failure: &Failure) -> String {
    let Failure { trigger, error, .. } = failure;
    match object.spec.triggers.get(*trigger) {
        Some(own) if !own.name.is_empty() => format!("trigger {:?} ({}): {error}", own.name, own.type_),
        Some(own) => format!("trigger {trigger} ({}): {error}", own.type_),
        None => error.clone(),
    }
}
