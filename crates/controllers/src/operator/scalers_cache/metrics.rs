//! The metrics that a trigger listed last, without the unused parts of `MetricSpec`, to save memory.

use api::autoscaling::v2::{ExternalMetricSource, MetricSpec};

/// The metrics of one trigger.
#[derive(Debug, Default)]
pub(super) struct Metrics(Box<[Metric]>);

#[derive(Debug)]
enum Metric {
    External(Box<(String, ExternalMetricSource)>),
    Other(Box<MetricSpec>),
}

impl Metrics {
    pub(super) fn of(specs: &[MetricSpec]) -> Self {
        let small = |spec: &MetricSpec| match &spec.external {
            Some(source) => Metric::External(Box::new((spec.type_.clone(), source.clone()))),
            None => Metric::Other(Box::new(spec.clone())),
        };
        Self(specs.iter().map(small).collect())
    }

    pub(super) fn specs(&self) -> Vec<MetricSpec> {
        let whole = |metric: &Metric| match metric {
            Metric::External(external) => {
                let (type_, source) = (external.0.clone(), external.1.clone());
                MetricSpec { type_, external: Some(source), ..MetricSpec::default() }
            }
            Metric::Other(spec) => (**spec).clone(),
        };
        self.0.iter().map(whole).collect()
    }
}
