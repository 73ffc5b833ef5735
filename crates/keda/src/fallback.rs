//! Fallback: a source that fails too often is replaced by a fixed value (docs/spec/keda.md 4.4).

#[cfg(test)]
mod tests;

use api::autoscaling::v2::MetricTarget;
use api::keda::{
    COMPOSITE_METRIC, Condition, ConditionStatus, Conditions, Fallback, ScaledObject, TriggerHealth, types,
};
use api::map::Map;
use api::provider::Compat;
use quantity::{Format, Quantity};

use crate::OperationError;
use crate::reading::{MetricSample, MetricValue, TriggerResult};
use crate::status::StatusChanges;

/// What [`serve`] needs to know about the target.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FallbackNeeds {
    /// Desired replicas of the target.
    pub current: bool,
    /// Ready pods of the target.
    pub ready_pods: bool,
}

/// Facts about the target, or why they are unknown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetFacts {
    /// Desired replicas of the target.
    pub current: Result<i32, OperationError>,
    /// Running and ready pods of the target ([`is_ready`]).
    pub ready_pods: Result<u32, OperationError>,
}

impl Default for TargetFacts {
    /// Unknown.
    fn default() -> Self {
        let unknown = || "not read".into();
        Self { current: Err(unknown()), ready_pods: Err(unknown()) }
    }
}

/// The values served for a metric.
#[derive(Clone, Debug, PartialEq)]
pub struct ServedMetric {
    /// Its values.
    pub values: Vec<MetricValue>,
    /// The fallback replicas, if the values are not those of the source.
    pub replicas: Option<i32>,
}

/// The fallback of an object, if it has a valid one.
pub fn configured(object: &ScaledObject, compat: Compat) -> Option<&Fallback> {
    let fallback = object.spec.fallback.as_ref()?;
    let is_target_usable = object.modifiers().is_none_or(|modifiers| match compat {
        // KEDA supports only whole targets here, although formulas allow others (trap 6).
        Compat::Strict => modifiers.target.parse::<i64>().is_ok_and(|target| target > 0),
        Compat::Better => target_of(&modifiers.target).is_some(),
    });
    (fallback.failure_threshold >= 0 && fallback.replicas >= 0 && is_target_usable).then_some(fallback)
}

/// The facts that [`serve`] needs for these samples.
pub fn needs(object: &ScaledObject, results: &[TriggerResult], compat: Compat) -> FallbackNeeds {
    let mut needs = FallbackNeeds::default();
    let Some(fallback) = configured(object, compat) else { return needs };
    for sample in results.iter().flat_map(TriggerResult::samples).filter(|sample| sample.reading.is_err()) {
        let failures = failures(&object.status.health, &sample.name);
        let counted = if counts(sample, compat) { failures.saturating_add(1) } else { failures };
        if counted > fallback.failure_threshold && fallback.behavior != "scalingModifiers" {
            needs.current |= fallback.behavior != "static";
            needs.ready_pods |= type_of(object, &sample.target) == "Value";
        }
    }
    needs
}

/// The values served for one metric, or why there are none; updates its health.
pub fn serve(
    object: &ScaledObject,
    health: &mut Map<TriggerHealth>,
    sample: &MetricSample,
    facts: &TargetFacts,
    compat: Compat,
) -> Result<ServedMetric, OperationError> {
    let fallback = configured(object, compat);
    let is_counted = fallback.is_some() && counts(sample, compat);
    let error = match &sample.reading {
        Ok(reading) => {
            if is_counted {
                health.insert(sample.name.clone(), of_health(0, "Happy"));
            }
            return Ok(ServedMetric { values: reading.values.clone(), replicas: None });
        }
        Err(error) => error,
    };
    let Some(fallback) = fallback else { return Err(error.clone()) };
    let mut failures = failures(health, &sample.name);
    if is_counted {
        failures = failures.saturating_add(1);
        health.insert(sample.name.clone(), of_health(failures, "Failing"));
    }
    if failures <= fallback.failure_threshold {
        return Err(error.clone());
    }
    if fallback.behavior == "scalingModifiers" {
        return placeholder(object, sample, error, compat);
    }
    let replicas = replicas(fallback, &facts.current).ok_or_else(|| error.clone())?;
    let value = value(object, sample, replicas, facts).ok_or("error performing fallback")?;
    let name = if object.modifiers().is_some() { COMPOSITE_METRIC } else { &sample.name };
    Ok(ServedMetric { values: vec![MetricValue { name: name.to_owned(), value }], replicas: Some(replicas) })
}

