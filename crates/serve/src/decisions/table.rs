//! Decisions and differences as tables for kubectl.

use api::decisions::passes::PassItem;
use api::decisions::{DecisionMeta, DecisionMode, DecisionRecord, DifferenceList, DifferenceRecord};
use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Value, json};

use crate::include_object::IncludeObject;

/// Shown for an unknown number.
const UNKNOWN: &str = "<unknown>";

/// A table of decisions.
pub(super) fn decisions(
    records: &[DecisionRecord],
    style: IncludeObject,
    version: &str,
    now: Timestamp,
) -> Value {
    const COLUMNS: &[(&str, &str)] = &[
        ("Name", "Kind, a dot, name of the autoscaler."),
        ("Replicas", "The count that was found."),
        ("Wanted", "The count that should be."),
        ("Last", "How long ago this was decided last."),
        ("Times", "How many times in a row."),
        ("Mode", "What the controller does with it."),
        ("Why", "Why the count is what it is."),
    ];
    let rows =
        records.iter().map(|record| row(&cells(record, now), style, &record.metadata, record.first, record));
    table(COLUMNS, &rows.collect::<Vec<_>>(), version)
}

fn cells(record: &DecisionRecord, now: Timestamp) -> Value {
    let decision = &record.decision;
    let known = |count: engine::Replicas| {
        decision.scale.as_ref().map_or_else(|| UNKNOWN.to_owned(), |_| count.to_string())
    };
    let last = api::age::since(Some(record.last), now);
    let why = record.sentence();
    json!([
        record.metadata.name,
        known(decision.current()),
        known(decision.desired),
        last,
        record.times,
        mode(record.mode),
        why
    ])
}

fn mode(mode: DecisionMode) -> &'static str {
    match mode {
        DecisionMode::Active => "active",
        DecisionMode::Shadow => "shadow",
        DecisionMode::DryRun => "dry-run",
        DecisionMode::Off => "off",
    }
}

/// A table of passes.
pub(super) fn passes(passes: &[PassItem], style: IncludeObject, cursor: &str) -> Value {
    const COLUMNS: &[(&str, &str)] = &[
        ("Name", "Kind, a dot, name of the autoscaler."),
        ("Time", "When, in UTC."),
        ("Replicas", "The count that was found."),
        ("Wanted", "The count that should be."),
        ("Outcome", "What became of it."),
        ("Why", "Why the count is what it is."),
    ];
    let cells = |pass: &PassItem| {
        let found = pass.current.map_or_else(|| UNKNOWN.to_owned(), |count| count.to_string());
        let wanted = pass.current.map_or_else(|| UNKNOWN.to_owned(), |_| pass.desired.to_string());
        json!([pass.name, pass.at, found, wanted, pass.outcome, pass.reason])
    };
    let rows = passes.iter().map(|pass| {
        let meta = DecisionMeta { name: pass.name.clone(), namespace: pass.namespace.clone() };
        row(&cells(pass), style, &meta, pass.at, pass)
    });
    table(COLUMNS, &rows.collect::<Vec<_>>(), cursor)
}

/// A table of differences.
pub(super) fn differences(
    found: &DifferenceList,
    style: IncludeObject,
    version: &str,
    now: Timestamp,
) -> Value {
    const COLUMNS: &[(&str, &str)] = &[
        ("Name", "Kind, a dot, name of the autoscaler."),
        ("Field", "What differs."),
        ("Theirs", "What the controller that acts says."),
        ("Ours", "What we would say."),
        ("Since", "How long ago it began."),
        ("Last", "How long ago it was last seen."),
        ("Over", "Whether it is over."),
        ("Why", "Why, in one sentence."),
    ];
    let cells = |record: &DifferenceRecord| {
        let ago = |time| api::age::since(Some(time), now);
        let DifferenceRecord { metadata, field, theirs, ours, over, why, .. } = record;
        json!([
            metadata.name,
            field,
            theirs,
            ours,
            ago(record.since),
            ago(record.last),
            over.to_string(),
            why
        ])
    };
    let rows =
        found.items.iter().map(|record| row(&cells(record), style, &record.metadata, record.since, record));
    table(COLUMNS, &rows.collect::<Vec<_>>(), version)
}

fn row<T: Serialize>(
    cells: &Value,
    style: IncludeObject,
    meta: &DecisionMeta,
    since: Timestamp,
    object: &T,
) -> Value {
    let named = || {
        json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": {
            "name": meta.name, "namespace": meta.namespace, "creationTimestamp": api::instant::format(since),
        }})
    };
    match style {
        IncludeObject::Nothing => json!({"cells": cells}),
        IncludeObject::Metadata => json!({"cells": cells, "object": named()}),
        IncludeObject::Object => {
            let object = serde_json::to_value(object).unwrap_or_else(|_| named());
            json!({"cells": cells, "object": object})
        }
    }
}

fn table(columns: &[(&str, &str)], rows: &[Value], version: &str) -> Value {
    let column = |(name, description): &(&str, &str)| {
        let format = if *name == "Name" { "name" } else { "" };
        let kind = if *name == "Times" { "integer" } else { "string" };
        json!({"name": name, "type": kind, "format": format, "description": description, "priority": 0})
    };
    let columns: Vec<Value> = columns.iter().map(column).collect();
    json!({
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": {"resourceVersion": version},
        "columnDefinitions": columns,
        "rows": rows,
    })
}
