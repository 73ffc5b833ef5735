//! `passes` of the decisions API: every pass in short, and only what is new since the last answer.

use std::collections::HashMap;

use api::decisions::{self, DecisionRecord};
use cluster::request::{with_query, within};
use jiff::{SignedDuration, Timestamp};
use quantity::Quantity;
use serde_json::{Value, json};

use super::readings::seconds;
use crate::live::{AutoscalerName, ClusterClient, RequestError};

/// The time before now that is shown.
const SHOWN_HISTORY: SignedDuration = SignedDuration::from_hours(6);
/// The times whose counts the list shows: the first whose passes can be read at once.
const SHOWN_COUNTS: [SignedDuration; 3] =
    [SignedDuration::from_hours(1), SignedDuration::from_mins(15), SignedDuration::from_mins(3)];
/// Passes of one answer.
const PAGE_SIZE: &str = "5000";
/// Answers that are read at once.
const MAX_PAGES: usize = 4;

/// Passes as points of a chart.
#[derive(Debug, Default)]
pub(super) struct PassPoints {
    pub(super) points: Vec<Value>,
    /// Name, unit and target of each metric; empty if there is no new pass.
    pub(super) headings: Vec<Value>,
    /// What the next request sends as `after`.
    pub(super) cursor: String,
    /// Whether the points replace those of earlier answers.
    pub(super) reset: bool,
    /// After a cursor: the decisions that began since, each with the passes that decided the same.
    pub(super) records: Vec<DecisionRecord>,
    /// After a cursor: how many passes decided what was decided before it, and when the last of them was.
    pub(super) continued: Option<(u64, Timestamp)>,
}

/// The passes of one autoscaler, only those after a cursor if there is one. None if the server does not keep passes.
pub(super) async fn read(
    client: &ClusterClient,
    namespace: &str,
    named: &AutoscalerName,
    after: Option<&str>,
    now: Timestamp,
) -> Option<PassPoints> {
    let since = now.checked_sub(SHOWN_HISTORY).unwrap_or(Timestamp::MIN);
    let (selector, since) = (format!("metadata.name={}", named.record()), since.to_string());
    let path = within(&format!("/apis/{}/passes", named.kind.decisions()), namespace);
    let mut found = PassPoints { reset: after.is_none(), ..PassPoints::default() };
    let mut cursor = after.map(str::to_owned);
    for _ in 0..MAX_PAGES {
        // At first all decisions are read by another request; later ones come with their passes.
        let detail = if found.reset { "" } else { "changed" };
        let query = [
            ("fieldSelector", selector.as_str()),
            ("detail", detail),
            ("since", &since),
            ("limit", PAGE_SIZE),
            ("after", cursor.as_deref().unwrap_or_default()),
        ];
        match client.get::<Value>(&with_query(&path, query)).await {
            Ok(list) => {
                let has_more = found.add(&list);
                if !has_more {
                    break;
                }
                cursor = Some(found.cursor.clone());
            }
            // The process was restarted, or another replica answers: everything is read again.
            Err(error) if error.code() == Some(410) && cursor.is_some() => {
                found = PassPoints { reset: true, ..PassPoints::default() };
                cursor = None;
            }
            Err(_) => return None,
        }
    }
    let is_kept = !(found.cursor.is_empty() || found.reset && found.points.is_empty());
    is_kept.then_some(found)
}

/// The replica counts of the last hour by autoscaler, oldest first, as far as they are kept; of many autoscalers, those of a shorter
/// time.
pub(super) async fn counts(
    client: &ClusterClient,
    only: Option<&str>,
    now: Timestamp,
) -> HashMap<String, Vec<(f64, i32)>> {
    let mut found = HashMap::new();
    for by in [decisions::API_VERSION, decisions::OPERATOR_API_VERSION] {
        for span in SHOWN_COUNTS {
            let since = now.checked_sub(span).unwrap_or(Timestamp::MIN);
            match counts_since(client, by, only, since).await {
                Ok(Some(counts)) => found.extend(counts),
                Ok(None) => continue,
                Err(_) => {}
            }
            break;
        }
    }
    found
}

