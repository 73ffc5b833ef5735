//! The outcome of a poll over all triggers (docs/spec/keda.md 3.2, 3.4).

use std::collections::BTreeMap;

use api::keda::{COMPOSITE_METRIC, ConditionStatus as Truth, ScaledObject, Trigger, types};
use api::provider::Compat;
use jiff::Timestamp;
use quantity::Quantity;

use super::collect::{CollectedMetric, CollectedMetrics, TriggerFailure};
use super::{ActivityState, CachedReading, Formula, HpaObservations, Reading, TriggerResult};
use crate::event::Event;
use crate::fallback::TargetFacts;

/// A poll of all triggers.
#[derive(Clone, Copy, Debug)]
pub struct PollRound<'a> {
    /// The time.
    pub now: Timestamp,
    /// The object.
    pub object: &'a ScaledObject,
    /// The formula of the object.
    pub formula: Formula<'a>,
}

/// The outcome of a poll; `results` has one entry per trigger, in order.
pub fn activity_state(
    round: &PollRound<'_>,
    results: &[TriggerResult],
    facts: &TargetFacts,
    compat: Compat,
) -> ActivityState {
    activity_state_with(round, results, facts, &HpaObservations::new(), compat)
}

/// The same, where metrics with an observation of the HPA were not queried: their samples hold the observed reading.
pub fn activity_state_with(
    round: &PollRound<'_>,
    results: &[TriggerResult],
    facts: &TargetFacts,
    observed: &HpaObservations,
    compat: Compat,
) -> ActivityState {
    let object = round.object;
    let collected = CollectedMetrics::of(object, results, facts, observed, compat, |_| true);
    let mut state = ActivityState {
        error: collected.failures.first().map(|failure| describe_failure(object, failure)),
        is_falling_back: collected.fallback().is_some(),
        records: records(object, &collected, compat),
        events: collected.events(Some(match object.modifiers() {
            Some(_) => "KEDAMetricSourceFailed",
            None => "KEDAScalerFailed",
        })),
        rebuild: collected.rebuild(results, compat),
        changes: collected.changes.clone(),
        ..ActivityState::default()
    };
    for of_trigger in collected.metrics.chunk_by(|one, next| one.trigger == next.trigger) {
        let names = active_metrics(of_trigger, compat);
        state.active |= names.is_some();
        state.active_metrics.extend(names.into_iter().flatten());
    }
    state.active_triggers.clone_from(&state.active_metrics);
    if object.modifiers().is_some() {
        compose(round, &collected, compat, &mut state);
    }
    // Only the HPA reads CPU and memory, and it does not act on targets at zero.
    if object.spec.triggers.iter().all(Trigger::is_resource) && state.error.is_none() {
        state.active = true;
    }
    // Events follow the condition; in KEDA they follow values, so the same event is repeated (trap 33).
    let is_reported =
        if compat.is_strict() { state.is_falling_back } else { is_falling_back_condition(&collected.object) };
    if state.skipped.is_none() {
        state.events.extend(fallback_event(is_falling_back_condition(object), is_reported));
    }
    state
}

/// With a formula its result decides about activity, not the triggers.
fn compose(
    round: &PollRound<'_>,
    collected: &CollectedMetrics<'_>,
    compat: Compat,
    state: &mut ActivityState,
) {
    state.active = false;
    state.active_triggers.clear();
    if state.error.is_none() {
        match is_composite_active(round, collected, compat) {
            Ok((active, value)) => {
                (state.active, state.composite) = (active, Some(value));
                if active {
                    state.active_triggers = vec![COMPOSITE_METRIC.to_owned()];
                }
            }
            Err(UnknownActivity::Limit(error)) if compat.is_strict() => state.skipped = Some(error),
            // KEDA treats a formula that fails as inactive, and scales to zero.
            Err(UnknownActivity::Value(_)) if compat.is_strict() => {}
            Err(UnknownActivity::Limit(error) | UnknownActivity::Value(error)) => {
                state.events.push(Event::warning("KEDAMetricSourceFailed", error.clone()));
                state.error = Some(error);
            }
        }
    }
    // In KEDA the metrics of a formula are never active.
    if compat.is_strict() {
        state.active_metrics.clone_from(&state.active_triggers);
    }
}

/// Why the activity of a formula is unknown.
enum UnknownActivity {
    /// Its value failed.
    Value(String),
    /// Its activation target is invalid.
    Limit(String),
}

/// Whether a formula is active, and its value.
fn is_composite_active(
    round: &PollRound<'_>,
    collected: &CollectedMetrics<'_>,
    compat: Compat,
) -> Result<(bool, Quantity), UnknownActivity> {
    let composite =
        collected.composite(round.formula, round.now).map_err(|error| UnknownActivity::Value(error.into()));
    let limit = match round.object.modifiers().map(|modifiers| modifiers.activation_target.as_str()) {
        None | Some("") => 0.0,
        Some(text) => {
            let wrong = |why: &dyn std::fmt::Display| {
                UnknownActivity::Limit(format!(
                    "scalingModifiers.ActivationTarget parsing error {text:?}: {why}"
                ))
            };
            let limit = crate::float::parse_float(text).map_err(|error| wrong(&error))?;
            if limit.is_nan() && !compat.is_strict() {
                return Err(wrong(&"nothing is above that"));
            }
            limit
        }
    };
    let value = composite?.value;
    Ok((value.as_f64() > limit, value))
}

/// The active metrics of a trigger, if it is active; in strict mode by the names of their values, where the last metric
/// decides, as in KEDA.
fn active_metrics(metrics: &[CollectedMetric<'_>], compat: Compat) -> Option<Vec<String>> {
    let mut names = Vec::new();
    let mut is_active = false;
    for metric in metrics {
        let Ok(served) = &metric.served else { continue };
        let own = match served.replicas {
            // A fallback to zero replicas is not active.
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

/// The cached readings of triggers with `useCachedMetrics`: those of the source. KEDA caches the values it
/// served.
fn records(
    object: &ScaledObject,
    collected: &CollectedMetrics<'_>,
    compat: Compat,
) -> BTreeMap<String, CachedReading> {
    let is_kept = |metric: &&CollectedMetric<'_>| {
        object.spec.triggers.get(metric.trigger).is_some_and(|trigger| trigger.use_cached_metrics)
    };
    let record = |metric: &CollectedMetric<'_>| match &metric.served {
        _ if !compat.is_strict() => metric.sample.reading.clone(),
        Ok(served) => {
            let is_active = metric.sample.reading.as_ref().is_ok_and(|reading| reading.active);
            Ok(Reading { values: served.values.clone(), active: served.replicas.is_some() || is_active })
        }
        Err(error) => Err(error.clone()),
    };
    let kept = collected.metrics.iter().filter(is_kept);
    kept.map(|metric| (metric.sample.name.clone(), record(metric))).collect()
}

/// The event when a fallback begins or ends.
fn fallback_event(was_falling_back: bool, is_falling_back: bool) -> Option<Event> {
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

/// Whether the condition `Fallback` is true.
fn is_falling_back_condition(object: &ScaledObject) -> bool {
    object.status.conditions.state(types::FALLBACK) == Truth::True
}

/// Describes which trigger failed, and why.
fn describe_failure(object: &ScaledObject, failure: &TriggerFailure) -> String {
    let TriggerFailure { trigger, error, .. } = failure;
    match object.spec.triggers.get(*trigger) {
        Some(own) if !own.name.is_empty() => format!("trigger {:?} ({}): {error}", own.name, own.type_),
        Some(own) => format!("trigger {trigger} ({}): {error}", own.type_),
        None => error.to_string(),
    }
}
