//! Printer columns, and those of the built-in kinds.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::custom::Column;

/// Recorded from a real API server.
#[derive(Deserialize)]
struct RecordedColumns {
    #[serde(rename = "@name")]
    name: String,
    #[serde(rename = "@age")]
    age: String,
    tables: BTreeMap<String, Vec<ColumnRow>>,
}

/// Name, type, format, priority and description of a column; the description may be one of the two above.
type ColumnRow = (String, String, String, i32, String);

static RECORDED_COLUMNS: LazyLock<Option<RecordedColumns>> =
    LazyLock::new(|| serde_json::from_str(include_str!("columns.json")).ok());

/// The definition of a custom resource's column.
pub(super) fn custom(column: &Column) -> Value {
    let Column { name, type_, format, description, priority, .. } = column;
    shown(name, type_, format, *priority, description)
}

/// The columns of a kind such as `deployments.apps`.
pub(super) fn built_in(kind: &str) -> Value {
    let Some(recorded) = &*RECORDED_COLUMNS else { return Value::Null };
    let columns = recorded.tables.get(kind).into_iter().flatten();
    let described = columns.map(|(name, type_, format, priority, description)| {
        let description = match description.as_str() {
            "@name" => &recorded.name,
            "@age" => &recorded.age,
            _ => description,
        };
        shown(name, type_, format, *priority, description)
    });
    described.collect()
}

/// The name column.
pub(super) fn names() -> Value {
    shown("Name", "string", "name", 0, RECORDED_COLUMNS.as_ref().map_or("", |recorded| &recorded.name))
}

/// The default columns: a name, and a date with the given heading.
pub(super) fn usual(date: &str) -> Value {
    json!([
        names(),
        shown(date, "date", "", 0, RECORDED_COLUMNS.as_ref().map_or("", |recorded| &recorded.age))
    ])
}

fn shown(name: &str, type_: &str, format: &str, priority: i32, description: &str) -> Value {
    json!({"name": name, "type": type_, "format": format, "description": description, "priority": priority})
}
