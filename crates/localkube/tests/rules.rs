//! Replays recorded responses of a Kubernetes 1.36 API server for objects of the built-in kinds: defaulting and
//! validation. Each line is `{kind, given, answer | causes}`, with `old` for updates and `sub` for subresources.

#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use api::autoscaling::{FeatureGates, Version, Versioned};
use api::field::FieldError;
use localkube::kinds::{BuiltInKind, KINDS};
use serde_json::{Value, json};

const VECTORS: &[u8] = include_bytes!("../../../tests/vectors/localkube/rules.jsonl.zst");

fn vectors() -> Vec<Value> {
    let text = zstd::decode_all(VECTORS).unwrap();
    text.split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty())
        .map(|line| serde_json::from_slice(line).unwrap())
        .collect()
}

fn row(name: &str) -> &'static BuiltInKind {
    KINDS.iter().find(|row| row.kind == name).unwrap()
}

/// Runs the rules of a kind as the server does.
fn run(row: &BuiltInKind, vector: &Value) -> Result<Value, Vec<Value>> {
    let mut object = vector["given"].clone();
    let version = object["apiVersion"].as_str().unwrap().rsplit('/').next().unwrap().to_owned();
    row.rules.complete(&mut object, &version, FeatureGates::default());
    let faults = match vector.get("old") {
        None => {
            if row.status && row.kind != "Node" {
                object.as_object_mut().unwrap().shift_remove("status");
            }
            object["metadata"]["uid"] = json!(uid(vector));
            object["metadata"]["creationTimestamp"] =
                vector["answer"]["metadata"]["creationTimestamp"].clone();
            (row.rules.create)(&mut object);
            row.rules.faults(&object, FeatureGates::default())
        }
        Some(old) if vector["sub"] == "status" => {
            for (field, value) in old.as_object().unwrap() {
                if field != "status" && field != "metadata" {
                    object[field] = value.clone();
                }
            }
            (row.rules.update)(&mut object, old);
            row.rules.update_faults(&object, old, true, FeatureGates::default())
        }
        Some(old) => {
            if row.status {
                object["status"] = old["status"].clone();
            }
            (row.rules.update)(&mut object, old);
            row.rules.update_faults(&object, old, false, FeatureGates::default())
        }
    };
    let cause = |fault: &FieldError| json!({"reason": fault.kind.reason(), "message": fault.message(), "field": fault.field});
    if version == "v1" && row.kind == "HorizontalPodAutoscaler" {
        let stored = Versioned::decode(&object).unwrap().into_v2().unwrap();
        object = serde_json::to_value(Versioned::from_v2(stored, Version::V1)).unwrap();
    }
    if faults.is_empty() { Ok(object) } else { Err(faults.iter().map(cause).collect()) }
}

/// The uid of the recording; some recordings contain it only in an error.
fn uid(vector: &Value) -> String {
    if let Some(uid) = vector["answer"]["metadata"]["uid"].as_str() {
        return uid.to_owned();
    }
    let expected = vector["causes"].to_string();
    let is_uid = |word: &&str| word.len() == 36 && word.matches('-').count() == 4;
    expected.split(|c: char| !c.is_ascii_alphanumeric() && c != '-').find(is_uid).unwrap_or("uid").to_owned()
}

/// A cause without the Go structures that the real server prints.
fn expected(cause: &Value) -> Value {
    let mut cause = cause.clone();
    let message = cause["message"].as_str().unwrap_or_default();
    let first = message.lines().next().unwrap_or_default();
    let opaque = ["spec.template", "spec.template.spec", "spec.podFailurePolicy"];
    let expected = match first.strip_suffix(": field is immutable") {
        Some(_) if opaque.contains(&cause["field"].as_str().unwrap_or_default()) => "field is immutable",
        _ => first,
    };
    cause["message"] = json!(expected);
    cause
}