/// The replica counts since a time; none if there are so many that the newest would be missing.
async fn counts_since(
    client: &ClusterClient,
    by: &str,
    only: Option<&str>,
    since: Timestamp,
) -> Result<Option<HashMap<String, Vec<(f64, i32)>>>, RequestError> {
    let (mut found, mut after, since) = (HashMap::new(), String::new(), since.to_string());
    let path = within(&format!("/apis/{by}/passes"), only.unwrap_or_default());
    for _ in 0..MAX_PAGES {
        let query = [("since", since.as_str()), ("limit", PAGE_SIZE), ("after", &after)];
        let list: Value = client.get(&with_query(&path, query)).await?;
        add_counts(&mut found, &list);
        let cursor = list.pointer("/metadata/cursor").and_then(Value::as_str).unwrap_or_default();
        if list.pointer("/metadata/remaining").and_then(Value::as_bool) != Some(true) || cursor.is_empty() {
            return Ok(Some(found));
        }
        cursor.clone_into(&mut after);
    }
    Ok(None)
}

fn add_counts(found: &mut HashMap<String, Vec<(f64, i32)>>, list: &Value) {
    for item in list.get("items").and_then(Value::as_array).into_iter().flatten() {
        let text = |name: &str| item.get(name).and_then(Value::as_str);
        let at = text("at").and_then(|text| text.parse::<Timestamp>().ok());
        let is_changed = item.get("changed").and_then(Value::as_bool) == Some(true);
        let count = item.get(if is_changed { "desired" } else { "current" }).and_then(Value::as_i64);
        let (Some(at), Some(count), Some(namespace), Some(name)) =
            (at, count, text("namespace"), text("name"))
        else {
            continue;
        };
        let steps = found.entry(format!("{namespace}/{}", name.replacen('.', "/", 1))).or_default();
        let count = i32::try_from(count).unwrap_or(i32::MAX);
        if steps.last().is_none_or(|last: &(f64, i32)| last.1 != count) {
            steps.push((seconds(at), count));
        }
    }
}

impl PassPoints {
    /// Adds an answer; whether there are more passes.
    fn add(&mut self, list: &Value) -> bool {
        let text = |name: &str| list.pointer(name).and_then(Value::as_str);
        text("/metadata/cursor").unwrap_or_default().clone_into(&mut self.cursor);
        for item in list.get("items").and_then(Value::as_array).into_iter().flatten() {
            let metrics =
                item.get("metrics").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
            if let Some(point) = point(item, metrics) {
                self.points.push(point);
                self.headings = metrics.iter().map(heading).collect();
            }
            self.add_decision(item);
        }
        list.pointer("/metadata/remaining").and_then(Value::as_bool) == Some(true) && !self.cursor.is_empty()
    }

    fn add_decision(&mut self, item: &Value) {
        let record = item.get("record").and_then(|record| serde_json::from_value(record.clone()).ok());
        if let Some(record) = record {
            self.records.push(record);
            return;
        }
        let at = item.get("at").and_then(Value::as_str).and_then(|text| text.parse::<Timestamp>().ok());
        let Some(at) = at else { return };
        match self.records.last_mut() {
            Some(last) => {
                last.last = at;
                last.times += 1;
            }
            None => self.continued = Some((self.continued.map_or(1, |(times, _)| times + 1), at)),
        }
    }
}

fn point(item: &Value, metrics: &[Value]) -> Option<Value> {
    let at: Timestamp = item.get("at")?.as_str()?.parse().ok()?;
    let number = |name: &str| item.get(name).and_then(Value::as_i64);
    let is_changed = item.get("changed").and_then(Value::as_bool) == Some(true);
    let (current, desired) = (number("current"), number("desired"));
    let proposals = metrics.iter().filter_map(|metric| metric.get("proposal")?.as_i64());
    let held = match item.get("limit").and_then(Value::as_str) {
        Some("downWindow" | "upWindow") => "window",
        Some("up" | "down") => "rate",
        Some("tooMany") => "max",
        Some("tooFew") => "min",
        _ => "",
    };
    let values: Vec<Option<f64>> =
        metrics.iter().map(|metric| amount(metric.get("value")?.as_str()?).map(|(value, _)| value)).collect();
    Some(json!({
        "t": seconds(at),
        // A scale that could not be read is missing, not zero.
        "current": if is_changed { desired } else { current },
        "desired": current.and(proposals.max().or(desired)),
        "min": number("min").unwrap_or(0),
        "max": number("max").unwrap_or(0),
        "values": values,
        "held": held,
    }))
}

