//! Responses to metric queries (docs/spec/keda.md 4.3).

use std::collections::{BTreeMap, BTreeSet};

use api::keda::ScaledObject;
use api::provider::Compat;
use jiff::Timestamp;

use super::collect::{CollectedMetrics, FailureStage};
use super::{Formula, HpaObservations, MetricValue, TriggerResult};
use crate::OperationError;
use crate::event::Event;
use crate::fallback::TargetFacts;
use crate::modifiers::ModifiersError;
use crate::status::StatusChanges;

/// A query for one metric of a ScaledObject.
#[derive(Clone, Copy, Debug)]
pub struct MetricQuery<'a> {
    /// The time.
    pub now: Timestamp,
    /// The object.
    pub object: &'a ScaledObject,
    /// The metric's name, as requested.
    pub metric: &'a str,
    /// The formula of the object.
    pub formula: Formula<'a>,
}

/// The response, events and status changes.
#[derive(Clone, Debug, PartialEq)]
pub struct MetricResponse {
    /// The values, or why there are none.
    pub values: Result<Vec<MetricValue>, MetricQueryError>,
    /// Events to record.
    pub events: Vec<Event>,
    /// Triggers whose scalers must be rebuilt before the next read.
    pub rebuild: Vec<usize>,
    /// Changes of health and of the condition `Fallback`.
    pub changes: StatusChanges,
}

/// Why a query has no values. The texts are KEDA's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MetricQueryError {
    /// A trigger failed; KEDA does not say why.
    #[error("metric:{0} encountered error")]
    Failed(String),
    /// A trigger failed.
    #[error("metric:{metric} encountered error: {source}")]
    Trigger {
        /// The metric's name.
        metric: String,
        /// Why the trigger failed.
        source: OperationError,
    },
    /// The formula has no value.
    #[error("metric:{metric} encountered error: {source}")]
    Formula {
        /// The metric's name.
        metric: String,
        /// Why the formula has no value.
        source: ModifiersError,
    },
    /// No trigger has this metric.
    #[error("no matching metrics found for {0}")]
    NoMatch(String),
}

/// The metrics that a query needs: the requested one (ignoring case), or all if there is a formula. They are indexed, because an
/// object may have thousands of triggers, and each looks up its metrics.
#[derive(Clone, Debug)]
pub struct NeededMetrics(BTreeSet<String>);

impl NeededMetrics {
    /// The metrics that a query for this one needs.
    pub fn of(object: &ScaledObject, requested: &str) -> Self {
        let has_formula = object.modifiers().is_some_and(|modifiers| !modifiers.target.is_empty());
        let all = object.status.external_metric_names.iter().map(|name| name.to_lowercase());
        Self(if has_formula { all.collect() } else { BTreeSet::from([requested.to_lowercase()]) })
    }

    /// Whether the metric is one of them.
    pub fn contains(&self, name: &str) -> bool {
        self.0.contains(&name.to_lowercase())
    }
}

/// Responds to a query. `results` has all triggers; metrics that are not [`NeededMetrics`] may be missing. A trigger with
/// `useCachedMetrics` has its cached reading, if there is one.
pub fn respond(
    metric_query: &MetricQuery<'_>,
    results: &[TriggerResult],
    facts: &TargetFacts,
    compat: Compat,
) -> MetricResponse {
    let MetricQuery { object, metric, .. } = *metric_query;
    let (none, needed) = (HpaObservations::new(), NeededMetrics::of(object, metric));
    let collected = CollectedMetrics::of(object, results, facts, &none, compat, |name| needed.contains(name));
    MetricResponse {
        values: values(metric_query, &collected, compat),
        events: collected.events(None),
        rebuild: collected.rebuild(results, compat),
        changes: collected.changes,
    }
}

/// The values of all metrics of an object without a formula: what [`respond`] finds for each of them, except in strict mode. One
/// pass finds all of them, because a query for each would look at the samples of all others.
#[derive(Clone, Debug)]
pub struct AllMetricValues {
    /// By name, in lower case.
    by_metric: BTreeMap<String, Result<Vec<MetricValue>, OperationError>>,
    /// Why the first trigger that does not list its metrics does not.
    unlisted: Option<OperationError>,
}

impl AllMetricValues {
    /// The values of these results.
    pub fn of(object: &ScaledObject, results: &[TriggerResult], facts: &TargetFacts) -> Self {
        let none = HpaObservations::new();
        let collected = CollectedMetrics::of(object, results, facts, &none, Compat::Better, |_| true);
        let mut by_metric: BTreeMap<String, Result<Vec<MetricValue>, OperationError>> = BTreeMap::new();
        for metric in &collected.metrics {
            let name = metric.sample.name.to_lowercase();
            let values = by_metric.entry(name).or_insert_with(|| Ok(Vec::new()));
            match &metric.served {
                Ok(served) => {
                    if let Ok(values) = values {
                        values.extend(served.values.iter().cloned());
                    }
                }
                Err(error) if values.is_ok() => *values = Err(error.clone()),
                Err(_) => {}
            }
        }
        let mut failures = collected.failures.iter();
        let unlisted = failures.find(|failure| failure.of == FailureStage::Metrics);
        Self { by_metric, unlisted: unlisted.map(|failure| failure.error.clone()) }
    }

    /// The values of a metric.
    pub fn of_metric(&self, metric: &str) -> Result<Vec<MetricValue>, MetricQueryError> {
        let found = self.by_metric.get(&metric.to_lowercase());
        let metric = metric.to_owned();
        match (found, &self.unlisted) {
            (Some(Ok(values)), _) if !values.is_empty() => Ok(values.clone()),
            (Some(Err(error)), _) | (_, Some(error)) => {
                Err(MetricQueryError::Trigger { metric, source: error.clone() })
            }
            _ => Err(MetricQueryError::NoMatch(metric)),
        }
    }
}

fn values(
    metric_query: &MetricQuery<'_>,
    collected: &CollectedMetrics<'_>,
    compat: Compat,
) -> Result<Vec<MetricValue>, MetricQueryError> {
    let MetricQuery { now, object, metric, formula } = *metric_query;
    let values = || collected.values().map(|(_, value)| value.clone()).collect::<Vec<_>>();
    let is_composite = object.modifiers().is_some();
    let failure = collected.failures.iter().find(|failure| {
        // A trigger whose specs failed does not affect queries for metrics of other triggers.
        compat.is_strict() || is_composite || failure.of != FailureStage::Metrics || values().is_empty()
    });
    if let (Some(failure), None) = (failure, collected.fallback()) {
        let metric = metric.to_owned();
        return Err(match compat {
            Compat::Strict => MetricQueryError::Failed(metric),
            Compat::Better => MetricQueryError::Trigger { metric, source: failure.error.clone() },
        });
    }
    let values = values();
    if values.is_empty() {
        return Err(MetricQueryError::NoMatch(metric.to_owned()));
    }
    if !is_composite {
        return Ok(values);
    }
    match collected.composite(formula, now) {
        Ok(value) => Ok(vec![value]),
        Err(_) if compat.is_strict() => Ok(Vec::new()),
        Err(source) => Err(MetricQueryError::Formula { metric: metric.to_owned(), source }),
    }
}
