//! The CustomResourceDefinition of Autoscaler: it has all fields, the documented defaults, and rejects invalid objects.

use api::autoscaling::Defaults;
use api::plimsoll::Autoscaler;
use http::Method;
use serde_json::{Value, json};
use testbed::harness::{Failure, REAL};

use crate::env::{ControllerEnv, on_both};
use crate::full;
use crate::shared::manifests::{folder, objects, repository};
use crate::shared::send;

const AUTOSCALERS: &str = "/apis/plimsoll.dev/v1alpha1/namespaces/{ns}/autoscalers";

impl ControllerEnv {
    /// Creates an Autoscaler, if the server accepts it without a warning.
    async fn autoscaler(&self, object: &Value) -> (u16, Value) {
        let mut object = object.clone();
        if let Some(metadata) = object["metadata"].as_object_mut() {
            metadata.shift_remove("namespace");
        }
        let uri = format!("{}?fieldValidation=Strict", AUTOSCALERS.replace("{ns}", &self.namespace));
        send(&self.client, Method::POST, &uri, Some(&object)).await
    }
}

#[test]
fn every_field_is_accepted_and_returned() -> Result<(), Failure> {
    on_both(async |env| {
        env.define().await;
        let full = full::autoscaler();
        let (code, made) = env.autoscaler(&json!(full)).await;
        assert_eq!(code, 201, "{made}");
        assert_eq!(made["spec"], json!(full.spec));
        for status in [full.status.clone(), full::blind()] {
            let uri =
                format!("{}/full/status?fieldValidation=Strict", AUTOSCALERS.replace("{ns}", &env.namespace));
            let mut reported = send(&env.client, Method::GET, &uri, None).await.1;
            reported["status"] = json!(status);
            let (code, response) = send(&env.client, Method::PUT, &uri, Some(&reported)).await;
            assert_eq!(code, 200, "{response}");
            assert_eq!(response["status"], json!(status));
        }
    })
}

/// Fields of a schema that none of the values has.
fn unset(schema: &Value, values: &[&Value], path: &str, found: &mut Vec<String>) {
    if let Some(items) = schema.get("items") {
        let items_of = |value: &&Value| value.as_array().cloned().unwrap_or_default();
        let all: Vec<Value> = values.iter().flat_map(items_of).collect();
        unset(items, &all.iter().collect::<Vec<_>>(), &format!("{path}[]"), found);
    }
    for (name, field) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
        let inner: Vec<&Value> = values.iter().filter_map(|value| value.get(name)).collect();
        let path = format!("{path}.{name}");
        if inner.is_empty() {
            found.push(path);
        } else {
            unset(field, &inner, &path, found);
        }
    }
}

#[test]
fn definition_has_only_fields_of_the_rust_type() {
    let definition = &folder("deploy/crds")[0];
    let schema = &definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    let mut found = Vec::new();
    unset(schema, &[&json!(full::autoscaler())], "", &mut found);
    // The server rejects the object, and the reason is only in the message.
    found.retain(|path| path != ".spec.metrics[].metric.target.averageUtilization");
    assert!(found.is_empty(), "{found:?}");
}

#[test]
fn server_defaults_equal_controller_defaults() -> Result<(), Failure> {
    on_both(async |env| {
        env.define().await;
        let least = json!({
            "apiVersion": "plimsoll.dev/v1alpha1", "kind": "Autoscaler", "metadata": {"name": "least"},
            "spec": {"scaleTargetRef": {"kind": "Deployment", "name": "web"}, "maxReplicas": 3, "behavior": {}}
        });
        let mut other = least.clone();
        other["metadata"]["name"] = "other".into();
        other["spec"]["metrics"] = json!([
            {"type": "Metric", "metric": {"metric": {"name": "rps"}, "target": {"averageValue": 5}}}
        ]);
        other["spec"]["behavior"] =
            json!({"scaleDown": {"policies": [{"type": "Pods", "value": 1, "periodSeconds": 9}]}});
        for object in [least, other] {
            let (code, made) = env.autoscaler(&object).await;
            assert_eq!(code, 201, "{made}");
            // The controller sets further defaults, but changes no default that the server has set.
            let mut ours: Autoscaler = serde_json::from_value(object).unwrap();
            ours.set_defaults();
            let mut theirs: Autoscaler = serde_json::from_value(made.clone()).unwrap();
            assert_eq!(theirs.spec.min_replicas, Some(1));
            assert_eq!(theirs.spec.behavior, ours.spec.behavior);
            theirs.set_defaults();
            assert_eq!(theirs.spec, ours.spec);
        }
    })
}

#[test]
fn all_examples_are_accepted() -> Result<(), Failure> {
    let is_ours = |object: &Value| object["kind"] == "Autoscaler";
    let mut all = folder("examples");
    for entry in std::fs::read_dir(repository().join("docs")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|end| end == "md") {
            let text = std::fs::read_to_string(&path).unwrap();
            let blocks = text.split("```yaml\n").skip(1).filter_map(|rest| rest.split("```").next());
            let blocks = blocks.filter(|block| block.contains("kind: Autoscaler\n"));
            all.extend(blocks.flat_map(|block| objects(&path.display().to_string(), block)));
        }
    }
    all.retain(is_ours);
    assert!(all.len() > 4, "{}", all.len());
    on_both(async |env| {
        env.define().await;
        for (number, object) in all.iter().enumerate() {
            let mut object = object.clone();
            object["metadata"]["name"] = format!("example-{number}").into();
            let (code, response) = env.autoscaler(&object).await;
            assert_eq!(code, 201, "{object}: {response}");
        }
    })
}

