//! Strategic merge patch: like merge patch, but lists are merged where the schema says so, and patches may contain
//! directives.

use serde_json::{Map, Value};

use super::order;
use crate::schema::{FieldSchema, PatchStrategy, Schema, SchemaCursor, go};
use crate::status::Status;

/// The maximum nesting of objects.
const MAX_NESTING: usize = 100;

const DIRECTIVE: &str = "$patch";
const RETAIN: &str = "$retainKeys";
const ORDER: &str = "$setElementOrder/";
const DELETE: &str = "$deleteFromPrimitiveList/";

/// The position in schema and object while merging.
#[derive(Clone, Copy)]
struct MergePosition<'s> {
    cursor: SchemaCursor<'s>,
    depth: usize,
}

pub(super) fn apply(
    schema: Option<&Schema>,
    object: &Value,
    changes: &Map<String, Value>,
) -> Result<Value, Status> {
    let spot = MergePosition { cursor: schema.map_or(SchemaCursor::Unknown, SchemaCursor::Known), depth: 0 };
    let map = object.as_object().cloned().unwrap_or_default();
    spot.merge(map, changes).map(Value::Object)
}

impl<'s> MergePosition<'s> {
    fn field(self, key: &str) -> Option<&'s FieldSchema> {
        self.cursor.declared(key)
    }

    fn below(self, key: &str) -> Self {
        Self { cursor: self.cursor.field(key), depth: self.depth + 1 }
    }

    fn items(self, key: &str) -> Self {
        let list = self.cursor.field(key).list();
        let cursor = list.map_or(SchemaCursor::Unknown, |list| SchemaCursor::Known(list.items.schema()));
        Self { cursor, depth: self.depth + 1 }
    }

    fn merge(
        self,
        mut map: Map<String, Value>,
        changes: &Map<String, Value>,
    ) -> Result<Map<String, Value>, Status> {
        if self.depth > MAX_NESTING {
            return Err(Status::bad_request("the patch is nested too deeply"));
        }
        match changes.get(DIRECTIVE) {
            None => {}
            Some(Value::String(word)) if word == "replace" => return Ok(plain(changes)),
            Some(Value::String(word)) if word == "delete" => return Ok(Map::new()),
            Some(other) => return Err(unknown_directive(other, changes)),
        }
        retain(&mut map, changes)?;
        for (key, change) in changes {
            if !key.starts_with('$') {
                self.change(&mut map, key, change, changes)?;
            }
        }
        for (key, given) in changes {
            if let Some(field) = key.strip_prefix(DELETE)
                && let (Some(Value::Array(list)), Value::Array(given)) = (map.get_mut(field), given)
            {
                list.retain(|item| !given.contains(item));
            } else if let Some(field) = key.strip_prefix(ORDER)
                && !changes.contains_key(field)
                && let Some(order) = self.order(field, changes)?
                && let Some(Value::Array(items)) = map.get_mut(field)
            {
                let before = items.clone();
                let key = self.field(field).and_then(|field| field.strategy.key.as_deref());
                *items = order::arrange(std::mem::take(items), order, &before, key);
            }
        }
        Ok(map)
    }

    fn change(
        self,
        map: &mut Map<String, Value>,
        key: &str,
        change: &Value,
        changes: &Map<String, Value>,
    ) -> Result<(), Status> {
        if change.is_null() {
            map.shift_remove(key);
            return Ok(());
        }
        let old = map.get_mut(key).map(Value::take);
        let strategy = self.field(key).map(|field| &field.strategy).filter(|strategy| strategy.merge);
        let new = match (old, change, strategy) {
            (Some(Value::Object(old)), Value::Object(change), _) => {
                Value::Object(self.below(key).merge(old, change)?)
            }
            (None, Value::Object(change), _) => Value::Object(self.below(key).merge(Map::new(), change)?),
            (old, Value::Array(change), Some(strategy)) => {
                let old = match old {
                    Some(Value::Array(old)) => old,
                    _ => Vec::new(),
                };
                let order = self.order(key, changes)?;
                Value::Array(self.items(key).merge_list(old, change, strategy, order)?)
            }
            (_, Value::Array(items), None) => {
                Value::Array(items.iter().filter(|item| item.get(DIRECTIVE).is_none()).cloned().collect())
            }
            (_, other, _) => other.clone(),
        };
        map.insert(key.to_owned(), new);
        Ok(())
    }

    /// The list order that a patch requests.
    fn order<'c>(self, field: &str, changes: &'c Map<String, Value>) -> Result<Option<&'c [Value]>, Status> {
        let Some(order) = changes.get(&format!("{ORDER}{field}")) else { return Ok(None) };
        let Some(declared) = self.field(field) else {
            let name = self.cursor.schema().map(Schema::short_name).unwrap_or_default();
            return Err(refused(format!(
                "unable to find api field in struct {name} for the json field \"{field}\""
            )));
        };
        let Value::Array(order) = order else {
            return Err(refused(format!("expected a []interface {{}}, but received a {}", go::word(order))));
        };
        if let Some(key) = &declared.strategy.key {
            order.iter().try_for_each(|item| key_of(item, key).map(drop))?;
        }
        Ok(Some(order))
    }

    fn merge_list(
        self,
        old: Vec<Value>,
        changes: &[Value],
        strategy: &PatchStrategy,
        order: Option<&[Value]>,
    ) -> Result<Vec<Value>, Status> {
        let key = strategy.key.as_deref();
        let mut kinds = old.iter().chain(changes).map(|item| (go::word(item), item.is_object()));
        let first = kinds.next();
        if kinds.any(|kind| Some(kind) != first) || first.is_some_and(|(word, _)| word == "null") {
            return Err(refused(format!(
                "list element types are not identical: [{} {}]",
                go::print_list(&old),
                go::print_list(changes)
            )));
        }
        let before = old.clone();
        let merged = match key {
            Some(key) if first.is_some_and(|(_, is_map)| is_map) => {
                match self.merge_keyed(old, changes, key)? {
                    MergedList::Merged(merged) => merged,
                    MergedList::Replaced(items) => return Ok(items),
                }
            }
            _ => {
                let mut merged = old;
                for change in changes {
                    if !merged.contains(change) {
                        merged.push(change.clone());
                    }
                }
                merged
            }
        };
        if let Some(order) = order {
            order::check(changes, order, key)?;
        }
        Ok(order::arrange(merged, order.unwrap_or(changes), &before, key))
    }

    fn merge_keyed(self, mut merged: Vec<Value>, changes: &[Value], key: &str) -> Result<MergedList, Status> {
        let is_replaced = |change: &Value| change.get(DIRECTIVE).and_then(Value::as_str) == Some("replace");
        if changes.iter().any(is_replaced) {
            let items = changes.iter().filter(|change| change.get(DIRECTIVE).is_none());
            return Ok(MergedList::Replaced(items.cloned().collect()));
        }
        for change in changes {
            let Some(map) = change.as_object() else { continue };
            match map.get(DIRECTIVE) {
                None => {}
                Some(Value::String(word)) if word == "delete" => {
                    let name = key_of(change, key)?;
                    merged.retain(|item| item.get(key) != Some(name));
                    continue;
                }
                Some(Value::String(word)) if word == "merge" => {
                    return Err(refused("merging lists cannot yet be specified in the patch"));
                }
                Some(other) => return Err(unknown_directive(other, map)),
            }
            let name = key_of(change, key)?;
            match merged.iter_mut().find(|item| item.get(key) == Some(name)) {
                Some(found) => {
                    let old = found.as_object().cloned().unwrap_or_default();
                    *found = Value::Object(self.merge(old, map)?);
                }
                None => merged.push(Value::Object(self.merge(Map::new(), map)?)),
            }
        }
        Ok(MergedList::Merged(merged))
    }
}

