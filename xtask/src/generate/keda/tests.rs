#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use api::keda::{CloudEventSource, ScaledJob, ScaledObject, TriggerAuthentication};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::*;

/// An object that has every field of a schema.
fn full(schema: &Value, path: &str) -> Value {
    if path.ends_with(".conditions[].status") {
        return json!("True");
    }
    if let Some(words) = schema.get("enum").and_then(Value::as_array) {
        return words.last().unwrap().clone();
    }
    match schema.get("type").and_then(Value::as_str) {
        Some("array") => json!([full(&schema["items"], &format!("{path}[]"))]),
        Some("object") => {
            let fields = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
            let mut object: Map<String, Value> =
                fields.map(|(name, field)| (name.clone(), full(field, &format!("{path}.{name}")))).collect();
            if let Some(values) = schema.get("additionalProperties") {
                object.insert("some".to_owned(), full(values, &format!("{path}.some")));
            }
            object.into()
        }
        Some("integer") => json!(7),
        Some("boolean") => json!(true),
        Some("string") if schema.get("format").is_some() => json!("2026-01-02T03:04:05Z"),
        _ => json!("1"),
    }
}

fn schema(definition: &Definition) -> Value {
    definition.object["spec"]["versions"][0]["schema"]["openAPIV3Schema"].clone()
}

fn passes<T: DeserializeOwned + Serialize>(definition: &Definition) {
    let full = full(&schema(definition), "");
    let read: T = serde_json::from_value(full.clone()).unwrap();
    let mut written = json!(read);
    // The order of keys does not matter here.
    written.sort_all_objects();
    let mut wanted = full;
    wanted.sort_all_objects();
    assert_eq!(written.to_string(), wanted.to_string(), "{}", definition.kind);
}

#[test]
fn rust_types_read_and_write_every_field_of_the_schemas() {
    for definition in definitions().unwrap() {
        match definition.kind.as_str() {
            "ScaledObject" => passes::<ScaledObject>(&definition),
            "ScaledJob" => passes::<ScaledJob>(&definition),
            "CloudEventSource" | "ClusterCloudEventSource" => passes::<CloudEventSource>(&definition),
            _ => passes::<TriggerAuthentication>(&definition),
        }
    }
}

#[test]
fn schemas_have_only_the_defaults_of_keda_and_of_list_map_keys() {
    fn defaults(schema: &Value, path: &str, found: &mut Vec<String>) {
        if let Some(default) = schema.get("default") {
            found.push(format!("{path}={default}"));
        }
        for (name, field) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
            defaults(field, &format!("{path}.{name}"), found);
        }
        if let Some(items) = schema.get("items") {
            defaults(items, &format!("{path}[]"), found);
        }
    }
    let mut found = Vec::new();
    for definition in definitions().unwrap() {
        defaults(&schema(&definition), &definition.kind, &mut found);
    }
    let pod = "ScaledJob.spec.jobTargetRef.template.spec";
    assert_eq!(
        found,
        [
            "ClusterTriggerAuthentication.spec.oauth2.type=\"clientCredentials\"".to_owned(),
            format!("{pod}.containers[].ports[].protocol=\"TCP\""),
            format!("{pod}.ephemeralContainers[].ports[].protocol=\"TCP\""),
            format!("{pod}.imagePullSecrets[].name=\"\""),
            format!("{pod}.initContainers[].ports[].protocol=\"TCP\""),
            "ScaledObject.spec.fallback.behavior=\"static\"".to_owned(),
            "TriggerAuthentication.spec.oauth2.type=\"clientCredentials\"".to_owned(),
        ]
    );
}

#[test]
fn definitions_fit_into_the_last_applied_annotation() {
    for definition in definitions().unwrap() {
        let size = definition.object.to_string().len();
        assert!(size < 256 * 1024, "{}: {size}", definition.kind);
    }
}
