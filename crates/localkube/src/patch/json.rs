//! JSON patch: a list of operations on paths, all of them or none.

use serde_json::Value;

use crate::status::Status;

/// More than any client sends; a guard against work without end.
const MOST_OPERATIONS: usize = 10_000;

pub(super) fn apply(object: &Value, patch: &Value) -> Result<Value, Status> {
    let operations =
        patch.as_array().ok_or_else(|| Status::bad_request("a JSON patch is a list of operations"))?;
    if operations.len() > MOST_OPERATIONS {
        let message = format!(
            "The allowed maximum operations in a JSON patch is {MOST_OPERATIONS}, got {}",
            operations.len()
        );
        return Err(Status { code: 413, reason: "RequestEntityTooLarge", ..Status::bad_request(message) });
    }
    let mut result = object.clone();
    for operation in operations {
        step(&mut result, operation)?;
    }
    Ok(result)
}

fn step(object: &mut Value, operation: &Value) -> Result<(), Status> {
    let text = |name: &str| {
        let found = operation.get(name).and_then(Value::as_str);
        found.ok_or_else(|| Status::bad_request(format!("an operation of a JSON patch needs `{name}`")))
    };
    let value = || {
        let found = operation.get("value").cloned();
        found.ok_or_else(|| Status::bad_request("this operation of a JSON patch needs `value`"))
    };
    let path = text("path")?;
    match text("op")? {
        "add" => add(object, path, value()?),
        "remove" => remove(object, path).map(drop),
        "replace" => {
            let place = object.pointer_mut(path).ok_or_else(|| missing("replace", path))?;
            *place = value()?;
            Ok(())
        }
        "move" => {
            let from = text("from")?;
            if path.strip_prefix(from).is_some_and(|rest| rest.starts_with('/')) {
                return Err(unprocessable(&format!("cannot move {from} into itself")));
            }
            let moved = remove(object, from)?;
            add(object, path, moved)
        }
        "copy" => {
            let from = text("from")?;
            let copied = object.pointer(from).cloned().ok_or_else(|| missing("copy", from))?;
            add(object, path, copied)
        }
        "test" => match object.pointer(path) {
            Some(found) if *found == value()? => Ok(()),
            _ => Err(unprocessable(&format!("testing value {path} failed"))),
        },
        other => Err(Status::bad_request(format!("unknown operation `{other}` in a JSON patch"))),
    }
}

fn add(object: &mut Value, path: &str, value: Value) -> Result<(), Status> {
    if path.is_empty() {
        *object = value;
        return Ok(());
    }
    let (parent, last) = parent(object, path, "add")?;
    match parent {
        Value::Object(map) => {
            map.insert(last, value);
            Ok(())
        }
        Value::Array(list) if last == "-" => {
            list.push(value);
            Ok(())
        }
        Value::Array(list) => match index(&last).filter(|index| *index <= list.len()) {
            Some(index) => {
                list.insert(index, value);
                Ok(())
            }
            None => Err(missing("add", path)),
        },
        _ => Err(missing("add", path)),
    }
}

fn remove(object: &mut Value, path: &str) -> Result<Value, Status> {
    let (parent, last) = parent(object, path, "remove")?;
    let removed = match parent {
        Value::Object(map) => map.shift_remove(&last),
        Value::Array(list) => {
            index(&last).filter(|index| *index < list.len()).map(|index| list.remove(index))
        }
        _ => None,
    };
    removed.ok_or_else(|| missing("remove", path))
}

/// The value that holds the end of a path, and that end unescaped.
fn parent<'a>(object: &'a mut Value, path: &str, doing: &str) -> Result<(&'a mut Value, String), Status> {
    let (before, last) = path.rsplit_once('/').ok_or_else(|| missing(doing, path))?;
    let parent = object.pointer_mut(before).ok_or_else(|| missing(doing, path))?;
    Ok((parent, last.replace("~1", "/").replace("~0", "~")))
}

/// An index as RFC 6901 writes it: digits without leading zeros.
fn index(text: &str) -> Option<usize> {
    let plain = text.bytes().all(|b| b.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
    if plain { text.parse().ok() } else { None }
}

fn missing(doing: &str, path: &str) -> Status {
    unprocessable(&format!("{doing} operation does not apply: doc is missing path: \"{path}\""))
}

fn unprocessable(why: &str) -> Status {
    Status {
        code: 422,
        reason: "Invalid",
        message: format!("the server rejected our request due to an error in our request: {why}"),
        about: None,
        causes: Vec::new(),
    }
}
