//! Compares the result of a step with the recording.

use engine::report::EventKind;
use serde_json::{Value, json};

use super::super::Difference;
use super::cluster::PlayedCluster;

/// Adds where `played` differs from `expect` to `differences`.
pub(super) fn step(
    number: usize,
    expect: &Value,
    requests: &Value,
    played: &PlayedCluster,
    differences: &mut Vec<Difference>,
) {
    let mut compare = |field: &str, expected: &Value, got: &Value| {
        if expected != got {
            walk(&format!("step {number} {field}"), expected, got, differences);
        }
    };
    let field = |name: &str| expect.get(name).cloned().unwrap_or(Value::Null);
    compare("deleted", &json!(expect.get("deleted") == Some(&Value::Bool(true))), &json!(played.deleted));
    let Some(decision) = &played.decision else { return };
    compare("scaleTo", &field("scaleTo"), &json!(played.scale_to));
    let attempts = if played.attempts.len() > 1 || (played.scale_to.is_none() && !played.attempts.is_empty())
    {
        json!(played.attempts)
    } else {
        Value::Null
    };
    compare("scaleAttempts", &field("scaleAttempts"), &attempts);
    compare("status", &field("status"), &played.status);
    if expect.get("statusWritten").is_some() {
        compare("statusWritten", &field("statusWritten"), &json!(played.status_written));
    }
    compare("rejectedStatus", &field("rejectedStatus"), &json!(played.rejected));
    let events: Vec<Value> = decision
        .events
        .iter()
        .map(|e| {
            let kind = if e.kind == EventKind::Normal { "Normal" } else { "Warning" };
            json!([kind, e.reason, e.message])
        })
        .collect();
    compare("events", &field("events"), &Value::Array(events));
    compare("error", &field("error"), &json!(decision.error.as_ref().map(|e| &e.text)));
    let monitor = json!({
        "action": decision.action(),
        "error": decision.error_class(),
        "metrics": played.metric_labels,
    });
    let mut expected = field("monitor");
    if let Some(object) = expected.as_object_mut() {
        object.entry("metrics").or_insert_with(|| json!([]));
        if object.get("metrics") == Some(&Value::Null) {
            object.insert("metrics".into(), json!([]));
        }
    }
    compare("monitor", &expected, &monitor);
    compare("requests", requests, &json!(played.requests));
    let logged = expect.get("logged").cloned().unwrap_or_else(|| json!([]));
    compare("logged", &logged, &json!(played.logged));
}

/// Goes down to the leaves that differ.
fn walk(at: &str, expected: &Value, got: &Value, differences: &mut Vec<Difference>) {
    match (expected, got) {
        (Value::Object(a), Value::Object(b)) => {
            let null = Value::Null;
            let names: std::collections::BTreeSet<&String> = a.keys().chain(b.keys()).collect();
            for name in names {
                let (a, b) = (a.get(name).unwrap_or(&null), b.get(name).unwrap_or(&null));
                if a != b {
                    walk(&format!("{at}.{name}"), a, b, differences);
                }
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (index, (a, b)) in a.iter().zip(b).enumerate() {
                if a != b {
                    walk(&format!("{at}[{index}]"), a, b, differences);
                }
            }
        }
        _ => differences.push(Difference::json(at, expected, got)),
    }
}
