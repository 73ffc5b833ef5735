//! Autoscalers and problems as the frontend shows them.

use std::collections::HashMap;
use std::sync::Arc;

use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Value, json};
use web_console::{FeedRow, RowNames};

use crate::commands::get::Entry;
use crate::commands::top::{AutoscalerLine, Grade, Overview, Problem, Sort};
use crate::live::decisions::Unavailable;

/// What `plimsoll top` shows of the same objects.
pub(super) fn overview(entries: &[Entry], unavailable: Option<&Unavailable>, now: Timestamp) -> Overview {
    Overview::of(entries, unavailable, Sort::Name, now)
}

/// `namespace/kind/name`, as problems name autoscalers.
pub(super) fn id(entry: &Entry) -> String {
    let object = &entry.object;
    [object.namespace(), "/", object.kind.short(), "/", object.hpa.metadata.name.as_str()].concat()
}

/// A row for each autoscaler.
pub(super) fn rows(entries: &[Entry], overview: &Overview) -> Vec<FeedRow> {
    let by_id: HashMap<String, &Entry> = entries.iter().map(|entry| (id(entry), entry)).collect();
    let row = |line: &AutoscalerLine| {
        let entry = by_id.get(&format!("{}/{}", line.namespace, line.name))?;
        Some(row(entry, &names(entry), &RowValues::of(line)))
    };
    overview.autoscalers.iter().filter_map(row).collect()
}

/// How much memory the JSON of the values of most rows needs, in bytes.
const VALUES_CAPACITY: usize = 224;

/// What a row shows besides the spec of its autoscaler.
pub(super) struct RowValues<'a> {
    /// Metrics against targets.
    pub(super) metrics: &'a str,
    pub(super) state: Grade,
    /// The highest ratio of a metric to its target.
    pub(super) pressure: Option<f64>,
    pub(super) replicas: Option<i32>,
    /// The last decision in words.
    pub(super) decision: &'a str,
}

impl<'a> RowValues<'a> {
    pub(super) fn of(line: &'a AutoscalerLine) -> Self {
        let AutoscalerLine { metrics, state, pressure, replicas, decision, .. } = line;
        Self { metrics, state: *state, pressure: *pressure, replicas: *replicas, decision }
    }
}

/// What changes with decisions.
#[derive(Serialize)]
struct ShownValues<'a> {
    metrics: &'a str,
    state: Grade,
    pressure: Option<f64>,
    replicas: Option<i32>,
    desired: Option<i32>,
    decision: &'a str,
}

/// What a row shows as long as the object is the same.
pub(super) fn names(entry: &Entry) -> Arc<RowNames> {
    let hpa = &entry.object.hpa;
    let target = &hpa.spec.scale_target_ref;
    let target = [target.kind.as_str(), "/", target.name.as_str()].concat();
    let shown = json!({
        "namespace": entry.object.namespace(),
        "kind": entry.object.kind.short(),
        "name": hpa.metadata.name,
        "target": target,
        "min": hpa.spec.min_replicas.unwrap_or(1),
        "max": hpa.spec.max_replicas,
    });
    Arc::new(RowNames::new(&id(entry), &shown))
}

/// The row of one autoscaler.
pub(super) fn row(entry: &Entry, names: &Arc<RowNames>, values: &RowValues<'_>) -> FeedRow {
    let shown = ShownValues {
        metrics: values.metrics,
        state: values.state,
        // Two decimals are enough to sort by, and a row is not sent again for less.
        pressure: values.pressure.map(|ratio| (ratio * 100.0).round() / 100.0),
        replicas: values.replicas,
        desired: desired(entry),
        decision: values.decision,
    };
    let mut json = Vec::with_capacity(VALUES_CAPACITY);
    // Writing numbers and strings to memory cannot fail.
    let _ = serde_json::to_writer(&mut json, &shown);
    let values_json = String::from_utf8(json).unwrap_or_default();
    FeedRow { names: Arc::clone(names), values: values_json, replicas: values.replicas }
}

