use api::autoscaling::v2::MetricTarget;
use api::keda::{ConditionStatus as Truth, ScaledObject, types};
use api::provider::Compat;
use jiff::Timestamp;
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::executor::{ExecutorInput, decide};
use crate::fallback::TargetFacts;
use crate::status::merge;

fn now() -> Timestamp {
    "2026-01-01T12:00:00Z".parse().unwrap()
}

/// A ScaledObject with so many triggers.
fn object(triggers: usize) -> ScaledObject {
    let names: Vec<String> = (0..triggers).map(|index| format!("s{index}-m")).collect();
    let triggers =
        (0..triggers).map(|index| json!({"type": "prometheus", "name": format!("t{index}"), "metadata": {}}));
    serde_json::from_value(json!({
        "metadata": {"name": "so", "namespace": "ns"},
        "spec": {"scaleTargetRef": {"name": "web"}, "triggers": triggers.collect::<Vec<_>>()},
        "status": {"externalMetricNames": names},
    }))
    .unwrap()
}

fn sample(name: &str, reading: Result<(&str, bool), &str>) -> MetricSample {
    let value = |text| MetricValue { name: name.to_owned(), value: Quantity::parse(text).unwrap() };
    MetricSample {
        name: name.to_owned(),
        target: MetricTarget {
            type_: "AverageValue".to_owned(),
            average_value: Some(Quantity::parse("10").unwrap()),
            ..MetricTarget::default()
        },
        reading: reading
            .map(|(text, active)| Reading { values: vec![value(text)], active })
            .map_err(Into::into),
        is_remembered: false,
        is_ignored: false,
    }
}

/// One trigger with one metric each.
fn results(readings: &[Result<(&str, bool), &str>]) -> Vec<TriggerResult> {
    let one = |(trigger, reading): (usize, &Result<(&str, bool), &str>)| {
        let name = format!("s{trigger}-m");
        TriggerResult { trigger, metrics: Ok(vec![TriggerMetric::External(sample(&name, *reading))]) }
    };
    readings.iter().enumerate().map(one).collect()
}

#[test]
fn formula_needs_all_metrics_of_its_triggers() {
    let mut object = object(2);
    let one = NeededMetrics::of(&object, "S1-m");
    assert_eq!(["s0-m", "s1-M", "s2-m"].map(|name| one.contains(name)), [false, true, false]);
    object.spec.advanced =
        serde_json::from_value(json!({"scalingModifiers": {"formula": "t0", "target": "1"}})).unwrap();
    let all = NeededMetrics::of(&object, "composite-metric");
    assert_eq!(["s0-m", "s1-M", "s2-m"].map(|name| all.contains(name)), [true, true, false]);
}

fn facts() -> TargetFacts {
    TargetFacts { current: Ok(3), ready_pods: Ok(3) }
}

fn state_of(object: &ScaledObject, results: &[TriggerResult], compat: Compat) -> ActivityState {
    activity_state(&PollRound { now: now(), object, formula: None }, results, &facts(), compat)
}

fn metric_values(
    object: &ScaledObject,
    metric: &str,
    results: &[TriggerResult],
    compat: Compat,
) -> Result<Vec<String>, String> {
    let metric_query = MetricQuery { now: now(), object, metric, formula: None };
    let values =
        respond(&metric_query, results, &facts(), compat).values.map_err(|error| error.to_string())?;
    Ok(values.iter().map(|value| value.value.canonical()).collect())
}

#[test]
fn values_of_all_metrics_are_those_of_single_queries() {
    let mut object = object(4);
    let mut results = results(&[Ok(("5", true)), Err("down"), Ok(("0", false)), Ok(("1", true))]);
    results[3].metrics = Err("unknown metric type".into());
    for fallback in [json!(null), json!({"failureThreshold": 0, "replicas": 4})] {
        object.spec.fallback = serde_json::from_value(fallback).unwrap();
        let all = AllMetricValues::of(&object, &results, &facts());
        for metric in ["s0-m", "S1-m", "s2-m", "s3-m", "other"] {
            let found: Result<Vec<String>, String> = match all.of_metric(metric) {
                Ok(values) => Ok(values.iter().map(|value| value.value.canonical()).collect()),
                Err(error) => Err(error.to_string()),
            };
            assert_eq!(found, metric_values(&object, metric, &results, Compat::Better), "{metric}");
        }
    }
}

