//! Objects of the recordings, which were recorded without definitions.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use testbed::harness::{Failure, LOCAL, on_both};

use crate::definitions::{KINDS, create};
use crate::requests::{define, repository};

/// Words that the error of an invalid object must contain.
fn fault(object: &Value, has_rules: bool) -> Option<&'static str> {
    let spec = &object["spec"];
    let faults = match object["kind"].as_str().unwrap() {
        "ScaledObject" => of_object(spec, has_rules),
        "ScaledJob" => of_job(spec),
        _ => of_authentication(spec),
    };
    faults.into_iter().find_map(|(words, is_so)| is_so.then_some(words))
}

fn number(spec: &Value, path: &str) -> Option<i64> {
    spec.pointer(path).and_then(Value::as_i64)
}

fn is_below(spec: &Value, path: &str, least: i64) -> bool {
    number(spec, path).is_some_and(|number| number < least)
}

/// Whether a text exists and is none of these.
fn is_other(spec: &Value, path: &str, words: &[&str]) -> bool {
    spec.pointer(path).and_then(Value::as_str).is_some_and(|text| !words.contains(&text))
}

fn has_trigger(spec: &Value, is_it: fn(&Value) -> bool) -> bool {
    spec["triggers"].as_array().is_some_and(|all| all.iter().any(is_it))
}

fn of_object(spec: &Value, has_rules: bool) -> Vec<(&'static str, bool)> {
    let (min, max) = (number(spec, "/minReplicaCount"), number(spec, "/maxReplicaCount").unwrap_or(100));
    let behaviors = [
        "static",
        "currentReplicas",
        "currentReplicasIfHigher",
        "currentReplicasIfLower",
        "scalingModifiers",
    ];
    let types = ["AverageValue", "Value"];
    vec![
        ("spec.minReplicaCount", is_below(spec, "/minReplicaCount", 0)),
        ("spec.maxReplicaCount", is_below(spec, "/maxReplicaCount", 1)),
        ("spec.idleReplicaCount", is_below(spec, "/idleReplicaCount", 0)),
        ("spec.fallback.failureThreshold", is_below(spec, "/fallback/failureThreshold", 0)),
        ("spec.fallback.replicas", is_below(spec, "/fallback/replicas", 0)),
        ("spec.fallback.behavior", is_other(spec, "/fallback/behavior", &behaviors)),
        ("spec.triggers", spec["triggers"].as_array().is_none_or(Vec::is_empty)),
        (".type", has_trigger(spec, |trigger| trigger["type"] == "")),
        ("metricType", is_other(spec, "/advanced/scalingModifiers/metricType", &types)),
        ("must be less than or equal to maxReplicaCount", has_rules && min.is_some_and(|min| min > max)),
    ]
}

fn of_job(spec: &Value) -> Vec<(&'static str, bool)> {
    let strategies = ["default", "custom", "accurate", "eager"];
    vec![
        // Unknown fields are reported first.
        ("metricType", has_trigger(spec, |trigger| trigger.get("metricType").is_some())),
        ("spec.triggers", spec["triggers"].as_array().is_none_or(Vec::is_empty)),
        // Objects of the admission recordings have no job.
        ("spec.jobTargetRef", spec.get("jobTargetRef").is_none()),
        (".type", has_trigger(spec, |trigger| trigger["type"] == "")),
        ("spec.scalingStrategy.strategy", is_other(spec, "/scalingStrategy/strategy", &strategies)),
    ]
}

fn of_authentication(spec: &Value) -> Vec<(&'static str, bool)> {
    let lacks = |field: &str| spec.get("oauth2").is_some_and(|oauth2| oauth2.get(field).is_none());
    vec![
        ("spec.oauth2.type", is_other(spec, "/oauth2/type", &["clientCredentials"])),
        ("spec.oauth2.clientId", lacks("clientId")),
        ("spec.oauth2.tokenUrl", lacks("tokenUrl")),
    ]
}

/// Every distinct object of some recordings.
fn recorded() -> Vec<Value> {
    let mut seen = BTreeSet::new();
    let mut all = Vec::new();
    for file in ["webhook", "hpa_for_scaledobject", "scaledjob"] {
        let path = repository().join(format!("tests/vectors/keda/{file}.jsonl.zst"));
        let text = zstd::decode_all(std::fs::File::open(path).unwrap()).unwrap();
        for line in text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            let record: Value = serde_json::from_slice(line).unwrap();
            let given = &record["in"];
            let named = [("scaledObject", "ScaledObject"), ("scaledJob", "ScaledJob")];
            let named = named.into_iter().filter_map(|(field, kind)| Some((kind, given.get(field)?)));
            let lists = ["objects", "cluster"].map(|name| given.get(name).and_then(Value::as_array));
            let single = ["object", "oldObject"].map(|name| given.get(name));
            let listed = lists.into_iter().flatten().flatten().chain(single.into_iter().flatten());
            let listed = listed.map(|object| (object["kind"].as_str().unwrap_or_default(), object));
            for (kind, object) in named.chain(listed).filter(|(kind, _)| KINDS.contains(kind)) {
                let object = json!({"apiVersion": "keda.sh/v1alpha1", "kind": kind, "metadata": {"name": "x"},
                    "spec": object.get("spec").cloned().unwrap_or_default()});
                if seen.insert(object.to_string()) {
                    all.push(object);
                }
            }
        }
    }
    all
}

#[test]
fn recorded_objects_are_accepted_unless_invalid() -> Result<(), Failure> {
    let all = recorded();
    assert!(all.len() > 1000, "{}", all.len());
    on_both(async |ns| {
        define(&ns).await;
        let mut accepted = 0;
        for object in &all {
            let (code, response) = create(&ns, object).await;
            match fault(object, ns.cluster != LOCAL) {
                None => {
                    assert_eq!(code, 201, "{object} on {}: {response}", ns.cluster);
                    accepted += 1;
                }
                Some(words) => {
                    assert!(matches!(code, 400 | 422), "{object} on {}: {code}", ns.cluster);
                    assert!(response.contains(words), "{words} of {object} on {}: {response}", ns.cluster);
                }
            }
        }
        assert!(accepted > 900, "{accepted}");
    })
}
