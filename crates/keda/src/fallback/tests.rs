use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::activity::{Reading, TriggerMetric};
use crate::status::merge;

fn object(fallback: &serde_json::Value) -> ScaledObject {
    serde_json::from_value(json!({
        "metadata": {"name": "so", "namespace": "ns"},
        "spec": {"scaleTargetRef": {"name": "web"}, "triggers": [], "fallback": fallback},
    }))
    .unwrap()
}

fn sample(type_: &str, target: &str, reading: Result<&str, &str>) -> MetricSample {
    let quantity = Some(Quantity::parse(target).unwrap());
    let value = |text| MetricValue { name: "s0-q".to_owned(), value: Quantity::parse(text).unwrap() };
    MetricSample {
        name: "s0-q".to_owned(),
        target: MetricTarget {
            type_: type_.to_owned(),
            value: quantity.clone(),
            average_value: quantity,
            ..MetricTarget::default()
        },
        reading: reading.map(|text| Reading { values: vec![value(text)], active: true }).map_err(Into::into),
        is_remembered: false,
        is_ignored: false,
    }
}

fn facts(current: i32, ready_pods: u32) -> TargetFacts {
    TargetFacts { current: Ok(current), ready_pods: Ok(ready_pods) }
}

/// What is served, as text.
fn serve_once(
    object: &mut ScaledObject,
    sample: &MetricSample,
    facts: &TargetFacts,
    compat: Compat,
) -> String {
    let mut health = object.status.health.clone();
    let served = serve(object, &mut health, sample, facts, compat);
    let changes = changes(object, &health, compat);
    merge(&mut object.status, &changes);
    match served {
        Ok(served) => served.values[0].value.canonical(),
        Err(error) => error.to_string(),
    }
}

fn failures_of(object: &ScaledObject) -> Option<i32> {
    object.status.health.get("s0-q").and_then(|health| health.number_of_failures)
}

#[test]
fn failure_after_threshold_falls_back() {
    let mut object = object(&json!({"failureThreshold": 2, "replicas": 6}));
    let down = sample("AverageValue", "10", Err("down"));
    let served: Vec<String> =
        (0..4).map(|_| serve_once(&mut object, &down, &facts(1, 1), Compat::Better)).collect();
    assert_eq!(served, ["down", "down", "60", "60"]);
    assert_eq!(object.status.conditions.state(types::FALLBACK), ConditionStatus::True);
    let up = sample("AverageValue", "10", Ok("7"));
    assert_eq!(serve_once(&mut object, &up, &facts(1, 1), Compat::Better), "7");
    assert_eq!(failures_of(&object), Some(0));
    assert_eq!(object.status.conditions.state(types::FALLBACK), ConditionStatus::False);
}

#[test]
fn behavior_selects_the_replicas_of_a_fallback() {
    for (behavior, current, value) in [
        ("static", 4, "60"),
        ("currentReplicas", 4, "40"),
        ("currentReplicasIfHigher", 4, "60"),
        ("currentReplicasIfHigher", 9, "90"),
        ("currentReplicasIfLower", 4, "40"),
        ("currentReplicasIfLower", 9, "60"),
    ] {
        let mut object = object(&json!({"failureThreshold": 0, "replicas": 6, "behavior": behavior}));
        let down = sample("AverageValue", "10", Err("down"));
        assert_eq!(
            serve_once(&mut object, &down, &facts(current, 0), Compat::Better),
            value,
            "{behavior} {current}"
        );
    }
}

#[test]
fn value_target_is_divided_by_ready_pods() {
    let fallback = json!({"failureThreshold": 0, "replicas": 6, "behavior": "static"});
    let down = sample("Value", "10", Err("down"));
    assert_eq!(serve_once(&mut object(&fallback), &down, &facts(1, 3), Compat::Better), "20");
    for unknown in [facts(1, 0), TargetFacts::default()] {
        let served = serve_once(&mut object(&fallback), &down, &unknown, Compat::Better);
        assert_eq!(served, "error performing fallback");
    }
}