#[test]
fn objects_that_never_scale_to_zero_use_observations() {
    let uses = |change: fn(&mut ScaledObject)| {
        let mut object = object(1);
        object.spec.min_replica_count = Some(1);
        change(&mut object);
        uses_hpa_observations(&object)
    };
    assert!(uses(|_| {}));
    assert!(!uses(|object| object.spec.min_replica_count = None));
    assert!(!uses(|object| object.spec.min_replica_count = Some(0)));
    assert!(!uses(|object| object.spec.idle_replica_count = Some(1)));
    assert!(!uses(|object| object.spec.triggers[0].use_cached_metrics = true));
    assert!(!uses(|object| {
        let advanced = json!({"scalingModifiers": {"formula": "t0", "target": "1"}});
        object.spec.advanced = serde_json::from_value(advanced).unwrap();
    }));
}

/// The HPA requested the metric while the source failed, and got the fallback; the poll does not count the failure once more.
#[test]
fn observations_are_taken_as_they_are() {
    let mut object = object(2);
    object.spec.fallback = serde_json::from_value(json!({"failureThreshold": 0, "replicas": 4})).unwrap();
    let failing = results(&[Err("down"), Ok(("5", true))]);
    let metric_query = MetricQuery { now: now(), object: &object, metric: "s0-m", formula: None };
    let observed = observations(&metric_query, &failing, &facts(), Compat::Better);
    assert_eq!(observed.keys().collect::<Vec<_>>(), ["s0-m"], "only the requested metric");
    assert!(observed["s0-m"].reading.is_err());
    assert_eq!(observed["s0-m"].served.as_ref().unwrap().replicas, Some(4));

    let round = PollRound { now: now(), object: &object, formula: None };
    let polled = activity_state(&round, &failing, &facts(), Compat::Better);
    assert_eq!(polled.changes.health["s0-m"].number_of_failures, Some(1));
    let reused = activity_state_with(&round, &failing, &facts(), &observed, Compat::Better);
    assert!(reused.is_falling_back && reused.active && reused.error.is_none());
    assert!(!reused.changes.health.contains_key("s0-m"), "its health was counted by the request");
    assert!(reused.changes.health.contains_key("s1-m"));

    let mut without = object.clone();
    without.spec.fallback = None;
    let metric_query = MetricQuery { object: &without, ..metric_query };
    let observed = observations(&metric_query, &failing, &facts(), Compat::Better);
    let round = PollRound { object: &without, ..round };
    let reused = activity_state_with(&round, &failing, &facts(), &observed, Compat::Better);
    assert_eq!(reasons(&reused), ["KEDAScalerFailed"]);
    assert!(reused.rebuild.is_empty(), "the request has rebuilt the scaler");
}

fn reasons(state: &ActivityState) -> Vec<&str> {
    state.events.iter().map(|event| event.reason).collect()
}

#[test]
fn one_active_trigger_is_enough() {
    let state = state_of(&object(2), &results(&[Ok(("0", false)), Ok(("5", true))]), Compat::Better);
    assert!(state.active && state.error.is_none());
    assert_eq!(state.active_triggers, ["s1-m"]);
}

#[test]
fn failing_trigger_is_named_and_only_it_is_rebuilt() {
    let results = results(&[Ok(("5", true)), Err("no route")]);
    let state = state_of(&object(2), &results, Compat::Better);
    assert!(state.active);
    assert_eq!(state.error.as_deref(), Some("trigger \"t1\" (prometheus): no route"));
    assert_eq!(reasons(&state), ["KEDAScalerFailed"]);
    assert_eq!(state.rebuild, [1]);
    assert_eq!(state_of(&object(2), &results, Compat::Strict).rebuild, [0, 1]);
}

#[test]
fn one_active_metric_makes_its_trigger_active() {
    let metrics = vec![
        TriggerMetric::External(sample("s0-m", Ok(("5", true)))),
        TriggerMetric::External(sample("s0-n", Ok(("0", false)))),
    ];
    let results = [TriggerResult { trigger: 0, metrics: Ok(metrics) }];
    assert!(!state_of(&object(1), &results, Compat::Strict).active, "the last one wins");
    let state = state_of(&object(1), &results, Compat::Better);
    assert_eq!((state.active, state.active_metrics), (true, vec!["s0-m".to_owned()]));
}

#[test]
fn objects_with_only_resource_triggers_are_active() {
    let mut object = object(1);
    object.spec.triggers[0].type_ = "cpu".to_owned();
    let results = [TriggerResult { trigger: 0, metrics: Ok(vec![TriggerMetric::Resource]) }];
    assert!(state_of(&object, &results, Compat::Better).active);
    let failed = [TriggerResult { trigger: 0, metrics: Err("unknown metric type".into()) }];
    let state = state_of(&object, &failed, Compat::Better);
    assert!(!state.active && state.error.is_some());
}