/// The result of merging a list.
enum MergedList {
    Merged(Vec<Value>),
    Replaced(Vec<Value>),
}

/// `$retainKeys`: all other keys are removed, and the patch must not set others.
fn retain(map: &mut Map<String, Value>, changes: &Map<String, Value>) -> Result<(), Status> {
    let Some(kept) = changes.get(RETAIN) else { return Ok(()) };
    let is_kept = |key: &String| kept.as_array().is_some_and(|kept| kept.iter().any(|kept| kept == key));
    let mut named = changes.iter().filter(|(key, change)| !key.starts_with('$') && !change.is_null());
    if !kept.is_array() || !named.all(|(key, _)| is_kept(key)) {
        return Err(Status::bad_request("invalid patch format of retainKeys"));
    }
    map.retain(|key, _| is_kept(key));
    Ok(())
}

fn key_of<'v>(item: &'v Value, key: &str) -> Result<&'v Value, Status> {
    let found = item.get(key).filter(|value| !value.is_null());
    found.ok_or_else(|| {
        refused(format!("map: {} does not contain declared merge key: {key}", go::print(item)))
    })
}

fn unknown_directive(directive: &Value, map: &Map<String, Value>) -> Status {
    let word = match directive {
        Value::String(word) => word.clone(),
        Value::Number(number) if number.is_i64() => format!("%!s(int64={number})"),
        other => go::print(other),
    };
    let map = go::print(&Value::Object(map.clone()));
    refused(format!("unknown patch type: {word} in map: {map}"))
}

/// The API server reports an invalid patch as an internal error.
fn refused(message: impl Into<String>) -> Status {
    Status { code: 500, reason: "", ..Status::bad_request(message) }
}

/// A map without directives.
fn plain(changes: &Map<String, Value>) -> Map<String, Value> {
    changes.iter().filter(|(key, _)| !key.starts_with('$')).map(|(k, v)| (k.clone(), v.clone())).collect()
}
