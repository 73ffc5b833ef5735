//! Protobuf bodies compared with the JSON of a real API server for the same objects: for each kind an empty, a full and
//! mixed ones; and the bodies that kubectl sends.

#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use localkube::kinds::KINDS;
use localkube::{Cluster, Options, Running, protobuf};
use serde::Deserialize;
use serde_json::{Value, json};

/// An object in both encodings.
#[derive(Deserialize)]
struct RecordedObject {
    label: String,
    body: String,
    json: Value,
}

fn recorded() -> Vec<RecordedObject> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/vectors/localkube/protobuf.jsonl.zst");
    let text = zstd::decode_all(std::fs::File::open(path).unwrap()).unwrap();
    let lines = text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    lines.map(|line| serde_json::from_slice(line).unwrap()).collect()
}

#[test]
fn protobuf_equals_json() {
    let all = recorded();
    assert!(all.len() > 80);
    for row in KINDS {
        let has = |version: &&str| {
            let group = if row.group.is_empty() { String::new() } else { format!("{}/", row.group) };
            let version = format!("{group}{version}");
            all.iter().any(|one| one.json["kind"] == row.kind && one.json["apiVersion"] == version)
        };
        assert!(row.versions.iter().all(has), "no {}", row.kind);
    }
    let wrong: Vec<String> = all.into_iter().flat_map(differences).collect();
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
}

fn differences(RecordedObject { label, body, json }: RecordedObject) -> Vec<String> {
    let body = BASE64_STANDARD.decode(body).unwrap();
    let mut found = Vec::new();
    match protobuf::read(&body, "", "") {
        Ok(ours) => compare(&label, &ours, &sayable(json), &mut found),
        Err(error) => found.push(format!("{label}: {error}")),
    }
    found
}

/// Removes what protobuf cannot express: empty values, and kinds of nested objects.
fn sayable(value: Value) -> Value {
    match value {
        Value::Object(mut map) => {
            if map.get("kind").is_some_and(|kind| kind == "PersistentVolumeClaim") && map.contains_key("spec")
            {
                map.shift_remove("kind");
                map.shift_remove("apiVersion");
            }
            let is_something =
                |value: &Value| !value.is_null() && value.as_array().is_none_or(|items| !items.is_empty());
            map.into_iter()
                .filter(|(_, value)| is_something(value))
                .map(|(key, value)| (key, sayable(value)))
                .collect()
        }
        Value::Array(items) => items.into_iter().map(sayable).collect(),
        other => other,
    }
}

fn compare(path: &str, ours: &Value, real: &Value, found: &mut Vec<String>) {
    match (ours, real) {
        (Value::Object(a), Value::Object(b)) => {
            let mut keys: Vec<&String> = a.keys().chain(b.keys()).collect();
            keys.sort_unstable();
            keys.dedup();
            for key in keys {
                match (a.get(key), b.get(key)) {
                    (Some(a), Some(b)) => compare(&format!("{path}.{key}"), a, b, found),
                    (a, b) => found.push(format!("{path}.{key}: ours {a:?}, real {b:?}")),
                }
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            a.iter().zip(b).for_each(|(a, b)| compare(&format!("{path}[]"), a, b, found));
        }
        (a, b) if a == b => {}
        (a, b) => found.push(format!("{path}: ours {a}, real {b}")),
    }
}

/// Sends protobuf; returns the response, or the code and message.
async fn send(cluster: &Running, method: &str, path: &str, body: Vec<u8>) -> Result<Value, (u16, String)> {
    let request =
        http::Request::builder().method(method).uri(path).header("content-type", protobuf::MEDIA_TYPE);
    let answer = cluster.client().request::<Value>(request.body(body).unwrap()).await;
    answer.map_err(|error| match error {
        kube::Error::Api(status) => (status.code, status.message),
        other => (0, other.to_string()),
    })
}

#[tokio::test(start_paused = true)]
async fn bodies_of_kubectl_are_decoded() {
    let cluster = Cluster::start(Options { workloads: false, ..Options::default() }).await.unwrap();
    for (command, path) in [
        ("create deployment", "/apis/apps/v1/namespaces/default/deployments"),
        ("create service", "/api/v1/namespaces/default/services"),
        ("create configmap", "/api/v1/namespaces/default/configmaps"),
        ("create secret", "/api/v1/namespaces/default/secrets"),
        ("create job", "/apis/batch/v1/namespaces/default/jobs"),
        ("create namespace", "/api/v1/namespaces"),
        ("create serviceaccount", "/api/v1/namespaces/default/serviceaccounts"),
        ("autoscale", "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers"),
        ("auth whoami", "/apis/authentication.k8s.io/v1/selfsubjectreviews"),
    ] {
        let label = format!("kubectl {command}");
        let sent = recorded().into_iter().find(|one| one.label == label).unwrap();
        let query = "?fieldManager=kubectl&fieldValidation=Strict";
        let body = BASE64_STANDARD.decode(sent.body).unwrap();
        let answer = send(&cluster, "POST", &format!("{path}{query}"), body).await;
        let answer = answer.unwrap_or_else(|error| panic!("{command}: {error:?}"));
        assert_eq!(answer["kind"], sent.json["kind"]);
        // Nothing is added, and an explicit zero is not defaulted.
        assert_eq!(answer["spec"]["replicas"], sent.json["spec"]["replicas"], "{command}");
    }
    let options = b"k8s\0\x0a\x13\x0a\x02v1\x12\x0dDeleteOptions\x12\x05\x12\x03\x0a\x01x".to_vec();
    let (code, why) =
        send(&cluster, "DELETE", "/api/v1/namespaces/default/configmaps/w", options).await.unwrap_err();
    assert!(code == 409 && why.contains("the UID in the precondition (x)"), "{code} {why}");
}

#[tokio::test(start_paused = true)]
async fn custom_resources_have_no_protobuf() {
    let cluster = Cluster::start(Options { workloads: false, ..Options::default() }).await.unwrap();
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "things", "kind": "Thing"},
            "versions": [
                {"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}},
            ],
        },
    });
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let request = http::Request::post(path).header("content-type", "application/json");
    cluster
        .client()
        .request::<Value>(request.body(definition.to_string().into_bytes()).unwrap())
        .await
        .unwrap();
    let body = b"k8s\0\x0a\x17\x0a\x0eexample.com/v1\x12\x05Thing\x12\x05\x0a\x03\x0a\x01a";
    let things = "/apis/example.com/v1/namespaces/default/things";
    let is_known = |answer: &Result<Value, (u16, String)>| !matches!(answer, Err((404, _)));
    let mut answer = send(&cluster, "POST", things, body.to_vec()).await;
    while !is_known(&answer) {
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        answer = send(&cluster, "POST", things, body.to_vec()).await;
    }
    assert_eq!(answer.unwrap_err().0, 415);
}
