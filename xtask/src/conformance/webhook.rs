//! Admission of KEDA's objects (`webhook.jsonl`).

use anyhow::Context as _;
use api::provider::Compat;
use engine::report::EventKind;
use keda::admission::{
    AdmissionInput, AdmissionKind, AdmissionRules, ClusterSnapshot, Denial, Operation, Verdict, review,
};
use keda::event::Event;
use serde_json::{Map, Value, json};

use super::{Difference, Outcome};

/// What the recorded cluster's API had.
const KINDS: [(&str, &str, &str); 5] = [
    ("apps", "v1", "Deployment"),
    ("apps", "v1", "StatefulSet"),
    ("apps", "v1", "ReplicaSet"),
    ("", "v1", "ReplicationController"),
    ("argoproj.io", "v1alpha1", "Rollout"),
];

/// Texts that precede messages of libraries.
const BEFORE_LIBRARIES: [&str; 2] =
    ["error validating formula in ScalingModifiers\n", "(string->float) to valid target: "];

pub(crate) fn replay(records: &[Value]) -> Vec<Outcome> {
    records.iter().map(|record| Outcome::of(record, |compat| check(record, compat))).collect()
}

fn check(record: &Value, compat: Compat) -> anyhow::Result<Vec<Difference>> {
    let (given, expected) = (&record["in"], &record["out"]);
    let text = |name: &str| given.get(name).and_then(Value::as_str).unwrap_or_default();
    let mut around = ClusterSnapshot::default();
    for object in given.get("cluster").and_then(Value::as_array).into_iter().flatten() {
        around.add(object.clone())?;
    }
    for (group, version, kind) in KINDS {
        around.add_kind(group, version, kind);
    }
    let request = AdmissionInput {
        operation: Operation::parse(text("op")).context("unknown operation")?,
        kind: AdmissionKind::parse(text("kind")).context("unknown kind")?,
        dry_run: given.get("dryRun").and_then(Value::as_bool).unwrap_or_default(),
        object: given.get("object").unwrap_or(&Value::Null),
        old: given.get("oldObject"),
    };
    let got = match review(&request, &around, &AdmissionRules::of(compat)) {
        Verdict::Allowed(allowed) => {
            let events: Vec<Value> = allowed.events.iter().map(event).collect();
            let mut got = Map::new();
            got.insert("allowed".to_owned(), true.into());
            for (name, list) in [("events", json!(events)), ("warnings", json!(allowed.warnings))] {
                if list.as_array().is_some_and(|list| !list.is_empty()) {
                    got.insert(name.to_owned(), list);
                }
            }
            Value::Object(got)
        }
        Verdict::Denied(denial) => {
            let recorded = expected.get("denied_any_of").and_then(Value::as_array);
            let mut recorded = recorded.into_iter().flatten();
            if recorded.any(|one| is_same(one, &denial)) {
                return Ok(Vec::new());
            }
            let Denial { code, reason, message, .. } = denial;
            json!({"allowed": false, "denied_any_of": [{"code": code, "reason": reason, "message": message}]})
        }
    };
    Ok(if got == *expected { Vec::new() } else { vec![Difference::json("answer", expected, &got)] })
}

/// Whether a denial is the recorded one, but for words that come from libraries. Where the original crashed, any is good.
fn is_same(recorded: &Value, denial: &Denial) -> bool {
    if recorded["code"] == 500 {
        return denial.code == 403;
    }
    let Some(message) = recorded["message"].as_str() else { return false };
    // Our cause is one of the recorded alternatives.
    let is_ours = message.ends_with("formula is given but target is empty");
    let product = BEFORE_LIBRARIES.iter().find_map(|words| {
        let (before, _) = message.split_once(words)?;
        message.get(..before.len() + words.len())
    });
    let same_words = denial.message == message
        || product.is_some_and(|product| {
            !is_ours && denial.message.strip_prefix(product).is_some_and(|cause| !cause.trim().is_empty())
        });
    recorded["code"] == denial.code && recorded["reason"] == denial.reason && same_words
}

fn event(event: &Event) -> Value {
    let kind = match event.kind {
        EventKind::Normal => "Normal",
        EventKind::Warning => "Warning",
    };
    json!({"type": kind, "reason": event.reason, "note": event.note})
}
