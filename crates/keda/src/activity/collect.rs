//! The results of all triggers with fallbacks applied.

use std::borrow::Cow;
use std::collections::BTreeMap;

use api::keda::{COMPOSITE_METRIC, ScaledObject};
use api::provider::Compat;
use jiff::Timestamp;

use super::{Formula, MetricSample, MetricValue, Reading, TriggerResult};
use crate::OperationError;
use crate::event::Event;
use crate::fallback::{self, ServedMetric, TargetFacts};
use crate::modifiers::{FormulaInput, ModifiersError};
use crate::status::StatusChanges;

/// What a request of the HPA found out about one metric.
#[derive(Clone, Debug, PartialEq)]
pub struct HpaObservation {
    /// The reading of the source, or why it failed.
    pub reading: Result<Reading, OperationError>,
    /// The values that the HPA got, perhaps of a fallback, or why it got none.
    pub served: Result<ServedMetric, OperationError>,
}

/// Observations, by metric.
pub type HpaObservations = BTreeMap<String, HpaObservation>;

/// The results of all triggers with fallbacks applied.
pub(super) struct CollectedMetrics<'a> {
    /// The object with the new health of its metrics.
    pub(super) object: Cow<'a, ScaledObject>,
    /// One per sample.
    pub(super) metrics: Vec<CollectedMetric<'a>>,
    /// Triggers that failed, and why, in the order of the triggers.
    pub(super) failures: Vec<TriggerFailure>,
    /// Status changes.
    pub(super) changes: StatusChanges,
}

/// A sample and the values served for it.
pub(super) struct CollectedMetric<'a> {
    /// Index of its trigger.
    pub(super) trigger: usize,
    /// The sample.
    pub(super) sample: &'a MetricSample,
    /// The served values.
    pub(super) served: Result<ServedMetric, OperationError>,
}

/// A trigger that failed.
pub(super) struct TriggerFailure {
    /// Its index.
    pub(super) trigger: usize,
    /// Why it failed.
    pub(super) error: OperationError,
    /// What failed.
    pub(super) of: FailureStage,
}

/// What failed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum FailureStage {
    /// Metric specs.
    Metrics,
    /// Reading a metric.
    Value,
    /// The cached reading is an error.
    Memory,
}

impl<'a> CollectedMetrics<'a> {
    /// Collects the results; samples that are not needed are skipped. What the HPA has observed is taken as it is: its request
    /// has applied the fallback and counted failures.
    pub(super) fn of(
        object: &'a ScaledObject,
        results: &'a [TriggerResult],
        facts: &TargetFacts,
        observed: &HpaObservations,
        compat: Compat,
        is_requested: impl Fn(&str) -> bool,
    ) -> Self {
        let mut collected = Self {
            object: Cow::Borrowed(object),
            metrics: Vec::new(),
            failures: Vec::new(),
            changes: StatusChanges::default(),
        };
        let mut health = object.status.health.clone();
        let mut is_touched = false;
        for one in results {
            if let Err(error) = &one.metrics {
                collected.fail(one.trigger, error, FailureStage::Metrics);
            }
            for sample in one.samples().filter(|sample| is_requested(&sample.name)) {
                let observation = observed.get(&sample.name);
                let served = match observation {
                    Some(observation) => observation.served.clone(),
                    None => fallback::serve(object, &mut health, sample, facts, compat),
                };
                is_touched |= observation.is_none();
                if let Err(error) = &served {
                    let of = if sample.is_remembered || observation.is_some() {
                        FailureStage::Memory
                    } else {
                        FailureStage::Value
                    };
                    collected.fail(one.trigger, error, of);
                }
                collected.metrics.push(CollectedMetric { trigger: one.trigger, sample, served });
            }
        }
        if is_touched {
            collected.changes = fallback::changes(object, &health, compat);
        }
        if collected.changes != StatusChanges::default() {
            collected.changes.apply(&mut collected.object.to_mut().status);
        }
        collected
    }

    fn fail(&mut self, trigger: usize, error: &OperationError, of: FailureStage) {
        self.failures.push(TriggerFailure { trigger, error: error.clone(), of });
    }

    /// Events of failures; those of single metrics with the given reason, if any.
    pub(super) fn events(&self, of_metrics: Option<&'static str>) -> Vec<Event> {
        let event = |failure: &TriggerFailure| {
            let reason =
                if failure.of == FailureStage::Metrics { Some("KEDAScalerFailed") } else { of_metrics };
            reason.map(|reason| Event::warning(reason, failure.error.to_string()))
        };
        self.failures.iter().filter_map(event).collect()
    }

    /// The values of all metrics.
    pub(super) fn values(&self) -> impl Iterator<Item = (&CollectedMetric<'a>, &MetricValue)> {
        self.metrics.iter().flat_map(|metric| {
            let values = metric.served.iter().flat_map(|served| &served.values);
            values.map(move |value| (metric, value))
        })
    }

    /// The first fallback value.
    pub(super) fn fallback(&self) -> Option<&MetricValue> {
        let served = self.metrics.iter().filter_map(|metric| metric.served.as_ref().ok());
        served.filter(|served| served.replicas.is_some()).find_map(|served| served.values.first())
    }

    /// The composite value: the first fallback value, else the result of the formula.
    pub(super) fn composite(
        &self,
        formula: Formula<'_>,
        now: Timestamp,
    ) -> Result<MetricValue, ModifiersError> {
        let name = COMPOSITE_METRIC.to_owned();
        if let Some(fallback) = self.fallback() {
            return Ok(MetricValue { name, value: fallback.value.clone() });
        }
        let inputs: Vec<FormulaInput<'_>> =
            self.values().map(|(metric, value)| metric.input(value)).collect();
        let formula = formula.unwrap_or(Err(&ModifiersError::NotCompiled)).map_err(Clone::clone)?;
        let value = formula.evaluate(&self.object, &inputs, now)?;
        Ok(MetricValue { name, value })
    }

    /// Triggers whose scalers must be rebuilt: those that failed; in strict mode all if one failed, as in KEDA.
    pub(super) fn rebuild(&self, results: &[TriggerResult], compat: Compat) -> Vec<usize> {
        if compat.is_strict() && !self.failures.is_empty() {
            return results.iter().map(|results| results.trigger).collect();
        }
        let new = self.failures.iter().filter(|failure| failure.of != FailureStage::Memory);
        let mut failed: Vec<usize> = new.map(|failure| failure.trigger).collect();
        failed.dedup();
        failed
    }
}

impl CollectedMetric<'_> {
    fn input<'b>(&'b self, value: &'b MetricValue) -> FormulaInput<'b> {
        FormulaInput { trigger: self.trigger, metric: &self.sample.name, value: &value.value }
    }
}
