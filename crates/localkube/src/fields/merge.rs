//! Merging and removing the fields of an applied configuration.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::compare::{item_step, items_of};
use super::{FieldSet, PathStep};
use crate::schema::{ListSchema, SchemaCursor};

/// Merges the configuration into the object; nothing is removed.
pub(super) fn merge(cursor: SchemaCursor<'_>, live: Option<&Value>, config: &Value) -> Value {
    if cursor.is_leaf(config) {
        return config.clone();
    }
    match (live, config, cursor.list()) {
        (Some(live), Value::Null, _) => live.clone(),
        (live, Value::Object(config), None) => {
            let mut map = live.and_then(Value::as_object).cloned().unwrap_or_default();
            for (key, value) in config {
                let merged = merge(cursor.field(key), map.get(key), value);
                map.insert(key.clone(), merged);
            }
            Value::Object(map)
        }
        (live, Value::Array(config), Some(list)) => {
            let live = live.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
            Value::Array(merge_lists(list, live, config))
        }
        _ => config.clone(),
    }
}

/// Items that both lists have are in the order of the configuration; items of the object alone keep their positions
/// relative to them.
fn merge_lists(list: &ListSchema, live: &[Value], config: &[Value]) -> Vec<Value> {
    let ours: Vec<PathStep> = live.iter().map(|item| item_step(list, item)).collect();
    let theirs: Vec<PathStep> = config.iter().map(|item| item_step(list, item)).collect();
    let by_step: BTreeMap<&PathStep, &Value> = ours.iter().zip(live).rev().collect();
    let mut merged = Vec::with_capacity(live.len() + config.len());
    let mut live = ours.iter().zip(live).peekable();
    for (position, (step, item)) in theirs.iter().zip(config).enumerate() {
        // First the items before the next common item.
        let next = theirs.iter().skip(position).find(|step| by_step.contains_key(step));
        while let Some((our_step, our_item)) = live.peek() {
            if next == Some(our_step) {
                break;
            }
            if !theirs.contains(our_step) {
                merged.push((*our_item).clone());
            }
            live.next();
        }
        merged.push(merge(items_of(list), by_step.get(step).copied(), item));
        if live.peek().is_some_and(|(our_step, _)| *our_step == step) {
            live.next();
        }
    }
    merged.extend(live.filter(|(step, _)| !theirs.contains(step)).map(|(_, item)| item.clone()));
    merged
}

/// Removes fields; a list or map that becomes empty is left `null`.
pub(super) fn remove(cursor: SchemaCursor<'_>, value: &mut Value, gone: &FieldSet) {
    if gone.children.is_empty() || cursor.is_leaf(value) {
        return;
    }
    let emptied = match (&mut *value, cursor.list()) {
        (Value::Object(map), None) => {
            remove_keys(cursor, map, gone);
            map.is_empty()
        }
        (Value::Array(items), Some(list)) => {
            items.retain_mut(|item| match gone.children.get(&item_step(list, item)) {
                Some(below) if below.member => false,
                Some(below) => {
                    remove(items_of(list), item, below);
                    true
                }
                None => true,
            });
            items.is_empty()
        }
        _ => false,
    };
    if emptied {
        *value = Value::Null;
    }
}

fn remove_keys(cursor: SchemaCursor<'_>, map: &mut Map<String, Value>, gone: &FieldSet) {
    for (step, below) in &gone.children {
        let PathStep::Field(key) = step else { continue };
        if below.member {
            map.shift_remove(key);
        } else if let Some(value) = map.get_mut(key) {
            remove(cursor.field(key), value, below);
        }
    }
}
