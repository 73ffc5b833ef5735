//! Walks the values of a chart by a table.

use serde::Serialize;
use serde_json::{Map, Value};

/// Values of our chart, and what has no equivalent.
#[derive(Debug)]
pub(in super::super) struct ConvertedValues {
    pub(in super::super) values: Value,
    pub(in super::super) lost: Vec<LostValue>,
}

/// A value without an equivalent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(in super::super) struct LostValue {
    pub(in super::super) path: String,
    pub(in super::super) why: String,
}

/// What becomes of a value.
#[derive(Clone, Copy)]
pub(super) enum ValueRule {
    /// It is copied to these paths of our values.
    To(&'static [&'static str]),
    /// A function converts it.
    By(fn(&mut ConvertedValues, &str, &Value)),
    /// Our chart needs no value for it.
    Unneeded,
    /// It has no equivalent: why.
    Lost(&'static str),
}

/// Paths of a chart's values and what becomes of them.
pub(super) type ValueTable = &'static [(&'static str, ValueRule)];

impl Default for ConvertedValues {
    fn default() -> Self {
        Self { values: Value::Object(Map::new()), lost: Vec::new() }
    }
}

impl ConvertedValues {
    /// Sets a value; objects on the way are created, and an object is added to one that is there.
    pub(in super::super) fn set(&mut self, path: &str, value: Value) {
        let mut place = &mut self.values;
        for key in path.split('.') {
            if !place.is_object() {
                *place = Value::Object(Map::new());
            }
            let Some(fields) = place.as_object_mut() else { return };
            place = fields.entry(key).or_insert(Value::Null);
        }
        match value {
            Value::Object(fields) if place.is_object() => {
                if let Some(known) = place.as_object_mut() {
                    known.extend(fields);
                }
            }
            value => *place = value,
        }
    }

    /// Appends to a list.
    pub(in super::super) fn push(&mut self, path: &str, value: Value) {
        let pointer = format!("/{}", path.replace('.', "/"));
        match self.values.pointer_mut(&pointer).and_then(Value::as_array_mut) {
            Some(list) => list.push(value),
            None => self.set(path, Value::Array(vec![value])),
        }
    }

    /// Notes a value without an equivalent.
    pub(in super::super) fn lose(&mut self, path: &str, why: &str) {
        self.lost.push(LostValue { path: path.to_owned(), why: why.to_owned() });
    }
}

/// Converts values. What the table does not have is lost.
pub(super) fn convert(given: &Value, table: ValueTable) -> ConvertedValues {
    let mut converted = ConvertedValues::default();
    walk(&mut converted, table, "", given);
    converted
}

fn walk(converted: &mut ConvertedValues, table: ValueTable, path: &str, value: &Value) {
    let below = format!("{path}.");
    let has_parts = path.is_empty() || table.iter().any(|(known, _)| known.starts_with(&below));
    match value {
        // Helm removes the default of a value that is null, and templates take a switch without a value for off. Of other values our chart's
        // default stays.
        Value::Null if is_switch(path) => walk(converted, table, path, &Value::Bool(false)),
        Value::Null => {}
        Value::Object(fields) if has_parts => {
            for (key, value) in fields {
                let path = if path.is_empty() { key.clone() } else { format!("{below}{key}") };
                walk(converted, table, &path, value);
            }
        }
        _ => match rule(table, path) {
            Some(ValueRule::To(paths)) => paths.iter().for_each(|to| converted.set(to, value.clone())),
            Some(ValueRule::By(convert)) => convert(converted, path, value),
            Some(ValueRule::Unneeded) => {}
            Some(ValueRule::Lost(why)) => converted.lose(path, why),
            None => converted.lose(path, "Plimsoll's chart has no such value"),
        },
    }
}

/// Whether a value switches something on.
fn is_switch(path: &str) -> bool {
    [".enabled", ".create", ".install"].iter().any(|end| path.ends_with(end))
}

/// The rule of a path, or that of the nearest path above which says that it is not needed or lost.
fn rule(table: ValueTable, path: &str) -> Option<ValueRule> {
    let find = |path: &str| table.iter().find(|(known, _)| *known == path).map(|(_, rule)| *rule);
    let mut above = path.match_indices('.').rev().filter_map(|(at, _)| find(path.get(..at)?));
    let is_general = |rule: &ValueRule| matches!(rule, ValueRule::Unneeded | ValueRule::Lost(_));
    find(path).or_else(|| above.find(is_general))
}
