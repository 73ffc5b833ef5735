//! The JSONPath of printer columns, in Kubernetes' dialect: `.spec.ports[0].port`,
//! `.status.conditions[?(@.type=="Ready")].status`, `.spec.items[*].name`, `.metadata.labels.app\.io/name`.
//!
//! The parser is our own: jsonpath-rust follows RFC 9535, which has no escaped dots and other rules for filters, slices
//! and missing values than Kubernetes.

use std::cmp::Ordering;

use serde_json::Value;

/// A parsed path.
#[derive(Clone, Debug, PartialEq)]
pub struct JsonPath(Vec<JsonPathStep>);

#[derive(Clone, Debug, PartialEq)]
enum JsonPathStep {
    Field(String),
    /// Every item of a list or every value of a map.
    All,
    /// The value itself and all its descendants.
    Deep,
    Slice {
        from: Option<i64>,
        to: Option<i64>,
        by: Option<i64>,
    },
    Index(i64),
    Either(Vec<JsonPath>),
    /// Items in which the path exists.
    Has(JsonPath),
    Compare(FilterOperand, FilterOperator, FilterOperand),
}

#[derive(Clone, Debug, PartialEq)]
enum FilterOperand {
    Path(JsonPath),
    Literal(Value),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FilterOperator {
    Equal,
    Unequal,
    Less,
    AtMost,
    Greater,
    AtLeast,
}

/// The maximum number of filters in a path; filters can be nested, and no column needs many.
const MAX_FILTERS: usize = 16;

/// A text is not a valid path.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("failed to read the JSONPath {path:?} at {rest:?}")]
pub struct ParseError {
    path: String,
    rest: String,
}

impl JsonPath {
    /// Parses a path.
    pub fn parse(path: &str) -> Result<Self, ParseError> {
        let mut rest = path;
        let found = if path.matches("?(").count() > MAX_FILTERS { None } else { steps(&mut rest) };
        match found {
            Some(found) if rest.is_empty() && !found.0.is_empty() => Ok(found),
            // Kubernetes accepts an empty path, and one followed by text, and finds nothing there.
            Some(_) if rest.is_empty() || rest.starts_with(' ') => {
                Ok(Self(vec![JsonPathStep::Either(Vec::new())]))
            }
            _ => Err(ParseError { path: path.to_owned(), rest: rest.to_owned() }),
        }
    }

    /// The first value at the path.
    pub fn first<'a>(&self, value: &'a Value) -> Option<&'a Value> {
        self.all(value).into_iter().next()
    }

    fn all<'a>(&self, value: &'a Value) -> Vec<&'a Value> {
        self.0
            .iter()
            .fold(vec![value], |found, step| found.into_iter().flat_map(|value| step.from(value)).collect())
    }
}

impl JsonPathStep {
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

impl FilterOperand {
    fn of<'a>(&'a self, item: &'a Value) -> Option<&'a Value> {
        match self {
            Self::Path(path) => path.first(item),
            Self::Literal(value) => Some(value),
        }
    }
}

impl FilterOperator {
    /// Values of different types are neither equal nor ordered.
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

/// Parses steps; `None` if one is malformed.
fn steps(rest: &mut &str) -> Option<JsonPath> {
    let mut steps = Vec::new();
    loop {
        if eat(rest, "..") {
            steps.push(JsonPathStep::Deep);
            field(rest, &mut steps);
        } else if eat(rest, ".") {
            field(rest, &mut steps);
        } else if eat(rest, "[") {
            steps.push(bracket(rest)?);
        } else {
            return Some(JsonPath(steps));
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

/// Parses a name; a backslash escapes the next character.
fn field(rest: &mut &str, steps: &mut Vec<JsonPathStep>) {
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
        "*" => steps.push(JsonPathStep::All),
        "" => {}
        _ => steps.push(JsonPathStep::Field(name)),
    }
}

/// Parses the contents of brackets and the closing bracket.
fn bracket(rest: &mut &str) -> Option<JsonPathStep> {
    if eat(rest, "*]") {
        return Some(JsonPathStep::Slice { from: None, to: None, by: None });
    }
    if eat(rest, "?(") {
        let step = filter(rest)?;
        return eat(rest, ")]").then_some(step);
    }
    let mut choices = Vec::new();
    loop {
        choices.push(if eat(rest, "'") { JsonPath(quoted(rest)?) } else { JsonPath(vec![range(rest)?]) });
        if !eat(rest, ",") {
            break;
        }
    }
    eat(rest, "]").then_some(JsonPathStep::Either(choices))
}

/// Parses names up to the closing quote; an unescaped dot separates steps.
fn quoted(rest: &mut &str) -> Option<Vec<JsonPathStep>> {
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

/// Parses an index or a slice.
fn range(rest: &mut &str) -> Option<JsonPathStep> {
    let number = |rest: &mut &str| {
        let digits = take(rest, |c| c == '-' || c.is_ascii_digit());
        if digits.is_empty() { Some(None) } else { digits.parse::<i64>().ok().map(Some) }
    };
    let from = number(rest)?;
    if !eat(rest, ":") {
        return from.map(JsonPathStep::Index);
    }
    let to = number(rest)?;
    let by = if eat(rest, ":") { number(rest)? } else { None };
    Some(JsonPathStep::Slice { from, to, by })
}

fn filter(rest: &mut &str) -> Option<JsonPathStep> {
    const COMPARISONS: &[(&str, FilterOperator)] = &[
        ("==", FilterOperator::Equal),
        ("!=", FilterOperator::Unequal),
        ("<=", FilterOperator::AtMost),
        (">=", FilterOperator::AtLeast),
        ("<", FilterOperator::Less),
        (">", FilterOperator::Greater),
    ];
    let left = operand(rest)?;
    match COMPARISONS.iter().find(|(token, _)| eat(rest, token)) {
        Some((_, comparison)) => Some(JsonPathStep::Compare(left, *comparison, operand(rest)?)),
        None => match left {
            FilterOperand::Path(path) => Some(JsonPathStep::Has(path)),
            FilterOperand::Literal(_) => None,
        },
    }
}

fn operand(rest: &mut &str) -> Option<FilterOperand> {
    *rest = rest.trim_start();
    let operand = if eat(rest, "@") {
        FilterOperand::Path(steps(rest)?)
    } else if let Some(quote) = ['"', '\''].into_iter().find(|quote| rest.starts_with(*quote)) {
        let (text, left) = rest.get(1..)?.split_once(quote)?;
        *rest = left;
        FilterOperand::Literal(text.into())
    } else {
        FilterOperand::Literal(serde_json::from_str(take(rest, |c| !" )=!<>".contains(c))).ok()?)
    };
    *rest = rest.trim_start();
    Some(operand)
}

#[cfg(test)]
mod tests;
