//! Label and field selectors (`selector.jsonl`).

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, bail};
use api::selector::{FieldSelector, LabelSelector, Requirement, Selector};
use serde_json::{Map, Value, json};

use super::Difference;

pub(crate) fn check(record: &Value) -> anyhow::Result<Vec<Difference>> {
    let mut differences = Vec::new();
    match record["op"].as_str() {
        Some("parse") => check_text(record, &mut differences)?,
        Some("labelSelector") => check_object(record, &mut differences)?,
        Some("fields") => check_fields(record, &mut differences)?,
        other => bail!("unknown op {other:?}"),
    }
    Ok(differences)
}

/// Whether we differ only in the order of requirements with equal keys, which is an accident of the recording: Go sorts
/// more than 12 with a sort that promises no order among equals. We keep the order written (docs/compatibility.md).
pub(crate) fn differs_in_accidental_order(record: &Value, differences: &[Difference]) -> bool {
    let Some(recorded) = record.pointer("/out/requirements").and_then(Value::as_array) else { return false };
    let keys: BTreeSet<Option<&str>> =
        recorded.iter().map(|r| r.get("key").and_then(Value::as_str)).collect();
    let Some(Ok(selector)) = record.get("in").and_then(Value::as_str).map(Selector::parse) else {
        return false;
    };
    let sorted = |list: &[Value]| {
        let mut texts: Vec<String> = list.iter().map(Value::to_string).collect();
        texts.sort();
        texts
    };
    let only_out = differences.iter().all(|difference| difference.at == "out");
    let accidental = recorded.len() > 12 && keys.len() < recorded.len();
    only_out && accidental && sorted(recorded) == sorted(&requirements(&selector))
}

fn check_text(record: &Value, differences: &mut Vec<Difference>) -> anyhow::Result<()> {
    let text = record["in"].as_str().context("`in` is no text")?;
    match Selector::parse(text) {
        Err(error) => compare("error", &record["error"], &json!(error.to_string()), differences),
        Ok(selector) => {
            let mut out = described(&selector);
            match selector.to_label_selector() {
                Ok(object) => out.insert("labelSelector".to_owned(), json!(object)),
                Err(error) => out.insert("labelSelectorError".to_owned(), json!(error.to_string())),
            };
            compare("out", &record["out"], &out.into(), differences);
            check_matches(record, &selector, differences)?;
        }
    }
    Ok(())
}

fn check_object(record: &Value, differences: &mut Vec<Difference>) -> anyhow::Result<()> {
    let object: Option<LabelSelector> = serde_json::from_value(record["in"].clone())?;
    match LabelSelector::to_selector_or_nothing(object.as_ref()) {
        Err(error) => {
            let text = json!(error.to_string());
            let known = record["errorAnyOf"].as_array().is_some_and(|any| any.contains(&text));
            if !known {
                compare("error", &record["error"], &text, differences);
            }
        }
        Ok(selector) => {
            compare("out", &record["out"], &described(&selector).into(), differences);
            check_matches(record, &selector, differences)?;
        }
    }
    if let Some(format) = record.get("format") {
        compare("format", format, &json!(LabelSelector::display(object.as_ref())), differences);
    }
    Ok(())
}

fn check_matches(
    record: &Value,
    selector: &Selector,
    differences: &mut Vec<Difference>,
) -> anyhow::Result<()> {
    for (i, case) in record["matches"].as_array().into_iter().flatten().enumerate() {
        let labels: BTreeMap<String, String> = serde_json::from_value(case["labels"].clone())?;
        compare(&format!("matches[{i}]"), &case["match"], &json!(selector.matches_map(&labels)), differences);
    }
    Ok(())
}

fn requirements(selector: &Selector) -> Vec<Value> {
    let shown =
        |r: &Requirement| json!({"key": r.key(), "operator": r.operator().name(), "values": r.values()});
    selector.requirements().iter().map(shown).collect()
}

fn described(selector: &Selector) -> Map<String, Value> {
    [
        ("string".to_owned(), json!(selector.to_string())),
        ("empty".to_owned(), json!(selector.is_everything())),
        ("requirements".to_owned(), json!(requirements(selector))),
    ]
    .into_iter()
    .collect()
}

fn check_fields(record: &Value, differences: &mut Vec<Difference>) -> anyhow::Result<()> {
    let text = record["in"].as_str().context("`in` is no text")?;
    let selector = match FieldSelector::parse(text) {
        Ok(selector) => selector,
        Err(error) => {
            compare("error", &record["error"], &json!(error.to_string()), differences);
            return Ok(());
        }
    };
    compare("parsed", &record["parsed"], &json!(selector.to_string()), differences);
    for (kind, namespaced) in [("podmetrics", true), ("nodemetrics", false)] {
        compare(kind, &record[kind], &listed(&selector, &record[kind], namespaced), differences);
    }
    Ok(())
}

/// What a list of the metrics API does with the selector; nodes have no namespace to select by.
fn listed(selector: &FieldSelector, expected: &Value, namespaced: bool) -> Value {
    if let Err(error) = selector.restricted_to(&["metadata.name", "metadata.namespace"]) {
        return json!({"error": error.to_string()});
    }
    let matches: Vec<Value> = expected["matches"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|object| {
            let matched = selector.matches(|field| match field {
                "metadata.name" => object["name"].as_str().unwrap_or_default(),
                "metadata.namespace" if namespaced => object["namespace"].as_str().unwrap_or_default(),
                _ => "",
            });
            json!({"name": object["name"], "namespace": object["namespace"], "match": matched})
        })
        .collect();
    match selector.exact("metadata.name") {
        Some(name) => json!({"string": selector.to_string(), "matches": matches, "exactName": name}),
        None => json!({"string": selector.to_string(), "matches": matches}),
    }
}

fn compare(at: &str, expected: &Value, got: &Value, differences: &mut Vec<Difference>) {
    if expected != got {
        differences.push(Difference::json(at, expected, got));
    }
}