#[test]
fn fallback_event_is_recorded_once() {
    let mut object = object(1);
    object.spec.fallback =
        serde_json::from_value(json!({"failureThreshold": 0, "replicas": 5, "behavior": "static"})).unwrap();
    let down = results(&[Err("down")]);
    let first = state_of(&object, &down, Compat::Better);
    assert!(first.active && first.error.is_none() && first.is_falling_back);
    assert_eq!(reasons(&first), ["ScaledObjectFallbackActivated"]);
    merge(&mut object.status, &first.changes);
    assert_eq!(object.status.conditions.state(types::FALLBACK), Truth::True);
    let second = state_of(&object, &down, Compat::Better);
    assert!(reasons(&second).is_empty());
    merge(&mut object.status, &second.changes);
    let third = state_of(&object, &results(&[Ok(("0", false))]), Compat::Better);
    assert_eq!(reasons(&third), ["ScaledObjectFallbackDeactivated"]);
}

#[test]
fn fallback_to_zero_replicas_is_not_active() {
    let mut object = object(1);
    object.spec.fallback =
        serde_json::from_value(json!({"failureThreshold": 0, "replicas": 0, "behavior": "static"})).unwrap();
    let state = state_of(&object, &results(&[Err("down")]), Compat::Better);
    assert!(state.is_falling_back && !state.active && state.error.is_none());
}

#[test]
fn cached_readings_are_those_of_the_source() {
    let mut object = object(2);
    object.spec.triggers[0].use_cached_metrics = true;
    object.spec.fallback =
        serde_json::from_value(json!({"failureThreshold": 0, "replicas": 5, "behavior": "static"})).unwrap();
    let state = state_of(&object, &results(&[Err("down"), Ok(("5", true))]), Compat::Better);
    assert_eq!(state.records, [("s0-m".to_owned(), Err("down".into()))].into());
}

#[test]
fn metric_names_match_case_insensitively() {
    let results = results(&[Ok(("7", true)), Ok(("9", true))]);
    assert_eq!(metric_values(&object(2), "S1-M", &results, Compat::Better), Ok(vec!["9".to_owned()]));
    let none = metric_values(&object(2), "s2-m", &results, Compat::Better);
    assert_eq!(none, Err("no matching metrics found for s2-m".to_owned()));
}

#[test]
fn trigger_without_specs_does_not_hide_other_triggers() {
    let mut results = results(&[Ok(("7", true)), Ok(("9", true))]);
    results[0].metrics = Err("got empty metric spec".into());
    let strict = metric_values(&object(2), "s1-m", &results, Compat::Strict);
    assert_eq!(strict, Err("metric:s1-m encountered error".to_owned()));
    assert_eq!(metric_values(&object(2), "s1-m", &results, Compat::Better), Ok(vec!["9".to_owned()]));
    let lost = metric_values(&object(2), "s0-m", &results, Compat::Better);
    assert_eq!(lost, Err("metric:s0-m encountered error: got empty metric spec".to_owned()));
}

#[test]
fn failing_formula_is_an_error_and_not_inactive() {
    let mut object = object(1);
    object.spec.advanced =
        serde_json::from_value(json!({"scalingModifiers": {"formula": "t0 + 1", "target": "2"}})).unwrap();
    let results = results(&[Ok(("7", true))]);
    let round = PollRound { now: now(), object: &object, formula: Some(Err(&ModifiersError::NotCompiled)) };
    let strict = activity_state(&round, &results, &facts(), Compat::Strict);
    assert!(!strict.active && strict.error.is_none());
    let better = activity_state(&round, &results, &facts(), Compat::Better);
    assert!(!better.active);
    assert_eq!(better.error.as_deref(), Some("the formula is not known"));
    assert_eq!(better.active_metrics, ["s0-m"]);
}

#[test]
fn formula_is_compared_with_its_activation_target() {
    let mut object = object(2);
    object.spec.advanced = serde_json::from_value(json!({
        "scalingModifiers": {"formula": "t0 + t1", "target": "2", "activationTarget": "11"},
    }))
    .unwrap();
    let compiled = CompiledFormula::new(&object, Compat::Better).unwrap();
    let is_active = |one, other| {
        let round = PollRound { now: now(), object: &object, formula: Some(Ok(&compiled)) };
        let state = activity_state(
            &round,
            &results(&[Ok((one, true)), Ok((other, false))]),
            &facts(),
            Compat::Better,
        );
        (state.active, state.active_triggers.join(";"))
    };
    assert_eq!(is_active("5", "6"), (false, String::new()));
    assert_eq!(is_active("5", "7"), (true, "composite-metric".to_owned()));
    let metric_query =
        MetricQuery { now: now(), object: &object, metric: "composite-metric", formula: Some(Ok(&compiled)) };
    let results = results(&[Ok(("5", true)), Ok(("7", false))]);
    let values = respond(&metric_query, &results, &facts(), Compat::Better).values.unwrap();
    assert_eq!((values[0].name.as_str(), values[0].value.canonical().as_str()), ("composite-metric", "12"));
}

