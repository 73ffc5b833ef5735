#![allow(clippy::unwrap_used)]

use keda::OperationError;
use serde_json::{Value, json};

use super::*;

fn object(spec: &Value) -> ScaledObject {
    let metadata = json!({"name": "worker", "namespace": "shop"});
    serde_json::from_value(json!({"metadata": metadata, "spec": spec})).unwrap()
}

fn sample(name: &str, reading: Result<activity::Reading, OperationError>) -> TriggerResult {
    let target = MetricTarget {
        type_: "AverageValue".into(),
        average_value: Some(quantity::Quantity::parse("20").unwrap()),
        ..MetricTarget::default()
    };
    let sample = MetricSample { name: name.into(), target, reading, is_remembered: false, is_ignored: false };
    TriggerResult { trigger: 0, metrics: Ok(vec![activity::TriggerMetric::External(sample)]) }
}

fn value(name: &str, text: &str) -> activity::MetricValue {
    activity::MetricValue { name: name.into(), value: quantity::Quantity::parse(text).unwrap() }
}

fn round(object: &ScaledObject, samples: &[TriggerResult]) -> TriggerPoll {
    let facts = TargetFacts { current: Ok(2), ready_pods: Ok(2) };
    let (now, compat) = (Timestamp::UNIX_EPOCH, Compat::Better);
    RoundRecord { now, object, samples, facts: &facts, formula: None, active: true, compat }
        .round(&ObjectEntry::default())
}

#[test]
fn poll_is_recorded_with_limits_and_units() {
    let triggers = json!([{"type": "metrics-api", "name": "queue", "metadata": {
        "url": "http://x", "valueLocation": "queues.messages", "targetValue": "20", "activationTargetValue": "5.5"}}]);
    let object = object(&json!({"scaleTargetRef": {"name": "worker"}, "triggers": triggers}));
    let reading =
        activity::Reading { values: vec![value("s0-q", "12"), value("s0-q", "500m")], active: true };
    let round = round(&object, &[sample("s0-q", Ok(reading))]);
    let [trigger] = round.triggers.as_slice() else { panic!("{round:?}") };
    assert_eq!(
        (trigger.label(), trigger.unit.as_str(), trigger.activation),
        ("queue", "messages", Some(5500.into()))
    );
    let [metric] = trigger.metrics.as_slice() else { panic!("{round:?}") };
    assert_eq!(
        (metric.value, metric.target, metric.each, metric.active),
        (Some(12_500.into()), Some(20_000.into()), true, true)
    );
    assert_eq!(round.cooldown.unwrap().period, SignedDuration::from_secs(300));
}

#[test]
fn failed_sample_is_not_zero_and_may_have_a_fallback() {
    let mut object = object(&json!({"scaleTargetRef": {"name": "worker"}, "minReplicaCount": 2,
        "fallback": {"failureThreshold": 0, "replicas": 6},
        "triggers": [{"type": "redis", "metadata": {"listName": "jobs"}}]}));
    let samples = [sample("s0-redis-jobs", Err("x".repeat(9000).into()))];
    let metric = round(&object, &samples).triggers[0].metrics[0].clone();
    assert_eq!((metric.value, metric.fallback, metric.active), (None, Some(6.into()), true));
    assert_eq!(metric.failure.unwrap().chars().count(), MAX_ERROR_CHARS + 1);
    assert_eq!(round(&object, &samples).cooldown, None, "it never rests");
    object.spec.fallback = None;
    let metric = round(&object, &samples).triggers[0].metrics[0].clone();
    assert_eq!((metric.value, metric.fallback, metric.active), (None, None, false));
}

#[test]
fn fallback_of_a_failed_sample_counts_its_earlier_failures() {
    let mut object = object(&json!({"scaleTargetRef": {"name": "worker"}, "minReplicaCount": 2,
        "fallback": {"failureThreshold": 3, "replicas": 6},
        "triggers": [{"type": "redis", "metadata": {"listName": "jobs"}}]}));
    let samples = [sample("s0-redis-jobs", Err("down".into()))];
    let fallback = |object: &ScaledObject| round(object, &samples).triggers[0].metrics[0].fallback;
    assert_eq!(fallback(&object), None, "it is the first failure");
    let health = serde_json::from_value(json!({"numberOfFailures": 3, "status": "Failing"})).unwrap();
    object.status.health.insert("s0-redis-jobs".to_owned(), health);
    assert_eq!(fallback(&object), Some(6.into()));
}

#[test]
fn push_record_names_its_trigger() {
    let object = object(&json!({"scaleTargetRef": {"name": "worker"}, "triggers": [
        {"type": "cron", "metadata": {}}, {"type": "external-push", "name": "mail", "metadata": {}}]}));
    let round = pushed(&object, "s1-mail");
    assert!(round.pushed);
    assert_eq!(round.label("s1-mail").as_deref(), Some("mail"));
    assert!(pushed(&object, "nonsense").triggers.is_empty());
}

#[test]
fn limits_are_numbers() {
    let with = |name: &str, value: &str| {
        let metadata = json!({"a": "1", name: value});
        activation_threshold(&serde_json::from_value(json!({"type": "x", "metadata": metadata})).unwrap())
    };
    assert_eq!(with("activationThreshold", "3"), Some(3000.into()));
    assert_eq!(with("ACTIVATIONVALUE", "0.5"), Some(500.into()));
    assert_eq!(with("activationThreshold", "NaN"), None);
    assert_eq!(with("activé", "3"), None);
    assert_eq!(with("threshold", "3"), None);
}