/// Status changes for the new health of metrics; none without a fallback.
pub fn changes(object: &ScaledObject, health: &Map<TriggerHealth>, compat: Compat) -> StatusChanges {
    let Some(fallback) = configured(object, compat) else { return StatusChanges::default() };
    let is_new = |(name, own): &(&String, &TriggerHealth)| object.status.health.get(*name) != Some(*own);
    let new = health.iter().filter(is_new).map(|(name, own)| (name.clone(), own.clone()));
    // An object without conditions gets all initial conditions, too.
    let is_first = object.status.conditions.is_empty();
    let mut conditions = if is_first { Conditions::initial() } else { Conditions::default() };
    conditions.set(condition(fallback, health));
    StatusChanges {
        conditions: conditions.iter().cloned().collect(),
        health: new.collect(),
        ..StatusChanges::default()
    }
}

/// The condition `Fallback`.
fn condition(fallback: &Fallback, health: &Map<TriggerHealth>) -> Condition {
    let is_failing = |health: &TriggerHealth| {
        health.status == "Failing"
            && health.number_of_failures.is_some_and(|failures| failures > fallback.failure_threshold)
    };
    if health.values().any(is_failing) {
        let message = "At least one trigger is falling back on this scaled object";
        Condition::new(types::FALLBACK, ConditionStatus::True, "FallbackExists", message)
    } else {
        let message = "No fallbacks are active on this scaled object";
        Condition::new(types::FALLBACK, ConditionStatus::False, "NoFallbackFound", message)
    }
}

/// Whether a pod counts as ready, from its phase and the status of its condition `Ready`.
pub fn is_ready(phase: &str, ready: Option<&str>) -> bool {
    phase == "Running" && ready == Some("True")
}

/// Whether a sample changes the health of its source. KEDA also counts cached readings,
/// including its own fallback values (trap 57).
fn counts(sample: &MetricSample, compat: Compat) -> bool {
    let is_ignored = sample.is_ignored && sample.reading.is_err();
    !is_ignored && (compat.is_strict() || !sample.is_remembered)
}

/// The formula sees nil instead of a number. Without a formula KEDA serves −1.
fn placeholder(
    object: &ScaledObject,
    sample: &MetricSample,
    error: &OperationError,
    compat: Compat,
) -> Result<ServedMetric, OperationError> {
    if !compat.is_strict() && object.modifiers().is_none() {
        return Err(error.clone());
    }
    let value = Quantity::new(-1, Format::DecimalSi);
    Ok(ServedMetric { values: vec![MetricValue { name: sample.name.clone(), value }], replicas: None })
}

/// The fallback replicas. Only `static` does not need the current count.
fn replicas(fallback: &Fallback, current: &Result<i32, OperationError>) -> Option<i32> {
    let own = fallback.replicas;
    if fallback.behavior == "static" {
        return Some(own);
    }
    let current = *current.as_ref().ok()?;
    Some(match fallback.behavior.as_str() {
        "currentReplicas" => current,
        "currentReplicasIfHigher" => current.max(own),
        "currentReplicasIfLower" => current.min(own),
        _ => own,
    })
}

/// The value for which the HPA recommends this number of replicas.
fn value(
    object: &ScaledObject,
    sample: &MetricSample,
    replicas: i32,
    facts: &TargetFacts,
) -> Option<Quantity> {
    let target = match object.modifiers() {
        Some(modifiers) => target_of(&modifiers.target)?,
        None => quantity_of(&sample.target).as_f64(),
    };
    let mut replicas = f64::from(replicas);
    if type_of(object, &sample.target) == "Value" {
        let ready = *facts.ready_pods.as_ref().ok()?;
        if ready == 0 {
            return None;
        }
        replicas /= f64::from(ready);
    }
    // The cast saturates.
    #[allow(clippy::cast_possible_truncation)]
    let milli = (target * 1000.0 * replicas) as i64;
    Some(Quantity::from_milli(milli, Format::DecimalSi))
}

/// The target of a formula: a number above zero.
fn target_of(text: &str) -> Option<f64> {
    crate::float::parse_float(text).ok().filter(|target| target.is_finite() && *target > 0.0)
}

/// `AverageValue` or `Value`: that of the formula if there is one, else that of the trigger.
fn type_of<'a>(object: &'a ScaledObject, target: &'a MetricTarget) -> &'a str {
    object.modifiers().map_or(&target.type_, |modifiers| &modifiers.metric_type)
}

fn quantity_of(target: &MetricTarget) -> Quantity {
    match target.type_.as_str() {
        "Value" => target.value.clone(),
        _ => target.average_value.clone(),
    }
    .unwrap_or_default()
}

fn failures(health: &Map<TriggerHealth>, name: &str) -> i32 {
    health.get(name).and_then(|health| health.number_of_failures).unwrap_or(0)
}

fn of_health(failures: i32, status: &str) -> TriggerHealth {
    TriggerHealth { number_of_failures: Some(failures), status: status.to_owned() }
}
