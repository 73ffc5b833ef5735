//! GJSON paths.
//!
//! `a.b.0.c`, `a\.b`, `names.#` (count), `names.#.first` (of each), `na*e`, `#(age>40).name` (first match)
//! and `#(age>40)#.name` (all matches). `pipeline` adds pipes, modifiers (`@…`) and several paths at once; literals
//! (`!…`) and queries within queries are not supported.

use std::cell::Cell;

use serde_json::Value;

use crate::ParseError;

/// Steps of comparisons with patterns that each byte of a response may cost. A pattern such as `*a*b` needs one or two.
const COMPARISON_STEPS_PER_BYTE: u64 = 64;
/// Steps of comparisons that a short response may cost.
const MIN_COMPARISON_STEPS: u64 = 1 << 16;
/// Steps of comparisons that any response may cost, because two workers decode the large responses of all tenants. Of the largest
/// response, 8 MiB, each byte may cost eight.
const MAX_COMPARISON_STEPS: u64 = 64 << 20;

/// Modifiers. Another name after `@` is that of a member.
const MODIFIERS: [&str; 13] = [
    "@dig", "@flatten", "@fromstr", "@group", "@join", "@keys", "@pretty", "@reverse", "@this", "@tostr",
    "@ugly", "@valid", "@values",
];

/// The comparisons that one read may still make.
#[derive(Debug)]
pub(super) struct WorkBudget(Cell<u64>);

/// Comparisons with the patterns of a path took too many steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("comparing its patterns with the answer takes too long")]
pub struct TooMuchWork;

impl WorkBudget {
    /// The budget for a response of this size.
    pub(super) fn new(bytes: usize) -> Self {
        Self(Cell::new(
            (bytes as u64)
                .saturating_mul(COMPARISON_STEPS_PER_BYTE)
                .clamp(MIN_COMPARISON_STEPS, MAX_COMPARISON_STEPS),
        ))
    }

    pub(super) fn spend(&self, steps: u64) -> Result<(), TooMuchWork> {
        let left = self.0.get().checked_sub(steps);
        // An exhausted budget stays exhausted, whatever is requested next.
        self.0.set(left.unwrap_or(0));
        left.map(|_| ()).ok_or(TooMuchWork)
    }

    pub(super) fn is_exhausted(&self) -> bool {
        self.0.get() == 0
    }
}

/// One step of a path.
#[derive(Debug, PartialEq)]
pub(super) enum Step {
    /// The member with this name, or the item with this index.
    Name(String),
    /// The first member whose name matches a pattern with `*` and `?`.
    Pattern(String),
    /// The number of items, or the rest of the path applied to each item.
    Each,
    /// The first item, or all items, that match a condition.
    Query(ItemCondition),
}

/// A condition for items.
#[derive(Debug, PartialEq)]
pub(super) struct ItemCondition {
    key: String,
    operator: &'static str,
    value: String,
    /// The value as a number, if it is one.
    number: Option<f64>,
    /// Whether all matching items are meant, not the first one.
    pub(super) all: bool,
}

impl ItemCondition {
    /// Whether an item matches.
    pub(super) fn matches(&self, item: &Value, work: &WorkBudget) -> Result<bool, TooMuchWork> {
        // The look-up of a long key costs its length.
        work.spend(1 + self.key.len() as u64 / 16)?;
        let inner = if self.key.is_empty() { Some(item) } else { walk(item, &self.key) };
        inner.map_or(Ok(false), |inner| self.compares(inner, work))
    }
}

/// The value at a plain path: names and indexes separated by dots.
pub fn walk<'a>(tree: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('.').try_fold(tree, |value, name| match value {
        Value::Object(members) => members.get(name),
        Value::Array(items) => items.get(name.parse::<usize>().ok()?),
        _ => None,
    })
}

/// A scalar as it is; of a list or object only its type, because no number is read from it.
pub(super) fn leaf(value: &Value) -> Value {
    match value {
        Value::Array(_) => Value::Array(Vec::new()),
        Value::Object(_) => Value::Object(serde_json::Map::new()),
        scalar => scalar.clone(),
    }
}

/// Whether a name matches a pattern with `*` (any text) and `?` (any character).
pub(super) fn fits(pattern: &[u8], name: &[u8], work: &WorkBudget) -> Result<bool, TooMuchWork> {
    // Backtracks only to the last star, so the cost is at most the product of both lengths; the budget bounds that.
    let (mut p, mut n, mut star) = (0, 0, None);
    while n < name.len() {
        work.spend(1)?;
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
                let Some((at, from)) = star else { return Ok(false) };
                star = Some((at, from + 1));
                p = at + 1;
                n = from + 1;
            }
        }
    }
    Ok(pattern.get(p..).unwrap_or_default().iter().all(|byte| *byte == b'*'))
}

