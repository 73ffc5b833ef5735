//! Polls of the triggers of ScaledObjects, and requests for their metrics (`executor.jsonl`, `fallback.jsonl`,
//! `poll.jsonl`).

mod cluster;
mod executor;
mod fallback;
mod poll;

use anyhow::{Context as _, anyhow};
use api::provider::Compat;
use engine::report::EventKind;
use keda::activity::MetricValue;
use keda::event::Event;
use quantity::Quantity;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::{Difference, Outcome};

/// A record of any of the files.
#[derive(Deserialize)]
struct RoundsRecord<I> {
    #[serde(rename = "in")]
    given: I,
    out: Value,
}

/// Replays one decision each.
pub(crate) fn executor(records: &[Value]) -> Vec<Outcome> {
    replay(records, |given, out, compat| Ok(executor::check(given, out, compat)))
}

/// Replays sequences of queries each.
pub(crate) fn fallback(records: &[Value]) -> Vec<Outcome> {
    replay(records, fallback::check)
}

/// Replays one poll or metric request each.
pub(crate) fn poll(records: &[Value]) -> Vec<Outcome> {
    replay(records, poll::check)
}

fn replay<I: DeserializeOwned>(
    records: &[Value],
    check: fn(&I, &Value, Compat) -> anyhow::Result<Vec<Difference>>,
) -> Vec<Outcome> {
    let replayed = |value: &Value| {
        let record = RoundsRecord::<I>::deserialize(value);
        Outcome::of(value, |compat| {
            let RoundsRecord { given, out } = record.as_ref().map_err(|error| anyhow!("{error}"))?;
            check(given, out, compat)
        })
    };
    records.iter().map(replayed).collect()
}

/// The differences of two values, field by field.
pub(super) fn compare(at: &str, expected: &Value, got: &Value, differences: &mut Vec<Difference>) {
    match (expected, got) {
        (Value::Object(theirs), Value::Object(ours)) => {
            for (name, value) in theirs {
                compare(&format!("{at}/{name}"), value, ours.get(name).unwrap_or(&Value::Null), differences);
            }
            for (name, value) in ours.iter().filter(|(name, _)| !theirs.contains_key(*name)) {
                compare(&format!("{at}/{name}"), &Value::Null, value, differences);
            }
        }
        (Value::Array(theirs), Value::Array(ours)) if theirs.len() == ours.len() => {
            for (index, (theirs, ours)) in theirs.iter().zip(ours).enumerate() {
                compare(&format!("{at}/{index}"), theirs, ours, differences);
            }
        }
        _ if expected == got => {}
        _ => differences.push(Difference::json(at.trim_start_matches('/'), expected, got)),
    }
}

/// An object without what is absent.
pub(super) fn object(fields: impl IntoIterator<Item = (&'static str, Option<Value>)>) -> Value {
    let given = fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    Value::Object(given.collect::<Map<_, _>>())
}

/// A list, or null.
pub(super) fn list(values: Vec<Value>) -> Option<Value> {
    (!values.is_empty()).then_some(Value::Array(values))
}

pub(super) fn reported(event: &Event) -> Value {
    let kind = match event.kind {
        EventKind::Normal => "Normal",
        EventKind::Warning => "Warning",
    };
    object([
        ("type", Some(json!(kind))),
        ("reason", Some(json!(event.reason))),
        ("note", Some(json!(event.note))),
        ("action", event.action.map(|action| json!(action))),
    ])
}

fn served(value: &MetricValue) -> Value {
    json!({"metricName": value.name, "value": value.value.canonical()})
}

/// Recorded values in one notation.
fn canonical(values: &Value) -> anyhow::Result<Value> {
    let one = |value: &Value| {
        let text = value.get("value").and_then(Value::as_str).context("a value without value")?;
        let quantity = Quantity::parse(text)?;
        Ok(json!({"metricName": value.get("metricName"), "value": quantity.canonical()}))
    };
    let values = values.as_array().context("values are no list")?;
    values.iter().map(one).collect::<anyhow::Result<Vec<_>>>().map(Value::Array)
}
