//! Objects in protobuf, compared with what a real API server says of the same objects in JSON: of each kind one in which
//! everything is empty, one in which everything is filled in, and mixed ones; and what kubectl sends.

#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use localkube::kinds::KINDS;
use localkube::protobuf;
use serde::Deserialize;
use serde_json::Value;

/// One object, both ways.
#[derive(Deserialize)]
struct Recorded {
    label: String,
    body: String,
    json: Value,
}

fn recorded() -> Vec<Recorded> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/vectors/localkube/protobuf.jsonl.zst");
    let text = zstd::decode_all(std::fs::File::open(path).unwrap()).unwrap();
    let lines = text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    lines.map(|line| serde_json::from_slice(line).unwrap()).collect()
}

#[test]
fn protobuf_says_what_json_says() {
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

fn differences(Recorded { label, body, json }: Recorded) -> Vec<String> {
    let body = BASE64_STANDARD.decode(body).unwrap();
    let mut found = Vec::new();
    match protobuf::read(&body, "", "") {
        Ok(ours) => compare(&label, &ours, &sayable(json), &mut found),
        Err(error) => found.push(format!("{label}: {error}")),
    }
    found
}

/// What protobuf cannot say: that there is nothing, and of what kind an object inside another one is.
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
