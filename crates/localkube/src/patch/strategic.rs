//! Strategic merge patch: as merge patch, but lists whose items have a key are merged item by item.

use serde_json::{Map, Value};

use crate::status::Status;

/// How deep objects may be nested.
const DEEPEST: usize = 100;

/// How a list is merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum List {
    /// Items with the same value of this field are the same item.
    Keyed(&'static str),
    /// A set of plain values.
    Set,
    /// The patch's list replaces the other.
    Atomic,
}

/// The lists of built-in kinds that are merged, by the field that holds them and, where one name means several things,
/// the field above it.
const LISTS: &[(&str, &str, List)] = &[
    ("", "containers", List::Keyed("name")),
    ("", "initContainers", List::Keyed("name")),
    ("", "ephemeralContainers", List::Keyed("name")),
    ("", "volumes", List::Keyed("name")),
    ("", "env", List::Keyed("name")),
    ("", "volumeMounts", List::Keyed("mountPath")),
    ("", "volumeDevices", List::Keyed("devicePath")),
    ("", "imagePullSecrets", List::Keyed("name")),
    ("", "hostAliases", List::Keyed("ip")),
    ("", "topologySpreadConstraints", List::Keyed("topologyKey")),
    ("", "conditions", List::Keyed("type")),
    ("", "ownerReferences", List::Keyed("uid")),
    ("", "finalizers", List::Set),
    ("", "secrets", List::Keyed("name")),
    ("", "taints", List::Keyed("key")),
    ("status", "addresses", List::Keyed("type")),
    ("containers", "ports", List::Keyed("containerPort")),
    ("initContainers", "ports", List::Keyed("containerPort")),
    ("ephemeralContainers", "ports", List::Keyed("containerPort")),
    ("spec", "ports", List::Keyed("port")),
    ("spec", "podCIDRs", List::Set),
];

pub(super) fn apply(object: &Value, patch: &Value) -> Result<Value, Status> {
    let Value::Object(changes) = patch else {
        return Err(Status::bad_request("a strategic merge patch is an object"));
    };
    match object.clone() {
        Value::Object(map) => merge(map, changes, "", 0).map(Value::Object),
        _ => merge(Map::new(), changes, "", 0).map(Value::Object),
    }
}

fn list_of(above: &str, field: &str) -> List {
    let found =
        LISTS.iter().find(|(parent, name, _)| *name == field && (parent.is_empty() || *parent == above));
    found.map_or(List::Atomic, |(_, _, list)| *list)
}

fn merge(
    mut map: Map<String, Value>,
    changes: &Map<String, Value>,
    above: &str,
    depth: usize,
) -> Result<Map<String, Value>, Status> {
    if depth > DEEPEST {
        return Err(Status::bad_request("the patch is nested too deeply"));
    }
    match changes.get("$patch").and_then(Value::as_str) {
        Some("replace") => return Ok(plain(changes)),
        Some("delete") => return Ok(Map::new()),
        Some("merge") | None => {}
        Some(other) => return Err(Status::bad_request(format!("unknown patch directive `{other}`"))),
    }
    if let Some(kept) = changes.get("$retainKeys").and_then(Value::as_array) {
        map.retain(|key, _| kept.iter().any(|k| k == key));
    }
    for (key, change) in changes {
        if key.starts_with('$') {
            continue;
        }
        if change.is_null() {
            map.shift_remove(key);
            continue;
        }
        let old = map.get_mut(key).map(Value::take);
        let new = match (old, change) {
            (Some(Value::Object(old)), Value::Object(change)) => {
                Value::Object(merge(old, change, key, depth + 1)?)
            }
            (_, Value::Object(change)) => Value::Object(merge(Map::new(), change, key, depth + 1)?),
            (Some(Value::Array(old)), Value::Array(change)) => {
                Value::Array(merge_list(old, change, list_of(above, key), key, depth)?)
            }
            (_, Value::Array(change)) => {
                Value::Array(merge_list(Vec::new(), change, list_of(above, key), key, depth)?)
            }
            (_, other) => other.clone(),
        };
        map.insert(key.clone(), new);
    }
    directives(&mut map, changes, above);
    Ok(map)
}

/// `$deleteFromPrimitiveList/x` and `$setElementOrder/x`.
fn directives(map: &mut Map<String, Value>, changes: &Map<String, Value>, above: &str) {
    for (key, given) in changes {
        let Some(given) = given.as_array() else { continue };
        if let Some(field) = key.strip_prefix("$deleteFromPrimitiveList/") {
            if let Some(Value::Array(list)) = map.get_mut(field) {
                list.retain(|item| !given.contains(item));
            }
        } else if let Some(field) = key.strip_prefix("$setElementOrder/") {
            let list = list_of(above, field);
            if let Some(Value::Array(items)) = map.get_mut(field) {
                reorder(items, given, list);
            }
        }
    }
}

fn merge_list(
    old: Vec<Value>,
    changes: &[Value],
    list: List,
    field: &str,
    depth: usize,
) -> Result<Vec<Value>, Status> {
    let replaces = changes.iter().any(|c| c.get("$patch").and_then(Value::as_str) == Some("replace"));
    let items = || changes.iter().filter(|c| c.get("$patch").is_none());
    match list {
        List::Atomic => Ok(items().cloned().collect()),
        _ if replaces => Ok(items().cloned().collect()),
        List::Set => {
            let mut merged = old;
            for change in changes {
                if !merged.contains(change) {
                    merged.push(change.clone());
                }
            }
            Ok(merged)
        }
        List::Keyed(name) => merge_keyed(old, changes, name, field, depth),
    }
}

fn merge_keyed(
    mut merged: Vec<Value>,
    changes: &[Value],
    name: &str,
    field: &str,
    depth: usize,
) -> Result<Vec<Value>, Status> {
    for change in changes {
        let Some(key) = change.get(name).filter(|key| !key.is_null()) else {
            return Err(Status::bad_request(format!(
                "map: {change} does not contain declared merge key: {name}"
            )));
        };
        let Some(map) = change.as_object() else { continue };
        if map.get("$patch").and_then(Value::as_str) == Some("delete") {
            merged.retain(|item| item.get(name) != Some(key));
            continue;
        }
        match merged.iter_mut().find(|item| item.get(name) == Some(key)) {
            Some(found) => {
                let old = found.as_object().cloned().unwrap_or_default();
                *found = Value::Object(merge(old, map, field, depth + 1)?);
            }
            None => merged.push(Value::Object(merge(Map::new(), map, field, depth + 1)?)),
        }
    }
    Ok(merged)
}

/// Puts items in the order given; those it does not name keep their places among each other, after them.
fn reorder(items: &mut [Value], order: &[Value], list: List) {
    let place = |item: &Value| {
        let same = |given: &Value| match list {
            List::Keyed(name) => given.get(name) == item.get(name),
            List::Set | List::Atomic => given == item,
        };
        order.iter().position(same).unwrap_or(order.len())
    };
    items.sort_by_key(place);
}

/// A map without directives.
fn plain(changes: &Map<String, Value>) -> Map<String, Value> {
    changes.iter().filter(|(key, _)| !key.starts_with('$')).map(|(k, v)| (k.clone(), v.clone())).collect()
}
