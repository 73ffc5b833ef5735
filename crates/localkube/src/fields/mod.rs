//! Field ownership: field sets, `metadata.managedFields`, server-side apply.

mod apply;
mod compare;
mod entry;
mod json;
mod managed;
mod merge;
#[cfg(test)]
mod tests;
mod typed;

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt;

use serde_json::Value;

pub use apply::apply;
pub use compare::{FieldDiff, compare};
pub use managed::{ConvertVersion, FieldWriter, record_update, resets};

use crate::schema::SchemaCursor;

/// A set of fields: a tree of path steps.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldSet {
    /// Whether the path itself is in the set.
    pub member: bool,
    /// The fields below.
    pub children: BTreeMap<PathStep, FieldSet>,
}

/// One step of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathStep {
    /// A struct field or a map key.
    Field(String),
    /// A list item, by its key fields.
    Key(Vec<(String, Value)>),
    /// An item of a set.
    Value(Value),
    /// A list item, by its index.
    Index(usize),
}

impl FieldSet {
    /// Whether the set is empty.
    pub fn is_empty(&self) -> bool {
        !self.member && self.children.values().all(Self::is_empty)
    }

    /// Adds the fields of the other set.
    pub fn union(&mut self, other: &Self) {
        self.member |= other.member;
        for (step, below) in &other.children {
            match self.children.get_mut(step) {
                Some(mine) => mine.union(below),
                None => {
                    self.children.insert(step.clone(), below.clone());
                }
            }
        }
    }

    /// Removes the fields of the other set; fields below them stay.
    pub fn subtract(&mut self, other: &Self) {
        self.member &= !other.member;
        self.each_shared(other, Self::subtract);
    }

    /// Removes the fields of the other set and everything below them.
    pub fn subtract_all_below(&mut self, other: &Self) {
        if other.member {
            *self = Self::default();
        } else {
            self.each_shared(other, Self::subtract_all_below);
        }
    }

    /// The fields in both sets.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        let mut both = Self { member: self.member && other.member, children: BTreeMap::new() };
        for (step, mine) in &self.children {
            if let Some(theirs) = other.children.get(step) {
                both.put(step.clone(), mine.intersection(theirs));
            }
        }
        both
    }

    /// All paths of the set as in error texts; at each level, paths that end there come first.
    pub fn paths(&self) -> Vec<String> {
        let mut found = Vec::new();
        self.collect(&mut String::new(), &mut found);
        found
    }

    /// Adds all declared fields on the way to a member.
    pub(crate) fn with_declared(&mut self, cursor: SchemaCursor<'_>) {
        for (step, below) in &mut self.children {
            let (next, declared) = match step {
                PathStep::Field(name) => (cursor.field(name), cursor.declares(name)),
                PathStep::Key(_) | PathStep::Value(_) | PathStep::Index(_) => (
                    cursor.list().map_or(SchemaCursor::Open, |list| SchemaCursor::Known(list.items.schema())),
                    false,
                ),
            };
            below.member |= declared;
            below.with_declared(next);
        }
    }

    pub(crate) fn put(&mut self, step: PathStep, below: Self) {
        if below.member || !below.children.is_empty() {
            self.children.insert(step, below);
        }
    }

    fn each_shared(&mut self, other: &Self, change: impl Fn(&mut Self, &Self)) {
        if other.children.is_empty() {
            return;
        }
        self.children.retain(|step, mine| match other.children.get(step) {
            Some(theirs) => {
                change(mine, theirs);
                mine.member || !mine.children.is_empty()
            }
            None => true,
        });
    }

    fn collect(&self, path: &mut String, found: &mut Vec<String>) {
        let members = self.children.iter().filter(|(_, below)| below.member);
        found.extend(members.map(|(step, _)| format!("{path}{step}")));
        let end = path.len();
        for (step, below) in &self.children {
            path.push_str(&step.to_string());
            below.collect(path, found);
            path.truncate(end);
        }
    }
}

impl PathStep {
    fn rank(&self) -> u8 {
        match self {
            Self::Field(_) => 0,
            Self::Key(_) => 1,
            Self::Value(_) => 2,
            Self::Index(_) => 3,
        }
    }
}

impl Ord for PathStep {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Field(mine), Self::Field(theirs)) => mine.cmp(theirs),
            (Self::Index(mine), Self::Index(theirs)) => mine.cmp(theirs),
            (Self::Value(mine), Self::Value(theirs)) => order(mine, theirs),
            (Self::Key(mine), Self::Key(theirs)) => {
                let pairs = mine.iter().zip(theirs);
                let mut orders = pairs.map(|(m, t)| m.0.cmp(&t.0).then_with(|| order(&m.1, &t.1)));
                let first = orders.find(|order| order.is_ne()).unwrap_or(Ordering::Equal);
                first.then(mine.len().cmp(&theirs.len()))
            }
            _ => self.rank().cmp(&other.rank()),
        }
    }
}

impl PartialOrd for PathStep {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Numbers by value, other values by their text.
fn order(mine: &Value, theirs: &Value) -> Ordering {
    match (mine, theirs) {
        (Value::String(mine), Value::String(theirs)) => mine.cmp(theirs),
        (Value::Number(m), Value::Number(t)) => match (m.as_i64(), t.as_i64()) {
            (Some(m), Some(t)) => m.cmp(&t),
            _ => m.as_f64().unwrap_or(0.0).total_cmp(&t.as_f64().unwrap_or(0.0)),
        },
        _ => mine.to_string().cmp(&theirs.to_string()),
    }
}

/// The form in error texts: `.spec`, `[name="a"]`, `[="x"]`, `[0]`.
impl fmt::Display for PathStep {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field(name) => write!(out, ".{name}"),
            Self::Key(pairs) => {
                let pairs: Vec<String> = pairs.iter().map(|(key, value)| format!("{key}={value}")).collect();
                write!(out, "[{}]", pairs.join(","))
            }
            Self::Value(value) => write!(out, "[={value}]"),
            Self::Index(index) => write!(out, "[{index}]"),
        }
    }
}
