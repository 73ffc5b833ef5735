//! What all triggers told, with numbers in place of sources that fail too often.

use std::borrow::Cow;

use api::keda::{COMPOSITE_METRIC, ScaledObject};
use api::provider::Compat;
use jiff::Timestamp;

use super::{Formula, MetricValue, Sample, Told};
use crate::event::Event;
use crate::fallback::{self, Facts, Served};
use crate::modifiers::Input;
use crate::status::Changes;

/// What all triggers told.
pub(super) struct Gathered<'a> {
    /// The object, with the health that its metrics have now.
    pub(super) object: Cow<'a, ScaledObject>,
    /// One per sample.
    pub(super) metrics: Vec<Gathering<'a>>,
    /// Triggers that failed, and why, in the order of the triggers.
    pub(super) failures: Vec<Failure>,
    /// What is written.
    pub(super) changes: Changes,
}

/// A sample and what is served of it.
pub(super) struct Gathering<'a> {
    /// The place of its trigger.
    pub(super) trigger: usize,
    /// The sample.
    pub(super) sample: &'a Sample,
    /// What is served.
    pub(super) served: Result<Served, String>,
}

/// A trigger that failed.
pub(super) struct Failure {
    /// Its place.
    pub(super) trigger: usize,
    /// Why.
    pub(super) error: String,
    /// In what.
    pub(super) of: Of,
}

/// What failed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Of {
    /// Finding out which metrics there are.
    Metrics,
    /// Reading a metric.
    Value,
    /// Reading it failed earlier, and nobody was asked now.
    Memory,
}

impl<'a> Gathered<'a> {
    /// Samples that are not wanted are passed over.
    pub(super) fn of(
        object: &'a ScaledObject,
        told: &'a [Told],
        facts: &Facts,
        compat: Compat,
        is_wanted: impl Fn(&str) -> bool,
    ) -> Self {
        let mut gathered = Self {
            object: Cow::Borrowed(object),
            metrics: Vec::new(),
            failures: Vec::new(),
            changes: Changes::default(),
        };
        let mut health = object.status.health.clone();
        let mut is_touched = false;
        for one in told {
            if let Err(error) = &one.metrics {
                gathered.fail(one.trigger, error, Of::Metrics);
            }
            for sample in one.samples().filter(|sample| is_wanted(&sample.name)) {
                let served = fallback::serve(object, &mut health, sample, facts, compat);
                is_touched = true;
                if let Err(error) = &served {
                    let of = if sample.is_remembered { Of::Memory } else { Of::Value };
                    gathered.fail(one.trigger, error, of);
                }
                gathered.metrics.push(Gathering { trigger: one.trigger, sample, served });
            }
        }
        if is_touched {
            gathered.changes = fallback::changes(object, &health, compat);
        }
        if gathered.changes != Changes::default() {
            gathered.changes.apply(&mut gathered.object.to_mut().status);
        }
        gathered
    }

    fn fail(&mut self, trigger: usize, error: &str, of: Of) {
        self.failures.push(Failure { trigger, error: error.to_owned(), of });
    }

    /// What is told of failures; those of single metrics under the given name, if they are told.
    pub(super) fn events(&self, of_metrics: Option<&'static str>) -> Vec<Event> {
        let event = |failure: &Failure| {
            let reason = if failure.of == Of::Metrics { Some("KEDAScalerFailed") } else { of_metrics };
            reason.map(|reason| Event::warning(reason, failure.error.clone()))
        };
        self.failures.iter().filter_map(event).collect()
    }

    /// The values of all metrics.
    pub(super) fn values(&self) -> impl Iterator<Item = (&Gathering<'a>, &MetricValue)> {
        self.metrics.iter().flat_map(|metric| {
            let values = metric.served.iter().flat_map(|served| &served.values);
            values.map(move |value| (metric, value))
        })
    }

    /// The first number that stands for a source.
    pub(super) fn fallback(&self) -> Option<&MetricValue> {
        let served = self.metrics.iter().filter_map(|metric| metric.served.as_ref().ok());
        served.filter(|served| served.replicas.is_some()).find_map(|served| served.values.first())
    }

    /// One number of all: that of a source that fails too often, else the result of the formula.
    pub(super) fn composite(&self, formula: Formula<'_>, now: Timestamp) -> Result<MetricValue, String> {
        let name = COMPOSITE_METRIC.to_owned();
        if let Some(fallback) = self.fallback() {
            return Ok(MetricValue { name, value: fallback.value.clone() });
        }
        let inputs: Vec<Input<'_>> = self.values().map(|(metric, value)| metric.input(value)).collect();
        let formula = formula.unwrap_or(Err("the formula is not known")).map_err(str::to_owned)?;
        let value = formula.evaluate(&self.object, &inputs, now)?;
        Ok(MetricValue { name, value })
    }

    /// The triggers whose scalers are to be built anew: those that failed; in the original all as soon as one failed.
    pub(super) fn rebuild(&self, told: &[Told], compat: Compat) -> Vec<usize> {
        if compat.is_strict() && !self.failures.is_empty() {
            return told.iter().map(|told| told.trigger).collect();
        }
        let new = self.failures.iter().filter(|failure| failure.of != Of::Memory);
        let mut failed: Vec<usize> = new.map(|failure| failure.trigger).collect();
        failed.dedup();
        failed
    }
}

impl Gathering<'_> {
    fn input<'b>(&'b self, value: &'b MetricValue) -> Input<'b> {
        Input { trigger: self.trigger, metric: &self.sample.name, value: &value.value }
    }
}
