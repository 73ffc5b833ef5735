//! The JSONPath of printer columns, as far as Kubernetes takes it: `.spec.ports[0].port`,
//! `.status.conditions[?(@.type=="Ready")].status`, `.spec.items[*].name`, `.metadata.labels.app\.io/name`.

use std::cmp::Ordering;

use serde_json::Value;

/// A path through an object.
#[derive(Clone, Debug, PartialEq)]
pub struct Path(Vec<Step>);

#[derive(Clone, Debug, PartialEq)]
enum Step {
    Field(String),
    /// Every item of a list, or every value of a map; in brackets, only the items.
    All,
    /// The value itself and everything in it.
    Deep,
    Slice {
        from: Option<i64>,
        to: Option<i64>,
        by: Option<i64>,
    },
    Index(i64),
    Either(Vec<Path>),
    /// Items that have the path.
    Has(Path),
    Compare(Operand, Comparison, Operand),
}

#[derive(Clone, Debug, PartialEq)]
enum Operand {
    Path(Path),
    Literal(Value),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Comparison {
    Equal,
    Unequal,
    Less,
    AtMost,
    Greater,
    AtLeast,
}

/// How many filters a path may have; they can stand in each other, and no column needs many.
const FILTERS: usize = 16;

/// Why a text is no path.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("failed to read the JSONPath {path:?} at {rest:?}")]
pub struct ParseError {
    path: String,
    rest: String,
}

impl Path {
    /// Reads a path.
    pub fn parse(path: &str) -> Result<Self, ParseError> {
        let mut rest = path;
        let found = if path.matches("?(").count() > FILTERS { None } else { steps(&mut rest) };
        match found {
            Some(found) if rest.is_empty() && !found.0.is_empty() => Ok(found),
            // Kubernetes takes a path to nowhere, and one with text behind it, and finds nothing there.
            Some(_) if rest.is_empty() || rest.starts_with(' ') => Ok(Self(vec![Step::Either(Vec::new())])),
            _ => Err(ParseError { path: path.to_owned(), rest: rest.to_owned() }),
        }
    }

    /// The first value the path leads to.
    pub fn first<'a>(&self, value: &'a Value) -> Option<&'a Value> {
        self.all(value).into_iter().next()
    }

    fn all<'a>(&self, value: &'a Value) -> Vec<&'a Value> {
        self.0
            .iter()
            .fold(vec![value], |found, step| found.into_iter().flat_map(|value| step.from(value)).collect())
    }
}

impl Step {
    fn from<'a>(&self, value: &'a Value) -> Vec<&'a Value> {
        let items = || value.as_array().map_or(&[][..], Vec::as_slice).iter();
        match self {
            Self::Field(name) => value.as_object().and_then(|map| map.get(name)).into_iter().collect(),
            Self::All => children(value),
            Self::Deep => {
                let mut found = vec![value];
                for child in children(value) {
                    found.extend(self.from(child));
                }
                found
            }
            Self::Index(index) => {
                let length = items().len() as i64;
                let at = if *index < 0 { index + length } else { *index };
                usize::try_from(at).ok().and_then(|at| value.get(at)).into_iter().collect()
            }
            Self::Slice { from, to, by } => {
                let length = items().len() as i64;
                let place = |given: Option<i64>, absent: i64| {
                    let place = given.unwrap_or(absent);
                    (if place < 0 { place + length } else { place }).clamp(0, length) as usize
                };
                let (from, to) = (place(*from, 0), place(*to, length));
                match usize::try_from(by.unwrap_or(1)) {
                    Ok(by @ 1..) => items().take(to).skip(from).step_by(by).collect(),
                    _ => Vec::new(),
                }
            }
            Self::Either(paths) => paths.iter().flat_map(|path| path.all(value)).collect(),
            Self::Has(path) => items().filter(|item| path.first(item).is_some()).collect(),
            Self::Compare(left, comparison, right) => {
                let holds = |item: &&Value| match (left.of(item), right.of(item)) {
                    (Some(left), Some(right)) => comparison.holds(left, right),
                    _ => false,
                };
                items().filter(holds).collect()
            }
        }
    }
}

fn children(value: &Value) -> Vec<&Value> {
    match value {
        Value::Array(items) => items.iter().collect(),
        Value::Object(map) => map.values().collect(),
        _ => Vec::new(),
    }
}

impl Operand {
    fn of<'a>(&'a self, item: &'a Value) -> Option<&'a Value> {
        match self {
            Self::Path(path) => path.first(item),
            Self::Literal(value) => Some(value),
        }
    }
}

