//! How the series of an external metric become one value.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

mod common;

use common::{Fixture, external, mk_spec};
use engine::spec::{Metric, MetricTarget, SeriesAggregator, Spec};
use proptest::prelude::*;

/// The whole decision for ten replicas and these series.
fn decision(metric: Metric, series: &[i64]) -> serde_json::Value {
    let spec = Spec { max: 100.into(), ..mk_spec([metric]) };
    serde_json::to_value(Fixture::new(spec, 10).totals(series).run()).unwrap()
}

fn metric_target(per_replica: bool, target: i64) -> MetricTarget {
    if per_replica { MetricTarget::AverageValue(target.into()) } else { MetricTarget::Value(target.into()) }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    /// `sum` is the rule of Kubernetes, and the same as one series with the total; each other rule is the same as one series with
    /// its value.
    #[test]
    fn several_series_are_one_series_with_their_aggregate(
        series in proptest::collection::vec(0..1_000_000_i64, 1..8),
        target in 1..100_000_i64,
        per_replica: bool,
    ) {
        let kubernetes = external(metric_target(per_replica, target));
        let of = |rule| decision(Metric { series: rule, ..kubernetes.clone() }, &series);
        let one = |value: i64| decision(kubernetes.clone(), &[value]);
        let total: i64 = series.iter().sum();
        prop_assert_eq!(of(SeriesAggregator::Sum), decision(kubernetes.clone(), &series));
        prop_assert_eq!(of(SeriesAggregator::Sum), one(total));
        prop_assert_eq!(of(SeriesAggregator::Max), one(*series.iter().max().unwrap()));
        prop_assert_eq!(of(SeriesAggregator::Min), one(*series.iter().min().unwrap()));
        let count = series.len() as i64;
        prop_assert_eq!(of(SeriesAggregator::Average), one((total + count - 1) / count));
    }
}

#[test]
fn extreme_series_do_not_overflow() {
    let metric = |series| Metric { series, ..external(MetricTarget::Value(1000.into())) };
    for rule in
        [SeriesAggregator::Sum, SeriesAggregator::Max, SeriesAggregator::Min, SeriesAggregator::Average]
    {
        for series in [[i64::MAX, i64::MAX], [i64::MIN, i64::MIN], [i64::MIN, i64::MAX]] {
            decision(metric(rule), &series);
        }
    }
}
