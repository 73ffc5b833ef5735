//! Recorded KEDA objects are decoded and encoded without loss.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

use std::collections::BTreeMap;
use std::path::Path;

use api::keda::{CloudEventSource, ConditionStatus, ScaledJob, ScaledObject, TriggerAuthentication};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// Removes values that Go omits or writes inconsistently: nulls, empty texts, lists and objects, and `false`.
fn lean(value: &Value) -> Option<Value> {
    match value {
        Value::Null | Value::Bool(false) => None,
        Value::String(text) if text.is_empty() => None,
        Value::Array(items) if items.is_empty() => None,
        // The index of an item matters.
        Value::Array(items) => Some(items.iter().map(|item| lean(item).unwrap_or_default()).collect()),
        Value::Object(fields) => {
            let fields: serde_json::Map<String, Value> =
                fields.iter().filter_map(|(name, field)| Some((name.clone(), lean(field)?))).collect();
            (!fields.is_empty()).then_some(fields.into())
        }
        other => Some(other.clone()),
    }
}

fn passes<T: DeserializeOwned + Serialize>(id: &str, object: &Value) {
    let read: T = serde_json::from_value(object.clone()).unwrap_or_else(|error| panic!("{id}: {error}"));
    assert_eq!(lean(&json!(read)), lean(object), "{id}");
}

/// Counts objects by kind.
fn pass(id: &str, kind: &str, object: &Value, counts: &mut BTreeMap<String, usize>) {
    match kind {
        "ScaledObject" => passes::<ScaledObject>(id, object),
        "ScaledJob" => passes::<ScaledJob>(id, object),
        "TriggerAuthentication" | "ClusterTriggerAuthentication" => {
            passes::<TriggerAuthentication>(id, object);
        }
        _ => return,
    }
    *counts.entry(kind.to_owned()).or_default() += 1;
}

#[test]
fn every_recorded_object_round_trips() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/vectors/keda");
    let mut counts = BTreeMap::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if !path.to_string_lossy().ends_with(".jsonl.zst") {
            continue;
        }
        let text = zstd::decode_all(std::fs::File::open(path).unwrap()).unwrap();
        for line in text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            let record: Value = serde_json::from_slice(line).unwrap();
            let (id, given) = (record["id"].as_str().unwrap(), &record["in"]);
            for (field, kind) in [("scaledObject", "ScaledObject"), ("scaledJob", "ScaledJob")] {
                if let Some(object) = given.get(field) {
                    pass(id, kind, object, &mut counts);
                }
            }
            let lists = ["objects", "cluster"].map(|name| given.get(name).and_then(Value::as_array));
            let others = ["object", "oldObject"].map(|name| given.get(name));
            for object in lists.into_iter().flatten().flatten().chain(others.into_iter().flatten()) {
                pass(id, object["kind"].as_str().unwrap_or_default(), object, &mut counts);
            }
        }
    }
    let least = [
        ("ScaledObject", 5000),
        ("ScaledJob", 500),
        ("TriggerAuthentication", 90),
        ("ClusterTriggerAuthentication", 60),
    ];
    for (kind, least) in least {
        assert!(counts[kind] >= least, "{counts:?}");
    }
}

#[test]
fn null_and_missing_fields_have_default_values() {
    let object: ScaledObject = serde_json::from_value(json!({
        "metadata": {"name": "so", "labels": null, "creationTimestamp": null},
        "spec": {"scaleTargetRef": null, "triggers": null, "minReplicaCount": null,
            "advanced": {"scalingModifiers": null, "horizontalPodAutoscalerConfig": null},
            "fallback": {"failureThreshold": null, "replicas": 1, "behavior": null}},
        "status": {"health": null, "lastActiveTime": null,
            "conditions": [{"type": "Ready", "status": null}, {"type": "Active", "status": "Perhaps"}]},
    }))
    .unwrap();
    assert_eq!((object.spec.triggers.len(), object.hpa_min(), object.hpa_max()), (0, 1, 100));
    assert_eq!((object.target_api_version(), object.target_kind()), ("apps/v1", "Deployment"));
    assert_eq!(object.status.conditions.state("Active"), ConditionStatus::Unknown);
    assert!(object.modifiers().is_none());
    for empty in [json!({}), json!({"spec": null, "status": null, "metadata": null})] {
        serde_json::from_value::<ScaledJob>(empty.clone()).unwrap();
        serde_json::from_value::<TriggerAuthentication>(empty.clone()).unwrap();
        serde_json::from_value::<CloudEventSource>(empty).unwrap();
    }
}

#[test]
fn secrets_are_not_printed() {
    let vault = json!({"spec": {"hashiCorpVault": {"address": "a", "credential": {"token": "s3cret"}}}});
    let read: TriggerAuthentication = serde_json::from_value(vault).unwrap();
    assert!(!format!("{read:?}").contains("s3cret"));
}
