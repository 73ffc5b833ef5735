//! Tables of objects in many states, compared with recorded responses of a real API server.

#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::sync::Arc;

use jiff::Timestamp;
use localkube::KubernetesVersion;
use localkube::catalog::Catalog;
use localkube::custom::Definition;
use localkube::release::ApiServerBehavior;
use localkube::store::ResourceId;
use localkube::tables::{self, Include};
use serde::Deserialize;
use serde_json::Value;

/// A recorded response.
#[derive(Deserialize)]
struct RecordedTable {
    label: String,
    group: String,
    version: String,
    resource: String,
    now: Timestamp,
    include: String,
    objects: Vec<Value>,
    /// Columns are recorded only once; an object equal to the given one is recorded as `same`.
    answer: Value,
    definition: Option<Value>,
}

#[test]
fn tables_match_the_real_server() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/vectors/localkube/tables.jsonl.zst");
    let text = zstd::decode_all(std::fs::File::open(path).unwrap()).unwrap();
    let all: Vec<RecordedTable> = text
        .split(|byte| *byte == b'\n')
        .filter(|l| !l.is_empty())
        .map(|l| serde_json::from_slice(l).unwrap())
        .collect();
    assert!(all.len() > 100);
    let wrong: Vec<String> = all.into_iter().filter_map(difference).collect();
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
}

fn difference(recorded: RecordedTable) -> Option<String> {
    let RecordedTable { label, group, version, resource, now, include, objects, mut answer, definition } =
        recorded;
    let definition =
        definition.map(|definition| (ResourceId(100), Arc::new(Definition::read(&definition).unwrap())));
    let catalog = Catalog::new(definition);
    let served = catalog.find(&group, &version, &resource).unwrap();
    let include = Include::parse(Some(&include)).unwrap();
    // Recorded from the default release.
    let behavior = ApiServerBehavior::of(KubernetesVersion::default());
    let mut table =
        tables::table(served, &version, &objects, include, answer["metadata"].clone(), now, behavior);
    for (row, object) in answer["rows"].as_array_mut().into_iter().flatten().zip(&objects) {
        if row["object"] == "same" {
            row["object"] = object.clone();
        }
    }
    if answer.get("columnDefinitions").is_none() {
        table.as_object_mut().unwrap().shift_remove("columnDefinitions");
    }
    let (table, answer) = (plain(table), plain(answer));
    let shown = |table: &Value| {
        table["rows"].as_array().into_iter().flatten().map(|row| row["cells"].to_string()).collect::<Vec<_>>()
    };
    (table != answer).then(|| {
        let (ours, theirs) = (shown(&table), shown(&answer));
        if ours == theirs {
            format!("{resource} {label}:\n  real {answer}\n  ours {table}")
        } else {
            format!(
                "{resource} {label}:\n  real {}\n  ours {}",
                theirs.join("\n       "),
                ours.join("\n       ")
            )
        }
    })
}

/// Go writes a whole number without a fraction, whatever its type.
fn plain(value: Value) -> Value {
    match value {
        Value::Number(number) => {
            match number.as_f64().filter(|float| number.is_f64() && float.fract() == 0.0) {
                Some(float) if float.abs() < 1e15 => (float as i64).into(),
                _ => Value::Number(number),
            }
        }
        Value::Array(items) => items.into_iter().map(plain).collect(),
        Value::Object(map) => map.into_iter().map(|(key, value)| (key, plain(value))).collect(),
        other => other,
    }
}
