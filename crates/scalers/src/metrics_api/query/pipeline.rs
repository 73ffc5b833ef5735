//! GJSON paths with several stages: `list.#.n|0`, `list|@reverse|0.n`, `[first.list,second.list]|@flatten|#`.
//!
//! Each stage applies to the whole value that the stage before found. Values are moved from stage to stage, and several paths at
//! once borrow their value, so that only what they find is copied. Copies are bounded, because stages can double a value.

#[cfg(test)]
mod tests;

use serde::de::DeserializeSeed as _;
use serde_json::{Map, Value};

use super::follow::follow;
use super::json::{Step, TooMuchWork, WorkBudget, modifier_name, starts_stage, steps};
use crate::ParseError;
use crate::tree::{BoundedTree, TreeBudget, TreeTooLarge};

/// Maximum length of a path, in bytes.
const MAX_PATH_BYTES: usize = 16 << 10;
/// Maximum number of stages of a path, also of those in brackets.
const MAX_STAGES: usize = 64;
/// How deeply several paths at once may be nested.
const MAX_DEPTH: usize = 8;

/// One stage of a path.
#[derive(Debug, PartialEq)]
pub(super) enum Stage {
    Steps(Vec<Step>),
    /// `@this`, and modifiers that only change white space.
    Same,
    Reverse,
    Flatten {
        deep: bool,
    },
    Join,
    Keys,
    Values,
    /// `@tostr`: the value as a text of JSON.
    ToText,
    /// `@fromstr`: the JSON in a text.
    FromText,
    Group,
    /// `[path,path]`
    List(Vec<Vec<Stage>>),
    /// `{path,"name":path}`
    Object(Vec<(String, Vec<Stage>)>),
}

/// Why a path could not be followed to its end.
#[derive(Debug, thiserror::Error)]
pub(super) enum StageError {
    #[error(transparent)]
    Work(#[from] TooMuchWork),
    #[error(transparent)]
    TooLarge(#[from] TreeTooLarge),
}

/// The stages of a path.
pub(super) fn stages(path: &str) -> Result<Vec<Stage>, ParseError> {
    if path.len() > MAX_PATH_BYTES {
        return Err(format!("it has more than {MAX_PATH_BYTES} bytes").into());
    }
    parse(path, 0, &mut 0)
}

fn parse(path: &str, depth: usize, count: &mut usize) -> Result<Vec<Stage>, ParseError> {
    let mut stages = Vec::new();
    let mut rest = path;
    loop {
        *count += 1;
        if *count > MAX_STAGES {
            return Err(format!("it has more than {MAX_STAGES} stages").into());
        }
        if !starts_stage(rest) {
            let (steps, after) = steps(rest)?;
            stages.push(Stage::Steps(steps));
            match after {
                Some(after) => rest = after,
                None => return Ok(stages),
            }
            continue;
        }
        let (stage, after) = match rest.chars().next() {
            Some('@') => modifier(rest)?,
            Some('[' | '{') => several(rest, depth, count)?,
            _ => return Err("literals are not supported".into()),
        };
        stages.push(stage);
        match after.strip_prefix(['.', '|']) {
            Some(after) => rest = after,
            None if after.is_empty() => return Ok(stages),
            None => return Err(format!("a dot or | is missing before {after:?}").into()),
        }
    }
}

/// A modifier with its argument, and what follows it.
fn modifier(text: &str) -> Result<(Stage, &str), ParseError> {
    let name = modifier_name(text);
    let after = text.get(name.len()..).unwrap_or_default();
    let (argument, after) = match after.strip_prefix(':') {
        Some(given) => argument(given)?,
        None => (Value::Null, after),
    };
    let is_set = |option: &str| argument.get(option) == Some(&Value::Bool(true));
    let stage = match name {
        "@reverse" => Stage::Reverse,
        "@flatten" => Stage::Flatten { deep: is_set("deep") },
        "@join" if is_set("preserve") => return Err("the argument preserve of @join is not supported".into()),
        "@join" => Stage::Join,
        "@keys" => Stage::Keys,
        "@values" => Stage::Values,
        "@tostr" => Stage::ToText,
        "@fromstr" => Stage::FromText,
        "@group" => Stage::Group,
        "@this" | "@ugly" | "@pretty" | "@valid" => Stage::Same,
        other => return Err(format!("the modifier {other} is not supported").into()),
    };
    Ok((stage, after))
}

/// The argument of a modifier, JSON or the text before the next pipe, and what follows it.
fn argument(given: &str) -> Result<(Value, &str), ParseError> {
    if given.starts_with(['{', '[', '"']) {
        let mut values = serde_json::Deserializer::from_str(given).into_iter::<Value>();
        let Some(Ok(value)) = values.next() else {
            return Err("the argument of a modifier is no JSON".into());
        };
        return Ok((value, given.get(values.byte_offset()..).unwrap_or_default()));
    }
    let end = given.find('|').unwrap_or(given.len());
    let (text, after) = given.split_at_checked(end).unwrap_or((given, ""));
    Ok((text.into(), after))
}

/// Several paths in brackets, and what follows them.
fn several<'a>(text: &'a str, depth: usize, count: &mut usize) -> Result<(Stage, &'a str), ParseError> {
    if depth >= MAX_DEPTH {
        return Err(format!("brackets are nested more than {MAX_DEPTH} times").into());
    }
    let (parts, after) = parts(text).ok_or("a bracket is not closed")?;
    let mut paths = Vec::new();
    for part in parts {
        let (name, path) = named(part)?;
        let stages = parse(path, depth + 1, count)?;
        let last = match stages.last() {
            Some(Stage::Steps(steps)) => steps.last(),
            _ => None,
        };
        let name = match (name, last) {
            (Some(name), _) => name,
            (None, Some(Step::Name(name))) => name.clone(),
            (None, _) => "_".to_owned(),
        };
        paths.push((name, stages));
    }
    let stage = if text.starts_with('{') {
        Stage::Object(paths)
    } else {
        Stage::List(paths.into_iter().map(|(_, stages)| stages).collect())
    };
    Ok((stage, after))
}

/// The parts between the commas of a bracket, and what follows it.
fn parts(text: &str) -> Option<(Vec<&str>, &str)> {
    let (mut depth, mut quoted, mut escape, mut start) = (0_usize, false, false, 1);
    let mut parts = Vec::new();
    for (at, c) in text.char_indices() {
        match c {
            _ if escape => escape = false,
            '\\' => escape = true,
            '"' => quoted = !quoted,
            _ if quoted => {}
            '[' | '{' | '(' => depth += 1,
            ',' if depth == 1 => {
                parts.push(text.get(start..at)?);
                start = at + 1;
            }
            ']' | '}' | ')' => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    let last = text.get(start..at)?;
                    if !(parts.is_empty() && last.trim().is_empty()) {
                        parts.push(last);
                    }
                    return Some((parts, text.get(at + 1..)?));
                }
            }
            _ => {}
        }
    }
    None
}