#[test]
fn needs_contain_only_required_facts() {
    let outcome = |behavior, type_| {
        let object = object(&json!({"failureThreshold": 0, "replicas": 6, "behavior": behavior}));
        let metrics = Ok(vec![TriggerMetric::External(sample(type_, "10", Err("down")))]);
        let needs = needs(&object, &[TriggerResult { trigger: 0, metrics }], Compat::Better);
        (needs.current, needs.ready_pods)
    };
    assert_eq!(outcome("static", "AverageValue"), (false, false));
    assert_eq!(outcome("static", "Value"), (false, true));
    assert_eq!(outcome("currentReplicas", "AverageValue"), (true, false));
    assert_eq!(outcome("scalingModifiers", "Value"), (false, false));
}

#[test]
fn cached_reading_is_neither_success_nor_failure() {
    let mut object = object(&json!({"failureThreshold": 1, "replicas": 6, "behavior": "static"}));
    let down = sample("AverageValue", "10", Err("down"));
    let remembered = MetricSample { is_remembered: true, ..down.clone() };
    for (sample, served, failures) in
        [(&down, "down", 1), (&remembered, "down", 1), (&down, "60", 2), (&remembered, "60", 2)]
    {
        assert_eq!(serve_once(&mut object, sample, &facts(1, 1), Compat::Better), served);
        assert_eq!(failures_of(&object), Some(failures));
    }
    assert_eq!(serve_once(&mut object, &remembered, &facts(1, 1), Compat::Strict), "60");
    assert_eq!(failures_of(&object), Some(3), "the original counts it again");
    let ignored = MetricSample { is_ignored: true, ..remembered };
    for compat in [Compat::Better, Compat::Strict] {
        assert_eq!(serve_once(&mut object, &ignored, &facts(1, 1), compat), "60");
        assert_eq!(failures_of(&object), Some(3), "a poll between those of the schedule");
    }
}

#[test]
fn formula_target_may_be_fractional() {
    let mut object = object(&json!({"failureThreshold": 0, "replicas": 4, "behavior": "static"}));
    object.spec.advanced = serde_json::from_value(json!({
        "scalingModifiers": {"formula": "a", "target": "2.5"},
    }))
    .unwrap();
    let down = sample("AverageValue", "10", Err("down"));
    assert_eq!(serve_once(&mut object, &down, &facts(1, 1), Compat::Strict), "down");
    assert_eq!(serve_once(&mut object, &down, &facts(1, 1), Compat::Better), "10");
}

#[test]
fn placeholder_needs_a_formula() {
    let mut object = object(&json!({"failureThreshold": 0, "replicas": 4, "behavior": "scalingModifiers"}));
    let down = sample("AverageValue", "10", Err("down"));
    assert_eq!(serve_once(&mut object, &down, &facts(1, 1), Compat::Strict), "-1");
    assert_eq!(serve_once(&mut object, &down, &facts(1, 1), Compat::Better), "down");
}

proptest! {
    /// What is served makes an HPA want as many replicas as are fallen back to, whatever the target: none fewer, for that
    /// would take replicas away.
    #[test]
    fn fallback_value_yields_its_replicas(
        milli in 1..10_000_000_i64, own in 0..2000_i32, current in 0..2000_i32, ready in 1..50_u32,
        behavior in prop::sample::select(vec!["static", "currentReplicas", "currentReplicasIfHigher", "currentReplicasIfLower"]),
        each in any::<bool>(),
    ) {
        let object = object(&json!({"failureThreshold": 0, "replicas": own, "behavior": behavior}));
        let type_ = if each { "AverageValue" } else { "Value" };
        let sample = sample(type_, &format!("{milli}m"), Err("down"));
        let facts = facts(current, ready);
        let served = serve(&object, &mut Map::new(), &sample, &facts, Compat::Better).unwrap();
        let expected = match behavior {
            "static" => own,
            "currentReplicas" => current,
            "currentReplicasIfHigher" => own.max(current),
            _ => own.min(current),
        };
        prop_assert_eq!(served.replicas, Some(expected));
        // As an HPA computes it, in whole thousandths.
        let value = i128::from(served.values[0].value.milli_value());
        let share = |pods: i128| (value * pods + i128::from(milli) - 1) / i128::from(milli);
        let wanted = if each { share(1) } else { share(ready.into()) };
        let expected = i128::from(expected);
        // A share of a pod may be less than a thousandth of the target, and is cut off.
        let lost = if each { 0 } else { i128::from(ready) / i128::from(milli) };
        prop_assert!((expected - lost..=expected).contains(&wanted), "{wanted} for {expected}");
    }
}
