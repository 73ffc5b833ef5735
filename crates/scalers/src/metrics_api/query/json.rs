//! GJSON paths.
//!
//! `a.b.0.c`, `a\.b`, `names.#` (count), `names.#.first` (of each), `na*e`, `#(age>40).name` (first match)
//! and `#(age>40)#.name` (all matches). Modifiers (`@…`), literals (`!…`) and multipaths are not supported.

use std::borrow::Cow;

use serde_json::Value;

use crate::ParseError;
use crate::ScalerError;

/// One step of a path.
#[derive(Debug, PartialEq)]
enum Step {
    /// The member with this name, or the item with this index.
    Name(String),
    /// The first member whose name matches a pattern with `*` and `?`.
    Pattern(String),
    /// The number of items, or the rest of the path applied to each item.
    Each,
    /// The first item, or all items, that match a condition.
    Query { key: String, operator: &'static str, value: String, all: bool },
}

/// The value at a GJSON path, if it exists.
pub fn find<'a>(tree: &'a Value, path: &str) -> Result<Option<Cow<'a, Value>>, ScalerError> {
    let steps = steps(path).map_err(|why| scaler_error!("valueLocation {path:?}: {why}"))?;
    Ok(follow(tree, &steps))
}

/// The value at a plain path: names and indexes separated by dots.
pub fn walk<'a>(tree: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('.').try_fold(tree, |value, name| match value {
        Value::Object(members) => members.get(name),
        Value::Array(items) => items.get(name.parse::<usize>().ok()?),
        _ => None,
    })
}

fn follow<'a>(value: &'a Value, steps: &[Step]) -> Option<Cow<'a, Value>> {
    let Some((step, rest)) = steps.split_first() else { return Some(Cow::Borrowed(value)) };
    match (step, value) {
        (Step::Name(name), Value::Object(members)) => follow(members.get(name)?, rest),
        (Step::Name(name), Value::Array(items)) => follow(items.get(name.parse::<usize>().ok()?)?, rest),
        (Step::Pattern(pattern), Value::Object(members)) => {
            let (_, value) = members.iter().find(|(name, _)| fits(pattern.as_bytes(), name.as_bytes()))?;
            follow(value, rest)
        }
        (Step::Each, Value::Array(items)) if rest.is_empty() => Some(Cow::Owned(items.len().into())),
        (Step::Each, Value::Array(items)) => {
            let all = items.iter().filter_map(|item| follow(item, rest)).map(Cow::into_owned);
            Some(Cow::Owned(Value::Array(all.collect())))
        }
        (Step::Query { key, operator, value, all }, Value::Array(items)) => {
            let mut fitting = items.iter().filter(|item| {
                let inner = if key.is_empty() { Some(*item) } else { walk(item, key) };
                inner.is_some_and(|inner| compares(inner, operator, value))
            });
            if !all {
                return follow(fitting.next()?, rest);
            }
            match rest {
                [Step::Each] => Some(Cow::Owned(fitting.count().into())),
                _ => {
                    let found = fitting.filter_map(|item| follow(item, rest)).map(Cow::into_owned);
                    Some(Cow::Owned(Value::Array(found.collect())))
                }
            }
        }
        _ => None,
    }
}

/// Whether a name matches a pattern with `*` (any text) and `?` (any character).
fn fits(pattern: &[u8], name: &[u8]) -> bool {
    // Backtracks only to the last star, so the cost is at most the product of both lengths.
    let (mut p, mut n, mut star) = (0, 0, None);
    while n < name.len() {
        match pattern.get(p) {
            Some(b'*') => {
                star = Some((p, n));
                p += 1;
            }
            Some(wanted) if *wanted == b'?' || Some(wanted) == name.get(n) => {
                p += 1;
                n += 1;
            }
            _ => {
                let Some((at, from)) = star else { return false };
                star = Some((at, from + 1));
                p = at + 1;
                n = from + 1;
            }
        }
    }
    pattern.get(p..).unwrap_or_default().iter().all(|byte| *byte == b'*')
}

