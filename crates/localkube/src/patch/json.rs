//! JSON patch: a list of operations, applied completely or not at all.
//!
//! Kubernetes is more lenient than the RFC: a missing `value` is `null`, a missing path may be replaced or copied as
//! `null`, and negative indexes count from the end.

use serde_json::Value;

use crate::schema::go;
use crate::status::{About, Status};

/// The maximum number of operations.
const MAX_OPERATIONS: usize = 10_000;

/// The maximum size of all copies of one patch, as JSON (`JSONPatchMaxCopyBytes` of kube-apiserver). Each copy of an object into
/// itself doubles it, so that a short patch could fill the memory.
const MAX_COPIED_BYTES: usize = 3 << 20;

/// An operation failed; the API does not report the cause.
struct OperationRefused;

pub(super) fn apply(object: &Value, patch: &Value) -> Result<Value, Status> {
    let operations = match patch {
        Value::Null => &[][..],
        Value::Array(operations) => operations,
        other => return Err(undecodable(other, "[]handlers.jsonPatchOp")),
    };
    if let Some(wrong) = operations.iter().find(|each| !each.is_object() && !each.is_null()) {
        return Err(undecodable(wrong, "handlers.jsonPatchOp"));
    }
    if operations.len() > MAX_OPERATIONS {
        let message = format!(
            "The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {}",
            operations.len()
        );
        return Err(Status { code: 413, reason: "RequestEntityTooLarge", ..Status::bad_request(message) });
    }
    let mut result = object.clone();
    let mut copied = 0;
    let applied = operations.iter().try_for_each(|operation| step(&mut result, operation, &mut copied));
    applied.map_err(|OperationRefused| Status {
        code: 422,
        reason: "Invalid",
        about: Some(Box::new(About::default())),
        ..Status::bad_request("the server rejected our request due to an error in our request")
    })?;
    Ok(result)
}

fn undecodable(found: &Value, expected: &str) -> Status {
    let found = go::word(found);
    Status::bad_request(format!(
        "error decoding patch: json: cannot unmarshal {found} into Go value of type {expected}"
    ))
}

fn step(object: &mut Value, operation: &Value, copied_bytes: &mut usize) -> Result<(), OperationRefused> {
    let text = |name: &str| operation.get(name).and_then(Value::as_str).ok_or(OperationRefused);
    let value = || operation.get("value").cloned().unwrap_or_default();
    let path = text("path")?;
    match text("op")? {
        "add" => add(object, path, value()),
        "remove" => remove(object, path).map(drop),
        "replace" if path.is_empty() => {
            *object = value();
            Ok(())
        }
        "replace" => replace(object, path, value()),
        "move" => {
            let moved = remove(object, text("from")?)?;
            add(object, path, moved)
        }
        "copy" => {
            let from = text("from")?;
            *copied_bytes = copied_bytes.saturating_add(size(lookup(object, from)?));
            if *copied_bytes > MAX_COPIED_BYTES {
                return Err(OperationRefused);
            }
            let copied = lookup(object, from)?.cloned().unwrap_or_default();
            add(object, path, copied)
        }
        "test" => {
            if find(object, path)? == value() {
                Ok(())
            } else {
                Err(OperationRefused)
            }
        }
        _ => Err(OperationRefused),
    }
}

fn add(object: &mut Value, path: &str, value: Value) -> Result<(), OperationRefused> {
    let (parent, last) = parent(object, path)?;
    match parent {
        Value::Object(map) => {
            map.insert(last, value);
        }
        Value::Array(list) => {
            let end = list.len();
            let index = if last == "-" { end } else { index(&last, end + 1).ok_or(OperationRefused)? };
            list.insert(index, value);
        }
        _ => return Err(OperationRefused),
    }
    Ok(())
}

fn remove(object: &mut Value, path: &str) -> Result<Value, OperationRefused> {
    let (parent, last) = parent(object, path)?;
    let removed = match parent {
        Value::Object(map) => map.shift_remove(&last),
        Value::Array(list) => index(&last, list.len()).map(|index| list.remove(index)),
        _ => None,
    };
    removed.ok_or(OperationRefused)
}

fn replace(object: &mut Value, path: &str, value: Value) -> Result<(), OperationRefused> {
    let (parent, last) = parent(object, path)?;
    match parent {
        Value::Object(map) => {
            map.insert(last, value);
        }
        Value::Array(list) => {
            let cursor = index(&last, list.len()).and_then(|index| list.get_mut(index));
            *cursor.ok_or(OperationRefused)? = value;
        }
        _ => return Err(OperationRefused),
    }
    Ok(())
}

/// A copy of the value at a path; `null` for a missing map key.
fn find(object: &mut Value, path: &str) -> Result<Value, OperationRefused> {
    if path.is_empty() {
        return Ok(object.clone());
    }
    lookup(object, path).map(|found| found.cloned().unwrap_or_default())
}

/// The value at a path below the root; none for a missing map key.
fn lookup<'a>(object: &'a mut Value, path: &str) -> Result<Option<&'a Value>, OperationRefused> {
    let (parent, last) = parent(object, path)?;
    match parent {
        Value::Object(map) => Ok(map.get(&last)),
        Value::Array(list) => {
            let found = index(&last, list.len()).and_then(|index| list.get(index));
            found.map(Some).ok_or(OperationRefused)
        }
        _ => Err(OperationRefused),
    }
}

/// The length of a value as JSON; a missing one has none.
fn size(value: Option<&Value>) -> usize {
    struct Count(usize);
    impl std::io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    if let Some(value) = value {
        // Neither the value nor the counter can fail.
        let _ = serde_json::to_writer(&mut count, value);
    }
    count.0
}

/// The parent of the value at a path, and the unescaped last step.
fn parent<'a>(object: &'a mut Value, path: &str) -> Result<(&'a mut Value, String), OperationRefused> {
    let mut steps = path.strip_prefix('/').ok_or(OperationRefused)?.split('/').map(unescape);
    let mut last = steps.next().ok_or(OperationRefused)?;
    let mut parent = object;
    for next in steps {
        parent = match parent {
            Value::Object(map) => map.get_mut(&last).ok_or(OperationRefused)?,
            Value::Array(list) => {
                let index = index(&last, list.len()).ok_or(OperationRefused)?;
                list.get_mut(index).ok_or(OperationRefused)?
            }
            _ => return Err(OperationRefused),
        };
        last = next;
    }
    Ok((parent, last))
}

fn unescape(step: &str) -> String {
    step.replace("~1", "/").replace("~0", "~")
}

/// An index into a list; negative ones count from the end.
fn index(text: &str, length: usize) -> Option<usize> {
    let index: i64 = text.parse().ok()?;
    let length = i64::try_from(length).ok()?;
    let index = if index < 0 { index + length } else { index };
    (0..length).contains(&index).then(|| usize::try_from(index).ok()).flatten()
}