fn any_reading() -> impl Strategy<Value = Result<(&'static str, bool), &'static str>> {
    prop_oneof![
        Just(Err("down")),
        (prop::sample::select(vec!["0", "7", "2500m"]), any::<bool>()).prop_map(Ok),
    ]
}

fn any_fallback() -> impl Strategy<Value = Option<api::keda::Fallback>> {
    let behavior = prop::sample::select(vec![
        "",
        "static",
        "currentReplicas",
        "currentReplicasIfHigher",
        "currentReplicasIfLower",
        "scalingModifiers",
    ]);
    prop::option::of((0..3, 0..4, behavior).prop_map(|(failure_threshold, replicas, behavior)| {
        api::keda::Fallback { failure_threshold, replicas, behavior: behavior.to_owned() }
    }))
}

proptest! {
    /// Round after round of failures and answers: replicas are taken away only if all sources report inactivity, or are replaced by
    /// a fallback to none.
    #[test]
    fn failed_reads_do_not_scale_down(
        rounds in prop::collection::vec(prop::collection::vec(any_reading(), 2), 1..8),
        fallback in any_fallback(), current in 1..5,
    ) {
        let mut object = object(2);
        object.spec.fallback = fallback;
        for readings in &rounds {
            let state = state_of(&object, &results(readings), Compat::Better);
            let input = ExecutorInput::of_round(now(), &object, &state).with(Ok(current), None);
            let outcome = decide(&input, Compat::Better);
            let is_down = outcome.scale.is_some_and(|change| change.to < current);
            let any_failed = readings.iter().any(Result::is_err);
            let falls_to_none = state.is_falling_back
                && object.spec.fallback.as_ref().is_some_and(|fallback| fallback.replicas == 0);
            prop_assert!(!(is_down && any_failed) || falls_to_none);
            let changes = state.changes.then(outcome.finish(None).changes);
            merge(&mut object.status, &changes);
            prop_assert_eq!(merge(&mut object.status, &changes), None);
        }
    }

    /// Whether an object is active, by what, and what its metrics are, does not depend on the order of its triggers.
    #[test]
    fn result_does_not_depend_on_trigger_order(
        readings in prop::collection::vec(any_reading(), 1..6), seed in any::<u64>(),
        formula in any::<bool>(), compat in any::<bool>(),
    ) {
        let compat = if compat { Compat::Strict } else { Compat::Better };
        let mut object = object(readings.len());
        if formula {
            let sum: Vec<String> = (0..readings.len()).map(|index| format!("t{index}")).collect();
            object.spec.advanced = Some(Box::new(api::keda::AdvancedConfig {
                scaling_modifiers: api::keda::ScalingModifiers {
                    formula: sum.join(" + "),
                    target: "2".to_owned(),
                    ..Default::default()
                },
                ..Default::default()
            }));
        }
        let results = results(&readings);
        let mut places: Vec<usize> = (0..readings.len()).collect();
        places.sort_by_key(|place| (seed >> (place * 8)) & 0xff);
        let mut shuffled = object.clone();
        shuffled.spec.triggers = places.iter().map(|place| object.spec.triggers[*place].clone()).collect();
        let moved: Vec<TriggerResult> = places
            .iter()
            .enumerate()
            .map(|(trigger, place)| TriggerResult { trigger, metrics: results[*place].metrics.clone() })
            .collect();
        let outcome = |object: &ScaledObject, results: &[TriggerResult]| {
            let compiled = object.modifiers().map(|_| CompiledFormula::new(object, compat));
            let formula = compiled.as_ref().map(Result::as_ref);
            let state = activity_state(&PollRound { now: now(), object, formula }, results, &facts(), compat);
            let mut metrics = state.active_metrics.clone();
            metrics.sort();
            let metric_query = MetricQuery { now: now(), object, metric: "s0-m", formula };
            let answer = respond(&metric_query, results, &facts(), compat).values;
            let answer = answer.map(|values| values.iter().map(|own| own.value.canonical()).collect::<Vec<_>>());
            (state.active, state.error.is_some(), metrics, answer.ok())
        };
        prop_assert_eq!(outcome(&object, &results), outcome(&shuffled, &moved));
    }

    /// A failed source has no value without a fallback.
    #[test]
    fn failed_source_has_no_value_without_fallback(reading in any_reading(), compat in any::<bool>()) {
        let compat = if compat { Compat::Strict } else { Compat::Better };
        let answer = metric_values(&object(1), "s0-m", &results(&[reading]), compat);
        prop_assert_eq!(answer.is_ok(), reading.is_ok());
    }
}
