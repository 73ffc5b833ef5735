//! Observations of the HPA: what its requests found out is used by the next polls, instead of queries of their own (KEDA 2.21).

use api::keda::ScaledObject;
use api::provider::Compat;

use super::collect::{CollectedMetrics, HpaObservation, HpaObservations};
use super::{MetricQuery, NeededMetrics, TriggerResult};
use crate::fallback::TargetFacts;

/// Whether polls of an object may use observations of its HPA: the object never scales to zero or to an idle count, so that its
/// activity decides nothing, and neither cached metrics nor a formula depend on polls.
pub fn uses_hpa_observations(object: &ScaledObject) -> bool {
    let spec = &object.spec;
    spec.min_replica_count.is_some_and(|min| min > 0)
        && spec.idle_replica_count.is_none()
        && !spec.triggers.iter().any(|trigger| trigger.use_cached_metrics)
        && object.modifiers().is_none()
}

/// What a request of the HPA found out; the arguments are those of [`super::respond`].
pub fn observations(
    metric_query: &MetricQuery<'_>,
    results: &[TriggerResult],
    facts: &TargetFacts,
    compat: Compat,
) -> HpaObservations {
    let MetricQuery { object, metric, .. } = *metric_query;
    let (none, needed) = (HpaObservations::new(), NeededMetrics::of(object, metric));
    let collected = CollectedMetrics::of(object, results, facts, &none, compat, |name| needed.contains(name));
    let observed = collected.metrics.into_iter().map(|metric| {
        let observation = HpaObservation { reading: metric.sample.reading.clone(), served: metric.served };
        (metric.sample.name.clone(), observation)
    });
    observed.collect()
}
