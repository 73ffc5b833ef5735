//! The fields of a value, and the fields in which two values differ.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::{FieldSet, PathStep};
use crate::schema::{ListKind, ListSchema, Schema, SchemaCursor, SchemaShape};

/// The fields in which two values differ.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldDiff {
    /// Fields that only the new value has.
    pub added: FieldSet,
    /// Fields with another value.
    pub modified: FieldSet,
    /// Fields that only the old value has.
    pub removed: FieldSet,
}

impl FieldSet {
    /// The fields that the writer of this value owns.
    pub fn of(schema: &Schema, value: &Value) -> Self {
        of(SchemaCursor::Known(schema), value)
    }
}

/// The fields in which two objects differ.
pub fn compare(schema: &Schema, old: &Value, new: &Value) -> FieldDiff {
    let mut found = FieldDiff::default();
    both(SchemaCursor::Known(schema), old, new, &mut found);
    found
}

/// The path step to a list item.
pub(super) fn item_step(list: &ListSchema, item: &Value) -> PathStep {
    match &list.kind {
        ListKind::Map(keys) => {
            let defaults = match &list.items.schema().shape {
                SchemaShape::Object(object) => Some(&object.fields),
                _ => None,
            };
            let default = |key: &String| defaults?.get(key)?.schema.schema().default.clone();
            let mut pairs: Vec<(String, Value)> = keys
                .iter()
                .filter_map(|key| Some((key.clone(), item.get(key).cloned().or_else(|| default(key))?)))
                .collect();
            pairs.sort_by(|one, other| one.0.cmp(&other.0));
            PathStep::Key(pairs)
        }
        ListKind::Set | ListKind::Atomic => PathStep::Value(item.clone()),
    }
}

pub(super) fn items_of(list: &ListSchema) -> SchemaCursor<'_> {
    SchemaCursor::Known(list.items.schema())
}

fn of(cursor: SchemaCursor<'_>, value: &Value) -> FieldSet {
    let mut set = FieldSet::default();
    if cursor.is_leaf(value) {
        set.member = true;
        return set;
    }
    match (value, cursor.list()) {
        (Value::Object(map), None) => {
            for (key, value) in map {
                let mut below = of(cursor.field(key), value);
                let empty = value.is_null() || value.as_object().is_some_and(Map::is_empty);
                below.member |= empty || !cursor.declares(key);
                set.put(PathStep::Field(key.clone()), below);
            }
        }
        (Value::Array(items), Some(list)) => {
            for item in items {
                let below = FieldSet { member: true, ..of(items_of(list), item) };
                set.put(item_step(list, item), below);
            }
        }
        _ => {}
    }
    set
}

fn both(cursor: SchemaCursor<'_>, old: &Value, new: &Value, found: &mut FieldDiff) {
    if old == new {
        return;
    }
    if cursor.is_leaf(old) && cursor.is_leaf(new) {
        found.modified.member = true;
        return;
    }
    let is_empty = |value: &Value| match value {
        Value::Object(map) => map.is_empty(),
        Value::Array(items) => items.is_empty(),
        other => other.is_null(),
    };
    match (old, new, cursor.list()) {
        // `{}` and `null` are both empty but differ.
        _ if is_empty(old) && is_empty(new) => found.modified.member = true,
        (Value::Object(old), Value::Object(new), None) => both_maps(cursor, old, new, found),
        (Value::Array(old), Value::Array(new), Some(list)) => both_lists(list, old, new, found),
        // An emptied list or map still exists: its items are what changed.
        (Value::Object(old), Value::Null, None) => both_maps(cursor, old, &Map::new(), found),
        (Value::Null, Value::Object(new), None) => both_maps(cursor, &Map::new(), new, found),
        (Value::Array(old), Value::Null, Some(list)) => both_lists(list, old, &[], found),
        (Value::Null, Value::Array(new), Some(list)) => both_lists(list, &[], new, found),
        // The type changed: the value is modified, and everything below it is removed or added.
        _ => {
            found.modified.member = true;
            found.removed.children = whole(cursor, old).children;
            found.added.children = whole(cursor, new).children;
        }
    }
}

fn both_maps(
    cursor: SchemaCursor<'_>,
    old: &Map<String, Value>,
    new: &Map<String, Value>,
    found: &mut FieldDiff,
) {
    for (key, new) in new {
        let zero = || cursor.declared(key).and_then(|field| field.zero.as_ref());
        match old.get(key).or_else(zero) {
            Some(old) if old == new => {}
            old => found.step(PathStep::Field(key.clone()), cursor.field(key), old, Some(new)),
        }
    }
    for (key, old) in old {
        if !new.contains_key(key) {
            let zero = cursor.declared(key).and_then(|field| field.zero.as_ref());
            found.step(PathStep::Field(key.clone()), cursor.field(key), Some(old), zero);
        }
    }
}

fn both_lists(list: &ListSchema, old: &[Value], new: &[Value], found: &mut FieldDiff) {
    let mut before: BTreeMap<PathStep, &Value> = BTreeMap::new();
    for item in old {
        before.entry(item_step(list, item)).or_insert(item);
    }
    let mut seen = BTreeSet::new();
    for item in new {
        let step = item_step(list, item);
        if seen.insert(step.clone()) {
            let old = before.remove(&step);
            found.step(step, items_of(list), old, Some(item));
        }
    }
    for (step, item) in before {
        if !seen.contains(&step) {
            found.step(step, items_of(list), Some(item), None);
        }
    }
}

impl FieldDiff {
    /// The fields that were written, and those that were removed.
    pub(super) fn split(self) -> (FieldSet, FieldSet) {
        let mut written = self.added;
        written.union(&self.modified);
        (written, self.removed)
    }

    fn step(&mut self, step: PathStep, cursor: SchemaCursor<'_>, old: Option<&Value>, new: Option<&Value>) {
        match (old, new) {
            (None, Some(new)) => self.added.put(step, whole(cursor, new)),
            (Some(old), None) => self.removed.put(step, whole(cursor, old)),
            (Some(old), Some(new)) => {
                let mut below = Self::default();
                both(cursor, old, new, &mut below);
                self.added.put(step.clone(), below.added);
                self.modified.put(step.clone(), below.modified);
                self.removed.put(step, below.removed);
            }
            (None, None) => {}
        }
    }
}

/// All fields of a value that exists on one side only.
fn whole(cursor: SchemaCursor<'_>, value: &Value) -> FieldSet {
    let mut set = FieldSet { member: true, ..FieldSet::default() };
    if cursor.is_leaf(value) {
        return set;
    }
    match (value, cursor.list()) {
        (Value::Object(map), None) => {
            for (key, value) in map {
                set.put(PathStep::Field(key.clone()), whole(cursor.field(key), value));
            }
        }
        (Value::Array(items), Some(list)) => {
            for item in items {
                set.put(item_step(list, item), whole(items_of(list), item));
            }
        }
        _ => {}
    }
    set
}
