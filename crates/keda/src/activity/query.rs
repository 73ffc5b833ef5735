//! What is answered when somebody asks for a metric (docs/spec/keda.md 4.3).

use api::keda::ScaledObject;
use api::provider::Compat;
use jiff::Timestamp;

use super::gather::{Gathered, Of};
use super::{Formula, MetricValue, Told};
use crate::event::Event;
use crate::fallback::Facts;
use crate::status::Changes;

/// What is asked.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    /// The time.
    pub now: Timestamp,
    /// Whose metric.
    pub object: &'a ScaledObject,
    /// Its name, as asked for.
    pub metric: &'a str,
    /// The formula of the object.
    pub formula: Formula<'a>,
}

/// What is answered, told and written.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// The values, or why there are none.
    pub values: Result<Vec<MetricValue>, String>,
    /// What is told.
    pub events: Vec<Event>,
    /// Triggers whose scalers are to be built anew before they are asked again.
    pub rebuild: Vec<usize>,
    /// Health, and whether a source is replaced by a number.
    pub changes: Changes,
}

/// Whether a metric has to be known to answer for another: it is the same but for capitals, or there is a formula, which
/// needs them all.
pub fn is_wanted(object: &ScaledObject, asked: &str, name: &str) -> bool {
    let same = |one: &str, other: &str| one.to_lowercase() == other.to_lowercase();
    if object.modifiers().is_some_and(|modifiers| !modifiers.target.is_empty()) {
        return object.status.external_metric_names.iter().any(|own| same(own, name));
    }
    same(asked, name)
}

/// What is answered. `told` names all triggers; metrics for which [`is_wanted`] is false need not be in it. A trigger with
/// `useCachedMetrics` is told by what is remembered of it, if anything is.
pub fn answer(question: &Question<'_>, told: &[Told], facts: &Facts, compat: Compat) -> Answer {
    let Question { object, metric, .. } = *question;
    let gathered = Gathered::of(object, told, facts, compat, |name| is_wanted(object, metric, name));
    Answer {
        values: values(question, &gathered, compat),
        events: gathered.events(None),
        rebuild: gathered.rebuild(told, compat),
        changes: gathered.changes,
    }
}

fn values(
    question: &Question<'_>,
    gathered: &Gathered<'_>,
    compat: Compat,
) -> Result<Vec<MetricValue>, String> {
    let Question { now, object, metric, formula } = *question;
    let values = || gathered.values().map(|(_, value)| value.clone()).collect::<Vec<_>>();
    let is_composite = object.modifiers().is_some();
    let failure = gathered.failures.iter().find(|failure| {
        // A trigger that does not say which metrics it has is of no concern to who asks for that of another.
        compat.is_strict() || is_composite || failure.of != Of::Metrics || values().is_empty()
    });
    if let (Some(failure), None) = (failure, gathered.fallback()) {
        return Err(match compat {
            Compat::Strict => format!("metric:{metric} encountered error"),
            Compat::Better => format!("metric:{metric} encountered error: {}", failure.error),
        });
    }
    let values = values();
    if values.is_empty() {
        return Err(format!("no matching metrics found for {metric}"));
    }
    if !is_composite {
        return Ok(values);
    }
    match gathered.composite(formula, now) {
        Ok(value) => Ok(vec![value]),
        Err(_) if compat.is_strict() => Ok(Vec::new()),
        Err(error) => Err(format!("metric:{metric} encountered error: {error}")),
    }
}