/// The name before a path, if there is one.
fn named(part: &str) -> Result<(Option<String>, &str), ParseError> {
    let part = part.trim();
    if !part.starts_with('"') {
        return Ok((None, part));
    }
    let mut texts = serde_json::Deserializer::from_str(part).into_iter::<String>();
    let Some(Ok(name)) = texts.next() else { return Err("a name before a path is no text of JSON".into()) };
    let after = part.get(texts.byte_offset()..).unwrap_or_default();
    let path = after.strip_prefix(':').ok_or("a name has no path: write \"name\":path")?;
    Ok((Some(name), path))
}

/// What all stages find, one after the other.
pub(super) fn apply(
    mut value: Value,
    stages: &[Stage],
    work: &WorkBudget,
    memory: &TreeBudget,
) -> Result<Option<Value>, StageError> {
    for stage in stages {
        match stage.apply(value, work, memory)? {
            Some(found) => value = found,
            None => return Ok(None),
        }
    }
    Ok(Some(value))
}

/// The same for a value that other paths need too.
fn apply_to(
    value: &Value,
    stages: &[Stage],
    work: &WorkBudget,
    memory: &TreeBudget,
) -> Result<Option<Value>, StageError> {
    let (found, rest) = match stages {
        [Stage::Same, rest @ ..] => return apply_to(value, rest, work, memory),
        [Stage::Steps(steps), rest @ ..] => {
            let found = follow(value, steps, work)?;
            found.iter().try_for_each(|found| charge(found, memory))?;
            (found, rest)
        }
        [Stage::List(paths), rest @ ..] => (Some(list(value, paths, work, memory)?), rest),
        [Stage::Object(paths), rest @ ..] => (Some(object(value, paths, work, memory)?), rest),
        rest => (Some(copied(value, memory)?), rest),
    };
    found.map_or(Ok(None), |found| apply(found, rest, work, memory))
}

/// A list of what several paths find.
fn list(
    value: &Value,
    paths: &[Vec<Stage>],
    work: &WorkBudget,
    memory: &TreeBudget,
) -> Result<Value, StageError> {
    let mut items = Vec::new();
    for path in paths {
        items.extend(apply_to(value, path, work, memory)?);
    }
    Ok(Value::Array(items))
}

