#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use serde_json::json;

use super::*;
use crate::conformance::read;

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Ids of the recordings by file.
fn recorded() -> BTreeMap<&'static str, BTreeSet<String>> {
    let ids = |file: &str| {
        let places =
            ["keda", "metrics"].map(|folder| root().join(format!("tests/vectors/{folder}/{file}.jsonl.zst")));
        let path = places.iter().find(|path| path.exists()).unwrap();
        let records = read::records(path).unwrap();
        records.filter_map(|record| Some(record.unwrap()["id"].as_str()?.to_owned())).collect()
    };
    let files: BTreeSet<&str> = TABLE.iter().map(|improvement| improvement.file).collect();
    files.into_iter().map(|file| (file, ids(file))).collect()
}

fn difference(expected: &serde_json::Value, got: &serde_json::Value) -> Difference {
    Difference::json("body", expected, got)
}

fn outcome(id: &str, better: Vec<Difference>) -> Outcome {
    Outcome { id: id.to_owned(), free: false, strict: Vec::new(), better }
}

fn any() -> Vec<Difference> {
    vec![Difference::json("status", &json!(500), &json!(400))]
}

#[test]
fn every_record_is_listed_once_and_exists() {
    let recorded = recorded();
    let mut seen = BTreeSet::new();
    for improvement in TABLE {
        for id in improvement.ids() {
            assert!(recorded[improvement.file].contains(id), "{} has no {id}", improvement.file);
            assert!(seen.insert((improvement.file, id)), "{}: {id} is listed twice", improvement.file);
        }
    }
}

/// The table in docs/compatibility.md names files and counts, and ids one by one or as `a-1`–`a-3`.
#[test]
fn documentation_lists_all_improvements() {
    let text = std::fs::read_to_string(root().join("docs/compatibility.md")).unwrap();
    let rows: Vec<&str> = text.lines().filter(|line| line.starts_with('|')).collect();
    for improvement in TABLE {
        let (count, file) = (improvement.ids().count(), improvement.file);
        let shown = match improvement.shown {
            Shown::In(_) => format!("| `{file}` {count}: "),
            Shown::Wherever(_) | Shown::WhereRecorded(_) => format!("| `{file}` by rule: "),
        };
        let reported = rows.iter().any(|row| row.contains(&shown) && row.contains(improvement.reason));
        assert!(reported, "no row with {shown:?} and {:?}", improvement.reason);
    }
}

#[test]
fn every_id_in_the_documentation_is_listed() {
    let text = std::fs::read_to_string(root().join("docs/compatibility.md")).unwrap();
    for row in text.lines().filter(|line| line.starts_with('|')) {
        let Some(improvement) = TABLE.iter().find(|improvement| {
            row.contains(&format!("| `{}` ", improvement.file)) && row.contains(improvement.reason)
        }) else {
            continue;
        };
        let words = row.rsplit("| `").next().unwrap().split('`').skip(2).step_by(2);
        for id in words.filter(|word| word.rsplit('-').next().unwrap().parse::<u32>().is_ok()) {
            assert!(improvement.ids().any(|listed| listed == id), "{id} is not listed: {row}");
        }
    }
}

#[test]
fn listed_records_must_differ_and_others_must_not() {
    let listed = judge("custom_api", &mut outcome("h-690", any()));
    assert_eq!((listed.improvements.len(), listed.unlisted.len(), listed.vain.len()), (1, 0, 0));
    let vain = judge("custom_api", &mut outcome("h-690", Vec::new()));
    assert_eq!((vain.improvements.len(), vain.unlisted.len(), vain.vain.len()), (0, 0, 1));
    let unlisted = judge("custom_api", &mut outcome("unseen", any()));
    assert_eq!((unlisted.improvements.len(), unlisted.unlisted.len(), unlisted.vain.len()), (0, 1, 0));
    let free = judge("custom_api", &mut Outcome { free: true, ..outcome("unseen", any()) });
    assert_eq!((free.improvements.len(), free.unlisted.len(), free.vain.len()), (0, 0, 0));
}

#[test]
fn sample_times_explain_only_times() {
    let list = |kind: &str, time: &str, value: &str| json!({"kind": kind, "items": [{"timestamp": time, "value": value}]});
    let recorded = list("MetricValueList", "2026-01-01T00:00:00Z", "1");
    let explained = |got| rules::only_times(&difference(&recorded, &got));
    assert!(explained(list("MetricValueList", "2025-12-31T23:59:59Z", "1")));
    assert!(!explained(list("MetricValueList", "2025-12-31T23:59:59Z", "2")));
    assert!(!explained(list("ExternalMetricValueList", "2025-12-31T23:59:59Z", "1")));
    assert!(!explained(json!({"kind": "MetricValueList", "items": []})));
    assert!(!explained(json!({"kind": "MetricValueList", "items": [{"timestamp": null, "value": "1"}]})));
}

#[test]
fn causes_explain_only_causes() {
    let error = |message: &str, code: u16| json!({"code": code, "message": message, "details": {"causes": [{"message": message}]}});
    let recorded = error("Internal error occurred: unable to fetch metrics", 500);
    let explained = |got| rules::only_causes(&difference(&recorded, &got));
    assert!(explained(error("Internal error occurred: unable to fetch metrics: it is down", 500)));
    assert!(!explained(error("Internal error occurred: unable to fetch metrics: it is down", 503)));
    assert!(!explained(error("Internal error occurred: unable to fetch metrics, it is down", 500)));
    assert!(!explained(error("it is down", 500)));
}