fn desired(entry: &Entry) -> Option<i32> {
    match &entry.record {
        // The scale could not be read, so that its decision has no count: it is missing, not zero.
        Some(record) if !entry.shows_status() => {
            record.decision.scale.as_ref().map(|_| record.decision.desired.get())
        }
        _ => entry.status_counts().map(|(_, desired)| desired),
    }
}

/// The problems, worst first.
pub(super) fn problems(entries: &[Entry], overview: &Overview) -> Value {
    let since: HashMap<String, Timestamp> =
        entries.iter().filter_map(|entry| Some((id(entry), began(entry)?))).collect();
    let problem =
        |one: &Problem| problem(one, one.autoscalers.iter().filter_map(|id| since.get(id)).min().copied());
    overview.problems.iter().map(problem).collect()
}

/// A problem that the first of its autoscalers has since a time.
pub(super) fn problem(problem: &Problem, since: Option<Timestamp>) -> Value {
    json!({
        "cause": problem.cause,
        "effect": problem.effect,
        "detail": problem.detail,
        "remedy": problem.remedy,
        "risk": risk(problem.grade),
        "state": problem.grade,
        "since": since.map(Timestamp::as_second),
        "autoscalers": problem.autoscalers,
    })
}

/// How long the present state lasts, as far as that is known.
pub(super) fn began(entry: &Entry) -> Option<Timestamp> {
    let conditions = &entry.object.hpa.status.conditions;
    let changed = conditions.iter().filter_map(|condition| condition.last_transition_time).max();
    // In mode `off`, what was decided before is over.
    match (entry.record.as_ref().filter(|_| !entry.is_off()), changed) {
        (Some(record), Some(changed)) => Some(record.first.min(changed)),
        (Some(record), None) => Some(record.first),
        (None, changed) => changed,
    }
}

fn risk(grade: Grade) -> &'static str {
    match grade {
        Grade::Failing => "load may change without a change of replicas",
        Grade::AtMax => "metrics stay above their targets while the load lasts",
        Grade::Partial => "scale-down waits, and scale-up follows the other metrics only",
        Grade::Fine | Grade::Paused => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::objects::sample;
    use crate::live::sample::{at, record_of};

    fn entry(name: &str, usages: &[i64]) -> Entry {
        let object = sample(name, json!({"currentReplicas": 1, "desiredReplicas": 1, "conditions": []}));
        Entry { object, record: Some(record_of(name, "2026-01-05T09:15:00Z", 1, usages)) }
    }

    #[test]
    fn rows_and_problems_have_the_same_ids() {
        let entries = [entry("web", &[610]), entry("shop", &[])];
        let overview = overview(&entries, None, at("2026-01-05T09:15:01Z"));
        let rows = rows(&entries, &overview);
        let row = rows.iter().find(|row| &*row.names.id == "shop/hpa/web").unwrap();
        let row: Value = serde_json::from_str(&row.json()).unwrap();
        assert_eq!((&row["target"], &row["max"]), (&json!("Deployment/web"), &json!(10)));
        assert_eq!(
            (&row["state"], &row["pressure"], &row["desired"]),
            (&json!("fine"), &json!(6.1), &json!(4))
        );
        let problems = problems(&entries, &overview);
        assert_eq!(problems[0]["autoscalers"], json!(["shop/hpa/shop"]));
        assert_eq!((&problems[0]["state"], &problems[0]["effect"]), (&json!("failing"), &json!("hold")));
        assert_eq!(problems[0]["since"], json!(at("2026-01-05T09:15:00Z").as_second()));
    }

    #[test]
    fn count_of_a_scale_that_could_not_be_read_is_missing() {
        let mut entry = entry("web", &[]);
        if let Some(record) = &mut entry.record {
            record.decision.scale = None;
        }
        assert_eq!(desired(&entry), None);
    }
}
