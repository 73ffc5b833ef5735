//! Columns: what they are, and those of the built-in kinds.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;
use serde_json::{Value, json};

/// A column of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Heading.
    pub name: String,
    /// Type of the cells: `string`, `integer`, `number`, `boolean` or `date`.
    pub type_: String,
    /// Format of the cells; `name` is that of the objects' names.
    pub format: String,
    /// A sentence for people.
    pub description: String,
    /// Zero for columns that are always shown.
    pub priority: i32,
    /// Where the value is, in custom resources.
    pub json_path: String,
}

/// Recorded from a real API server.
#[derive(Deserialize)]
struct Recorded {
    #[serde(rename = "@name")]
    name: String,
    #[serde(rename = "@age")]
    age: String,
    tables: BTreeMap<String, Vec<Entry>>,
}

/// Name, type, format, priority and description of a column; the last may be one of the two above.
type Entry = (String, String, String, i32, String);

static RECORDED: LazyLock<Option<Recorded>> =
    LazyLock::new(|| serde_json::from_str(include_str!("columns.json")).ok());

impl Column {
    /// The column as an answer shows it.
    pub fn to_json(&self) -> Value {
        let Self { name, type_, format, description, priority, .. } = self;
        shown(name, type_, format, *priority, description)
    }
}

/// The columns of a kind that is named like `deployments.apps`.
pub(super) fn built_in(kind: &str) -> Value {
    let Some(recorded) = &*RECORDED else { return Value::Null };
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

/// The column of names.
pub(super) fn names() -> Value {
    shown("Name", "string", "name", 0, RECORDED.as_ref().map_or("", |recorded| &recorded.name))
}

/// The columns of kinds that have none of their own: a name, and a date under the given heading.
pub(super) fn usual(date: &str) -> Value {
    json!([names(), shown(date, "date", "", 0, RECORDED.as_ref().map_or("", |recorded| &recorded.age))])
}

fn shown(name: &str, type_: &str, format: &str, priority: i32, description: &str) -> Value {
    json!({"name": name, "type": type_, "format": format, "description": description, "priority": priority})
}