fn heading(metric: &Value) -> Value {
    let text = |name: &str| metric.get(name).and_then(Value::as_str);
    let target = text("target").and_then(amount);
    json!({"name": text("name").unwrap_or_default(), "unit": target.map_or("", |(_, unit)| unit), "target": target.map(|(value, _)| value)})
}

/// The number and the unit of `61%` or `305m`.
fn amount(text: &str) -> Option<(f64, &'static str)> {
    match text.strip_suffix('%') {
        Some(percent) => percent.trim().parse().ok().map(|value| (value, "%")),
        None => Quantity::parse(text).ok().map(|quantity| (quantity.as_f64(), "")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::sample::{at, record_of};

    #[test]
    fn counts_are_those_after_each_pass() {
        let item = |at: &str, current: i32, desired: i32, changed: bool| json!({"namespace": "shop", "name": "hpa.web.eu", "at": at, "current": current, "desired": desired, "changed": changed});
        let mut found = HashMap::new();
        let items = [
            item("1970-01-01T00:01:00Z", 2, 2, false),
            item("1970-01-01T00:02:00Z", 2, 2, false),
            item("1970-01-01T00:03:00Z", 2, 5, true),
            json!({"name": "hpa.web"}),
        ];
        add_counts(&mut found, &json!({"items": items}));
        assert_eq!(found, HashMap::from([("shop/hpa/web.eu".to_owned(), vec![(60.0, 2), (180.0, 5)])]));
    }

    #[test]
    fn passes_become_points() {
        let list = json!({"metadata": {"cursor": "a-2", "remaining": true}, "items": [
            {"at": "1970-01-01T00:01:00.500Z", "current": 1, "desired": 4, "min": 1, "max": 10, "changed": true, "limit": "up",
                "metrics": [{"name": "cpu", "value": "305%", "target": "50%", "proposal": 7}, {"name": "rps", "value": "1500m", "target": "2"}]},
            {"at": "1970-01-01T00:01:15Z", "current": null, "desired": 0, "min": 1, "max": 10, "changed": false, "limit": null,
                "metrics": [{"name": "cpu", "value": null, "target": "50%", "error": "no metrics"}]},
            {"at": "nonsense"}, 7]});
        let mut found = PassPoints::default();
        assert!(found.add(&list));
        assert_eq!((found.cursor.as_str(), found.points.len()), ("a-2", 2));
        assert_eq!(
            found.points[0],
            json!({"t": 60.5, "current": 4, "desired": 7, "min": 1, "max": 10, "values": [305.0, 1.5], "held": "rate"})
        );
        let missing = &found.points[1];
        assert_eq!(
            (&missing["current"], &missing["desired"], &missing["values"]),
            (&Value::Null, &Value::Null, &json!([null]))
        );
        assert_eq!(found.headings, [json!({"name": "cpu", "unit": "%", "target": 50.0})]);
        assert!(!found.add(&json!({})), "an answer without a cursor is the last");
    }

    #[test]
    fn new_decisions_have_the_passes_that_decided_the_same() {
        let record = record_of("web", "2026-01-05T09:15:00Z", 1, &[610]);
        let list = json!({"metadata": {"cursor": "a-9"}, "items": [
            {"at": "2026-01-05T09:14:30Z"}, {"at": "2026-01-05T09:14:45Z"},
            {"at": "2026-01-05T09:15:00Z", "record": record}, {"at": "2026-01-05T09:15:15Z"}]});
        let mut found = PassPoints::default();
        found.add(&list);
        assert_eq!(found.continued, Some((2, at("2026-01-05T09:14:45Z"))));
        let [one] = found.records.as_slice() else { panic!("{found:?}") };
        assert_eq!((one.times, one.last), (2, at("2026-01-05T09:15:15Z")));
    }
}
