//! The order of list items after a strategic merge patch.

use serde_json::Value;

use crate::schema::go;
use crate::status::Status;

/// Whether two items are the same, by key or by value.
pub(super) fn is_same(key: Option<&str>, one: &Value, other: &Value) -> bool {
    match key {
        Some(key) => one.get(key).is_some() && one.get(key) == other.get(key),
        None => one == other,
    }
}

/// Sorts the items that `order` names; the others keep their positions relative to their old neighbours.
pub(super) fn arrange(items: Vec<Value>, order: &[Value], before: &[Value], key: Option<&str>) -> Vec<Value> {
    let cursor = |list: &[Value], item: &Value| list.iter().position(|other| is_same(key, item, other));
    let (mut named, others): (Vec<Value>, Vec<Value>) =
        items.into_iter().partition(|item| cursor(order, item).is_some());
    named.sort_by_key(|item| cursor(order, item));
    let mut arranged = Vec::with_capacity(named.len() + others.len());
    let mut others = others.into_iter().peekable();
    for item in named {
        if let Some(at) = cursor(before, &item) {
            while let Some(other) =
                others.next_if(|other| cursor(before, other).is_some_and(|cursor| cursor < at))
            {
                arranged.push(other);
            }
        }
        arranged.push(item);
    }
    arranged.extend(others);
    arranged
}

/// Refuses changes that are not in the requested order.
pub(super) fn check(changes: &[Value], order: &[Value], key: Option<&str>) -> Result<(), Status> {
    let is_deleted = |change: &Value| change.get("$patch").is_some();
    let mut rest = order.iter();
    let kept: Vec<&Value> = changes.iter().filter(|change| !is_deleted(change)).collect();
    if kept.iter().all(|change| rest.any(|named| is_same(key, change, named))) {
        return Ok(());
    }
    let message = format!(
        "The order in patch list:\n{}\n doesn't match $setElementOrder list:\n{}\n",
        go::print_list(changes),
        go::print_list(order)
    );
    Err(Status { code: 500, reason: "", ..Status::bad_request(message) })
}