impl ItemCondition {
    fn compares(&self, found: &Value, work: &WorkBudget) -> Result<bool, TooMuchWork> {
        let (operator, wanted) = (self.operator, self.value.as_str());
        if operator.is_empty() {
            return Ok(true);
        }
        let order = match found {
            Value::Number(number) => {
                let (Some(number), Some(wanted)) = (number.as_f64(), self.number) else { return Ok(false) };
                number.partial_cmp(&wanted)
            }
            Value::String(text) => {
                if operator == "%" || operator == "!%" {
                    return Ok(fits(wanted.as_bytes(), text.as_bytes(), work)? == (operator == "%"));
                }
                Some(text.as_str().cmp(wanted))
            }
            Value::Bool(truth) => Some(truth.to_string().as_str().cmp(wanted)),
            _ => None,
        };
        let Some(order) = order else { return Ok(false) };
        Ok(match operator {
            "=" | "==" => order.is_eq(),
            "!=" => order.is_ne(),
            "<" => order.is_lt(),
            "<=" => order.is_le(),
            ">" => order.is_gt(),
            ">=" => order.is_ge(),
            _ => false,
        })
    }
}

/// Whether a text begins with a modifier, a literal or several paths at once.
pub(super) fn starts_stage(text: &str) -> bool {
    text.starts_with(['!', '[', '{']) || (text.starts_with('@') && MODIFIERS.contains(&modifier_name(text)))
}

/// The name of a modifier, with its `@`.
pub(super) fn modifier_name(text: &str) -> &str {
    text.split(['.', '|', ':']).next().unwrap_or_default()
}

/// The first steps of a path that does not begin with [`starts_stage`], and the rest, which applies to what the steps find.
pub(super) fn steps(path: &str) -> Result<(Vec<Step>, Option<&str>), ParseError> {
    let mut steps = Vec::new();
    let mut rest = path;
    // Whether the steps find a list of what each item has: then a dot and a pipe differ.
    let mut is_list = false;
    loop {
        let (step, separator) = match rest.strip_prefix("#(") {
            Some(inner) => first_query(inner)?,
            None => plain(rest),
        };
        is_list |= matches!(step, Step::Each) || matches!(&step, Step::Query(query) if query.all);
        steps.push(step);
        match separator {
            None => return Ok((steps, None)),
            Some(('|', after)) if is_list => return Ok((steps, Some(after))),
            Some((_, after)) if starts_stage(after) => {
                if is_list {
                    return Err(format!("write | instead of a dot before {:?}", modifier_name(after)).into());
                }
                return Ok((steps, Some(after)));
            }
            Some((_, after)) => rest = after,
        }
    }
}

/// The separator after a step, and the rest of the path.
type Separated<'a> = Option<(char, &'a str)>;

/// A query after `#(`, and what follows it.
fn first_query(inner: &str) -> Result<(Step, Separated<'_>), ParseError> {
    let end = closing(inner).ok_or("a query has no end")?;
    let (query, after) = inner.split_at_checked(end).ok_or("a query has no end")?;
    let after = after.strip_prefix(')').unwrap_or(after);
    let (all, after) = match after.strip_prefix('#') {
        Some(after) => (true, after),
        None => (false, after),
    };
    let step = self::query(query, all)?;
    let mut letters = after.chars();
    match letters.next() {
        None => Ok((step, None)),
        Some(separator @ ('.' | '|')) => Ok((step, Some((separator, letters.as_str())))),
        Some(_) => Err(format!("{after:?} after a query makes no sense").into()),
    }
}

/// One name, up to the next unescaped dot or pipe, and what follows it.
fn plain(text: &str) -> (Step, Option<(char, &str)>) {
    let (mut name, mut pattern, mut escape) = (String::new(), false, false);
    for (at, c) in text.char_indices() {
        match c {
            _ if escape => {
                escape = false;
                name.push(c);
            }
            '\\' => escape = true,
            '.' | '|' => {
                let after = text.get(at + 1..).map(|after| (c, after));
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
        let key = text.trim().to_owned();
        return Ok(Step::Query(ItemCondition { key, operator: "", value: String::new(), number: None, all }));
    };
    let (key, after) = text.split_at_checked(at).unwrap_or((text, ""));
    let value = after.get(operator.len()..).unwrap_or_default().trim();
    let value = value.strip_prefix('"').and_then(|inner| inner.strip_suffix('"')).unwrap_or(value);
    let number = value.parse().ok();
    Ok(Step::Query(ItemCondition {
        key: key.trim().to_owned(),
        operator,
        value: value.to_owned(),
        number,
        all,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_of_large_responses_is_bounded() {
        let steps = |bytes: usize| WorkBudget::new(bytes).0.get();
        assert_eq!(
            (steps(0), steps(1 << 10), steps(64 << 10)),
            (MIN_COMPARISON_STEPS, MIN_COMPARISON_STEPS, 4 << 20)
        );
        assert_eq!(
            (steps(1 << 20), steps(8 << 20), steps(usize::MAX)),
            (MAX_COMPARISON_STEPS, MAX_COMPARISON_STEPS, MAX_COMPARISON_STEPS)
        );
    }
}