/// An object of what several paths find.
fn object(
    value: &Value,
    paths: &[(String, Vec<Stage>)],
    work: &WorkBudget,
    memory: &TreeBudget,
) -> Result<Value, StageError> {
    let mut members = Map::new();
    for (name, path) in paths {
        if let Some(found) = apply_to(value, path, work, memory)? {
            memory.member(name.len())?;
            members.insert(name.clone(), found);
        }
    }
    Ok(Value::Object(members))
}

impl Stage {
    fn apply(
        &self,
        value: Value,
        work: &WorkBudget,
        memory: &TreeBudget,
    ) -> Result<Option<Value>, StageError> {
        Ok(Some(match (self, value) {
            (Self::Steps(steps), value) => return Ok(follow(value, steps, work)?),
            (Self::Reverse, Value::Array(items)) => Value::Array(items.into_iter().rev().collect()),
            (Self::Reverse, Value::Object(members)) => Value::Object(members.into_iter().rev().collect()),
            (Self::Flatten { deep }, Value::Array(items)) => {
                let mut flat = Vec::new();
                flatten(items, *deep, &mut flat);
                Value::Array(flat)
            }
            (Self::Join, Value::Array(items)) => Value::Object(joined(items)),
            (Self::Keys, Value::Object(members)) => {
                Value::Array(members.into_iter().map(|(name, _)| Value::String(name)).collect())
            }
            (Self::Keys, Value::Array(items)) => Value::Array(items.iter().map(|_| Value::Null).collect()),
            (Self::Keys, _) => Value::Array(vec![Value::Null]),
            (Self::Values, Value::Object(members)) => {
                Value::Array(members.into_iter().map(|(_, value)| value).collect())
            }
            (Self::Values, Value::Array(items)) => Value::Array(items),
            (Self::Values, other) => Value::Array(vec![other]),
            (Self::ToText, value) => {
                let text = value.to_string();
                memory.item(text.len())?;
                Value::String(text)
            }
            (Self::FromText, Value::String(text)) => return from_text(&text, memory),
            (Self::Group, Value::Object(members)) => Value::Array(grouped(members, memory)?),
            (Self::FromText, Value::Null) | (Self::Group, _) => return Ok(None),
            (Self::Same | Self::Reverse | Self::Flatten { .. } | Self::Join | Self::FromText, other) => other,
            (Self::List(paths), value) => list(&value, paths, work, memory)?,
            (Self::Object(paths), value) => object(&value, paths, work, memory)?,
        }))
    }
}

/// A copy, whose memory counts.
fn copied(value: &Value, memory: &TreeBudget) -> Result<Value, TreeTooLarge> {
    charge(value, memory)?;
    Ok(value.clone())
}

fn charge(value: &Value, memory: &TreeBudget) -> Result<(), TreeTooLarge> {
    match value {
        Value::String(text) => memory.item(text.len()),
        Value::Array(items) => {
            memory.item(0)?;
            items.iter().try_for_each(|item| charge(item, memory))
        }
        Value::Object(members) => {
            memory.item(0)?;
            members.iter().try_for_each(|(name, value)| {
                memory.member(name.len())?;
                charge(value, memory)
            })
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => memory.item(0),
    }
}

fn flatten(items: Vec<Value>, deep: bool, flat: &mut Vec<Value>) {
    for item in items {
        match item {
            Value::Array(inner) if deep => flatten(inner, deep, flat),
            Value::Array(inner) => flat.extend(inner),
            other => flat.push(other),
        }
    }
}

/// The members of all objects of a list; the last of equal names counts.
fn joined(items: Vec<Value>) -> Map<String, Value> {
    let mut all = Map::new();
    for item in items {
        if let Value::Object(members) = item {
            all.extend(members);
        }
    }
    all
}

/// The JSON in a text; nothing if it is none.
fn from_text(text: &str, memory: &TreeBudget) -> Result<Option<Value>, StageError> {
    let mut json = serde_json::Deserializer::from_str(text);
    match BoundedTree(memory).deserialize(&mut json) {
        Ok(value) => Ok(json.end().ok().map(|()| value)),
        Err(_) if memory.is_exhausted() => Err(TreeTooLarge.into()),
        Err(_) => Ok(None),
    }
}

/// `{"a":[1,2],"b":[3,4]}` as `[{"a":1,"b":3},{"a":2,"b":4}]`.
fn grouped(members: Map<String, Value>, memory: &TreeBudget) -> Result<Vec<Value>, TreeTooLarge> {
    let mut rows: Vec<Map<String, Value>> = Vec::new();
    for (name, value) in members {
        let Value::Array(items) = value else { continue };
        for (at, item) in items.into_iter().enumerate() {
            memory.member(name.len())?;
            if rows.len() == at {
                rows.push(Map::new());
            }
            if let Some(row) = rows.get_mut(at) {
                row.insert(name.clone(), item);
            }
        }
    }
    Ok(rows.into_iter().map(Value::Object).collect())
}