impl Comparison {
    /// Values of different types are neither equal nor in order.
    fn holds(self, left: &Value, right: &Value) -> bool {
        let order = match (left, right) {
            (Value::String(left), Value::String(right)) => Some(left.cmp(right)),
            (Value::Bool(left), Value::Bool(right)) if left == right => Some(Ordering::Equal),
            (Value::Bool(_), Value::Bool(_)) => return self == Self::Unequal,
            (Value::Number(left), Value::Number(right)) => {
                left.as_f64().zip(right.as_f64()).and_then(|(left, right)| left.partial_cmp(&right))
            }
            _ => None,
        };
        order.is_some_and(|order| match self {
            Self::Equal => order.is_eq(),
            Self::Unequal => order.is_ne(),
            Self::Less => order.is_lt(),
            Self::AtMost => order.is_le(),
            Self::Greater => order.is_gt(),
            Self::AtLeast => order.is_ge(),
        })
    }
}

/// Reads as many steps as there are; nothing if one is malformed.
fn steps(rest: &mut &str) -> Option<Path> {
    let mut steps = Vec::new();
    loop {
        if eat(rest, "..") {
            steps.push(Step::Deep);
            field(rest, &mut steps);
        } else if eat(rest, ".") {
            field(rest, &mut steps);
        } else if eat(rest, "[") {
            steps.push(bracket(rest)?);
        } else {
            return Some(Path(steps));
        }
    }
}

fn eat(rest: &mut &str, token: &str) -> bool {
    let found = rest.strip_prefix(token);
    *rest = found.unwrap_or(rest);
    found.is_some()
}

fn take<'a>(rest: &mut &'a str, wanted: impl Fn(char) -> bool) -> &'a str {
    let (taken, left) = rest.split_at(rest.find(|c| !wanted(c)).unwrap_or(rest.len()));
    *rest = left;
    taken
}

/// Reads a name; a backslash makes the next character part of it.
fn field(rest: &mut &str, steps: &mut Vec<Step>) {
    let mut name = String::new();
    loop {
        name.push_str(take(rest, |c| !".[]()=!<>,\\ ".contains(c)));
        if !eat(rest, "\\") {
            break;
        }
        let mut characters = rest.chars();
        name.extend(characters.next());
        *rest = characters.as_str();
    }
    match name.as_str() {
        "*" => steps.push(Step::All),
        "" => {}
        _ => steps.push(Step::Field(name)),
    }
}

/// Reads what stands between brackets, and the closing one.
fn bracket(rest: &mut &str) -> Option<Step> {
    if eat(rest, "*]") {
        return Some(Step::Slice { from: None, to: None, by: None });
    }
    if eat(rest, "?(") {
        let step = filter(rest)?;
        return eat(rest, ")]").then_some(step);
    }
    let mut choices = Vec::new();
    loop {
        choices.push(if eat(rest, "'") { Path(quoted(rest)?) } else { Path(vec![range(rest)?]) });
        if !eat(rest, ",") {
            break;
        }
    }
    eat(rest, "]").then_some(Step::Either(choices))
}

/// Reads names to the closing quote. A dot in them must be escaped, or it is taken for a step.
fn quoted(rest: &mut &str) -> Option<Vec<Step>> {
    let (mut inner, left) = rest.split_once('\'')?;
    *rest = left;
    let mut steps = Vec::new();
    loop {
        field(&mut inner, &mut steps);
        if !eat(&mut inner, ".") {
            return inner.is_empty().then_some(steps);
        }
    }
}

/// Reads an index or a slice.
fn range(rest: &mut &str) -> Option<Step> {
    let number = |rest: &mut &str| {
        let digits = take(rest, |c| c == '-' || c.is_ascii_digit());
        if digits.is_empty() { Some(None) } else { digits.parse::<i64>().ok().map(Some) }
    };
    let from = number(rest)?;
    if !eat(rest, ":") {
        return from.map(Step::Index);
    }
    let to = number(rest)?;
    let by = if eat(rest, ":") { number(rest)? } else { None };
    Some(Step::Slice { from, to, by })
}

fn filter(rest: &mut &str) -> Option<Step> {
    const COMPARISONS: &[(&str, Comparison)] = &[
        ("==", Comparison::Equal),
        ("!=", Comparison::Unequal),
        ("<=", Comparison::AtMost),
        (">=", Comparison::AtLeast),
        ("<", Comparison::Less),
        (">", Comparison::Greater),
    ];
    let left = operand(rest)?;
    match COMPARISONS.iter().find(|(token, _)| eat(rest, token)) {
        Some((_, comparison)) => Some(Step::Compare(left, *comparison, operand(rest)?)),
        None => match left {
            Operand::Path(path) => Some(Step::Has(path)),
            Operand::Literal(_) => None,
        },
    }
}

fn operand(rest: &mut &str) -> Option<Operand> {
    *rest = rest.trim_start();
    let operand = if eat(rest, "@") {
        Operand::Path(steps(rest)?)
    } else if let Some(quote) = ['"', '\''].into_iter().find(|quote| rest.starts_with(*quote)) {
        let (text, left) = rest.get(1..)?.split_once(quote)?;
        *rest = left;
        Operand::Literal(text.into())
    } else {
        Operand::Literal(serde_json::from_str(take(rest, |c| !" )=!<>".contains(c))).ok()?)
    };
    *rest = rest.trim_start();
    Some(operand)
}

#[cfg(test)]
mod tests;