/// Removes random names and numbers, and metadata.
fn comparable(mut object: Value, row: &BuiltInKind) -> Value {
    object["metadata"] = json!({"labels": object["metadata"]["labels"]});
    if row.kind == "Service" {
        if object["spec"]["clusterIP"].as_str().is_some_and(|address| address != "None") {
            object["spec"]["clusterIP"] = json!("address");
            object["spec"]["clusterIPs"][0] = json!("address");
        }
        if let Some(port) = object["spec"].get_mut("healthCheckNodePort") {
            *port = json!("number");
        }
        for port in object["spec"]["ports"].as_array_mut().into_iter().flatten() {
            if port.get("nodePort").is_some() {
                port["nodePort"] = json!("number");
            }
        }
    }
    let text = object.to_string();
    match text.find("kube-api-access-") {
        Some(start) => {
            let name = &text[start..start + 21];
            serde_json::from_str(&text.replace(name, "kube-api-access")).unwrap()
        }
        None => object,
    }
}

/// Whether an error is one of the metadata errors that all kinds share.
fn is_meta(field: &str) -> bool {
    matches!(field, "metadata.name" | "metadata.labels" | "metadata.resourceVersion")
}

/// The paths in which two values differ.
fn differences(path: &str, ours: &Value, theirs: &Value, found: &mut Vec<String>) {
    match (ours, theirs) {
        (Value::Object(a), Value::Object(b)) => {
            for key in a.keys().chain(b.keys().filter(|key| !a.contains_key(*key))) {
                let of =
                    |map: &serde_json::Map<String, Value>| map.get(key).cloned().unwrap_or(json!("absent"));
                differences(&format!("{path}.{key}"), &of(a), &of(b), found);
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (i, (a, b)) in a.iter().zip(b).enumerate() {
                differences(&format!("{path}[{i}]"), a, b, found);
            }
        }
        _ if ours != theirs => found.push(format!("{path}: ours {ours}, theirs {theirs}")),
        _ => {}
    }
}

#[test]
fn objects_match_the_recorded_answers() {
    let mut wrong = Vec::new();
    for (number, vector) in vectors().iter().enumerate() {
        let row = row(vector["kind"].as_str().unwrap());
        let mut found = Vec::new();
        let mut theirs = vector["causes"].as_array().cloned().unwrap_or_default();
        // Metadata errors are the same for all kinds and tested elsewhere.
        theirs.retain(|cause| row.kind == "APIService" || !is_meta(cause["field"].as_str().unwrap()));
        match (run(row, vector), vector.get("answer")) {
            (Ok(ours), Some(theirs)) => {
                differences("", &comparable(ours, row), &comparable(theirs.clone(), row), &mut found);
            }
            (Ok(_), None) if theirs.is_empty() => {}
            (ours, _) => {
                let ours = ours.err().unwrap_or_default().iter().map(expected).collect();
                differences("causes", &ours, &theirs.iter().map(expected).collect(), &mut found);
            }
        }
        if !found.is_empty() {
            wrong.push(format!(
                "line {}: {} {}\n  {}",
                number + 1,
                row.kind,
                vector["given"],
                found.join("\n  ")
            ));
        }
    }
    assert!(wrong.is_empty(), "{} differ\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn defaulting_is_idempotent() {
    for vector in vectors() {
        let row = row(vector["kind"].as_str().unwrap());
        let version = row.versions[0];
        let mut once = vector["given"].clone();
        row.rules.complete(&mut once, version, FeatureGates::default());
        let mut twice = once.clone();
        row.rules.complete(&mut twice, version, FeatureGates::default());
        let mut found = Vec::new();
        differences("", &twice, &once, &mut found);
        assert!(found.is_empty(), "{}: {found:?}", row.kind);
    }
}

/// The rules do not panic even if types were not checked.
#[test]
fn rules_accept_any_json() {
    let strangers = [json!(null), json!([]), json!("x"), json!({"spec": [], "metadata": 1, "status": "x"})];
    let some = vectors().into_iter().step_by(7).map(|vector| vector["given"].clone());
    for object in some.chain(strangers) {
        for row in KINDS {
            let mut new = object.clone();
            row.rules.complete(&mut new, row.versions[0], FeatureGates::default());
            (row.rules.create)(&mut new);
            let _ = (row.rules.validate)(&new);
            (row.rules.update)(&mut new, &object);
            let _ = (row.rules.validate_update)(&new, &object);
            let _ = (row.rules.validate_status)(&new, &object);
        }
    }
}