fn compares(found: &Value, operator: &str, wanted: &str) -> bool {
    if operator.is_empty() {
        return true;
    }
    let order = match found {
        Value::Number(number) => {
            let (Some(number), Ok(wanted)) = (number.as_f64(), wanted.parse::<f64>()) else { return false };
            number.partial_cmp(&wanted)
        }
        Value::String(text) => {
            if operator == "%" || operator == "!%" {
                return fits(wanted.as_bytes(), text.as_bytes()) == (operator == "%");
            }
            Some(text.as_str().cmp(wanted))
        }
        Value::Bool(truth) => Some(truth.to_string().as_str().cmp(wanted)),
        _ => None,
    };
    let Some(order) = order else { return false };
    match operator {
        "=" | "==" => order.is_eq(),
        "!=" => order.is_ne(),
        "<" => order.is_lt(),
        "<=" => order.is_le(),
        ">" => order.is_gt(),
        ">=" => order.is_ge(),
        _ => false,
    }
}

fn steps(path: &str) -> Result<Vec<Step>, ParseError> {
    let mut steps = Vec::new();
    let mut rest = path;
    loop {
        if rest.starts_with(['@', '!', '[', '{']) {
            return Err("modifiers, literals and several paths at once are not supported".into());
        }
        if let Some(inner) = rest.strip_prefix("#(") {
            let end = closing(inner).ok_or("a query has no end")?;
            let (query, after) = inner.split_at_checked(end).ok_or("a query has no end")?;
            let after = after.strip_prefix(')').unwrap_or(after);
            let (all, after) = match after.strip_prefix('#') {
                Some(after) => (true, after),
                None => (false, after),
            };
            steps.push(self::query(query, all)?);
            match after.strip_prefix('.') {
                Some(after) => rest = after,
                None if after.is_empty() => return Ok(steps),
                None => return Err(format!("{after:?} after a query makes no sense").into()),
            }
            continue;
        }
        let (step, after) = plain(rest);
        steps.push(step);
        match after {
            Some(after) => rest = after,
            None => return Ok(steps),
        }
    }
}

/// One name, up to the next unescaped dot.
fn plain(text: &str) -> (Step, Option<&str>) {
    let (mut name, mut pattern, mut escape) = (String::new(), false, false);
    for (at, c) in text.char_indices() {
        match c {
            _ if escape => {
                escape = false;
                name.push(c);
            }
            '\\' => escape = true,
            '.' | '|' => {
                let after = text.get(at + 1..);
                return (step(name, pattern), after);
            }
            _ => {
                pattern |= c == '*' || c == '?';
                name.push(c);
            }
        }
    }
    (step(name, pattern), None)
}

fn step(name: String, pattern: bool) -> Step {
    match pattern {
        true => Step::Pattern(name),
        false if name == "#" => Step::Each,
        false => Step::Name(name),
    }
}

/// The position of the bracket that closes the first one.
fn closing(text: &str) -> Option<usize> {
    let (mut depth, mut quoted, mut escape) = (0_usize, false, false);
    for (at, c) in text.char_indices() {
        match c {
            _ if escape => escape = false,
            '\\' => escape = true,
            '"' => quoted = !quoted,
            '(' if !quoted => depth += 1,
            ')' if !quoted && depth == 0 => return Some(at),
            ')' if !quoted => depth -= 1,
            _ => {}
        }
    }
    None
}

/// Operators, longer ones first.
const OPERATORS: [&str; 9] = ["==", "!=", "<=", ">=", "!%", "=", "<", ">", "%"];

fn query(text: &str, all: bool) -> Result<Step, ParseError> {
    if text.contains("#(") {
        return Err("a query within a query is not supported".into());
    }
    let at = text.char_indices().find_map(|(at, _)| {
        let here = text.get(at..)?;
        OPERATORS.iter().find(|operator| here.starts_with(**operator)).map(|operator| (at, *operator))
    });
    let Some((at, operator)) = at else {
        return Ok(Step::Query { key: text.trim().to_owned(), operator: "", value: String::new(), all });
    };
    let (key, after) = text.split_at_checked(at).unwrap_or((text, ""));
    let value = after.get(operator.len()..).unwrap_or_default().trim();
    let value = value.strip_prefix('"').and_then(|inner| inner.strip_suffix('"')).unwrap_or(value);
    Ok(Step::Query { key: key.trim().to_owned(), operator, value: value.to_owned(), all })
}