/// Invalid objects, with a part of the reason. Those with `true` are rejected by CEL rules, which localkube does not evaluate.
fn nonsense() -> Vec<(bool, &'static str, Value)> {
    let cpu = json!({"type": "Utilization", "averageUtilization": 50});
    let resource = |target: &Value| json!({"metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]});
    let failing = |policy: Value| {
        let mut spec = resource(&cpu);
        spec["metrics"][0]["onFailure"] = policy;
        spec
    };
    let anywhere = |from: Value, target: Value| json!({"metrics": [{"type": "Metric", "metric": {"metric": {"name": "m"}, "from": from, "target": target}}]});
    let up = |rules: Value| json!({"behavior": {"scaleUp": rules}});
    vec![
        (false, "spec.maxReplicas", json!({"maxReplicas": 0})),
        (false, "spec.minReplicas", json!({"minReplicas": -1})),
        (false, "unknown field", json!({"maxReplica": 3})),
        (false, "spec.scaleTargetRef.name", json!({"scaleTargetRef": {"kind": "Deployment"}})),
        (false, "spec.replicasAggregator", json!({"replicasAggregator": "median"})),
        (false, "spec.syncPeriodSeconds", json!({"syncPeriodSeconds": 0})),
        (false, "spec.dryRun", json!({"dryRun": "yes"})),
        (false, "spec.metrics[0].type", json!({"metrics": [{"type": "Guess"}]})),
        (false, "averageUtilization", resource(&json!({"type": "Utilization", "averageUtilization": 0}))),
        (false, "averageValue", resource(&json!({"type": "AverageValue", "averageValue": "ten"}))),
        (false, "averageValue", resource(&json!({"type": "AverageValue", "averageValue": "-1"}))),
        (false, "target.type", resource(&json!({"averageUtilization": 50}))),
        (false, "onFailure.policy", failing(json!({"policy": "panic"}))),
        (false, "from.current", anywhere(json!({"current": "moon"}), json!({"value": 1}))),
        (false, "policies", up(json!({"policies": []}))),
        (false, "stabilizationWindowSeconds", up(json!({"stabilizationWindowSeconds": 3601}))),
        (true, "greater than or equal to minReplicas", json!({"minReplicas": 7})),
        (true, "scale to zero", json!({"minReplicas": 0})),
        (true, "resource must be set", json!({"metrics": [{"type": "Resource"}]})),
        (
            true,
            "resource must be set",
            json!({"metrics": [
                {"type": "External", "external": {"metric": {"name": "q"}, "target": {"type": "Value", "value": 1}},
                 "resource": {"name": "cpu", "target": cpu}}
            ]}),
        ),
        (
            true,
            "percentageOf",
            resource(&json!({"type": "AverageValue", "averageValue": 1, "percentageOf": "limits"})),
        ),
        (true, "forSeconds must be set", failing(json!({"policy": "lastGood"}))),
        (true, "replicas must be set", failing(json!({"policy": "hold", "replicas": 3}))),
        (true, "current or object", anywhere(json!({}), json!({"value": 1}))),
        (true, "no total", anywhere(json!({"current": "pod"}), json!({"value": 1}))),
        (
            true,
            "value or averageValue",
            anywhere(json!({"current": "namespace"}), json!({"value": 1, "averageValue": 1})),
        ),
        (
            true,
            "type must be",
            anywhere(json!({"current": "namespace"}), json!({"type": "Utilization", "value": 1})),
        ),
    ]
}

#[test]
fn invalid_objects_are_refused() -> Result<(), Failure> {
    on_both(async |env| {
        env.define().await;
        for (_, reason, change) in nonsense().into_iter().filter(|(cel, ..)| !cel || env.cluster == REAL) {
            let mut spec = json!({"scaleTargetRef": {"kind": "Deployment", "name": "web"}, "maxReplicas": 5});
            spec.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
            let object = json!({
                "apiVersion": "plimsoll.dev/v1alpha1", "kind": "Autoscaler", "metadata": {"name": "bad"}, "spec": spec
            });
            let (code, response) = env.autoscaler(&object).await;
            assert!(matches!(code, 400 | 422), "{change} on {}: {code} {response}", env.cluster);
            assert!(response["message"].as_str().unwrap().contains(reason), "{change}: {response}");
        }
    })
}

#[test]
fn kubectl_get_prints_the_printer_columns() -> Result<(), Failure> {
    on_both(async |env| {
        env.define().await;
        let uri = AUTOSCALERS.replace("{ns}", &env.namespace);
        let request =
            http::Request::get(uri).header("accept", "application/json;as=Table;v=v1;g=meta.k8s.io");
        let table: Value = env.client.request(request.body(Vec::new()).unwrap()).await.unwrap();
        let columns = table["columnDefinitions"].as_array().unwrap().iter();
        let shown: Vec<_> =
            columns.filter(|c| c["priority"] == 0).map(|c| c["name"].as_str().unwrap()).collect();
        assert_eq!(shown, ["Name", "Reference", "MinPods", "MaxPods", "Replicas", "Desired", "Age"]);
    })
}
