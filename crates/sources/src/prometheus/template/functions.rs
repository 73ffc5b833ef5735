//! Built-in functions of Go templates.

use std::cmp::Ordering;
use std::sync::Arc;

use super::EvalError;
use super::format::{self, sprint};
use super::value::{NO_VALUE, Value};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Function {
    And,
    Or,
    Not,
    Len,
    Index,
    Slice,
    Print,
    Printf,
    Println,
    Html,
    Js,
    Urlquery,
    Call,
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
}

const FUNCTIONS: [(&str, Function); 19] = [
    ("and", Function::And),
    ("or", Function::Or),
    ("not", Function::Not),
    ("len", Function::Len),
    ("index", Function::Index),
    ("slice", Function::Slice),
    ("print", Function::Print),
    ("printf", Function::Printf),
    ("println", Function::Println),
    ("html", Function::Html),
    ("js", Function::Js),
    ("urlquery", Function::Urlquery),
    ("call", Function::Call),
    ("eq", Function::Eq),
    ("ne", Function::Ne),
    ("lt", Function::Lt),
    ("le", Function::Le),
    ("gt", Function::Gt),
    ("ge", Function::Ge),
];

impl Function {
    pub(super) fn named(name: &str) -> Option<Self> {
        FUNCTIONS.iter().find(|(own, _)| *own == name).map(|(_, function)| *function)
    }

    pub(super) fn name(self) -> &'static str {
        FUNCTIONS.iter().find(|(_, function)| *function == self).map_or("", |(name, _)| name)
    }

    /// Checks the number of arguments.
    pub(super) fn accepts(self, given: usize) -> Result<(), EvalError> {
        let (least, most) = match self {
            Self::Not | Self::Len => (1, 1),
            Self::Ne | Self::Lt | Self::Le | Self::Gt | Self::Ge => (2, 2),
            Self::And | Self::Or | Self::Index | Self::Slice | Self::Printf | Self::Call | Self::Eq => {
                (1, usize::MAX)
            }
            Self::Print | Self::Println | Self::Html | Self::Js | Self::Urlquery => (0, usize::MAX),
        };
        if (least..=most).contains(&given) {
            return Ok(());
        }
        let at_least = if most > least { "at least " } else { "" };
        Err(format!("wrong number of args for {}: want {at_least}{least} got {given}", self.name()).into())
    }

    /// Whether `and` or `or` is decided by this argument.
    pub(super) fn decided_by(self, value: &Value) -> bool {
        match self {
            Self::And => !value.is_true(),
            Self::Or => value.is_true(),
            _ => false,
        }
    }

    pub(super) fn call(self, values: &[Value]) -> Result<Value, EvalError> {
        let first = values.first().unwrap_or(&Value::Nothing);
        let second = values.get(1).unwrap_or(&Value::Nothing);
        Ok(match self {
            Self::And | Self::Or => values.last().cloned().unwrap_or(Value::Nothing),
            Self::Not => Value::Bool(!first.is_true()),
            Self::Len => Value::Int(length(first)?),
            Self::Index => values.iter().skip(1).try_fold(first.clone(), |item, key| index(&item, key))?,
            Self::Slice => slice(first, values.get(1..).unwrap_or_default())?,
            Self::Print => Value::text(sprint(values)?),
            Self::Println => Value::text(format::sprintln(values)?),
            Self::Printf => match first {
                Value::Text(layout) => {
                    Value::text(format::sprintf(layout, values.get(1..).unwrap_or_default())?)
                }
                other => {
                    return Err(
                        format!("wrong type for value; expected string; got {}", other.type_name()).into()
                    );
                }
            },
            Self::Html => Value::text(format::html(&escapable(values)?)?),
            Self::Js => Value::text(format::js(&escapable(values)?)?),
            Self::Urlquery => Value::text(format::urlquery(&escapable(values)?)?),
            Self::Call => return Err(format!("non-function of type {}", first.type_name()).into()),
            Self::Eq => Value::Bool(equal_to_any(first, values.get(1..).unwrap_or_default())?),
            Self::Ne => Value::Bool(!equal(first, second)?),
            Self::Lt => Value::Bool(order(first, second)? == Some(Ordering::Less)),
            Self::Le => Value::Bool(matches!(order(first, second)?, Some(Ordering::Less | Ordering::Equal))),
            Self::Gt => Value::Bool(!matches!(order(first, second)?, Some(Ordering::Less | Ordering::Equal))),
            Self::Ge => Value::Bool(order(first, second)? != Some(Ordering::Less)),
        })
    }
}

/// The text that an escape function gets: unlike `print` it shows a missing value as an action does.
fn escapable(values: &[Value]) -> Result<String, EvalError> {
    let shown = |value: &Value| match value {
        Value::Nothing => Value::text(NO_VALUE),
        value => value.clone(),
    };
    sprint(&values.iter().map(shown).collect::<Vec<_>>())
}

fn length(value: &Value) -> Result<i64, EvalError> {
    let length = match value {
        Value::Text(text) => text.len(),
        Value::List(list) => list.len(),
        Value::Map(map) => map.len(),
        other => return Err(format!("len of type {}", other.type_name()).into()),
    };
    Ok(i64::try_from(length).unwrap_or(i64::MAX))
}

/// Index into a list or string; with `end`, the length itself is valid too.
fn checked_index(key: &Value, length: usize, end: bool) -> Result<usize, EvalError> {
    let checked_index = match key {
        Value::Int(int) => *int,
        Value::Byte(byte) => i64::from(*byte),
        other => return Err(format!("cannot index slice/array with type {}", other.type_name()).into()),
    };
    let fits = usize::try_from(checked_index)
        .ok()
        .filter(|checked_index| *checked_index < length + usize::from(end));
    fits.ok_or_else(|| EvalError(format!("index out of range: {checked_index}")))
}

fn index(item: &Value, key: &Value) -> Result<Value, EvalError> {
    Ok(match item {
        Value::Nothing => return Err("index of untyped nil".into()),
        Value::List(list) => {
            let at = checked_index(key, list.len(), false)?;
            list.get(at).map_or(Value::Nothing, |word| Value::Text(Arc::clone(word)))
        }
        Value::Text(text) => {
            let at = checked_index(key, text.len(), false)?;
            text.as_bytes().get(at).map_or(Value::Nothing, |byte| Value::Byte(*byte))
        }
        Value::Map(map) => match key {
            Value::Text(key) => Value::text(map.get(&**key).map_or("", String::as_str)),
            other => return Err(format!("value has type {}; should be string", other.type_name()).into()),
        },
        other => return Err(format!("can't index item of type {}", other.type_name()).into()),
    })
}

fn slice(item: &Value, bounds: &[Value]) -> Result<Value, EvalError> {
    let length = match item {
        Value::Text(text) => text.len(),
        Value::List(list) => list.len(),
        Value::Nothing => return Err("slice of untyped nil".into()),
        other => return Err(format!("can't slice item of type {}", other.type_name()).into()),
    };
    if bounds.len() > if matches!(item, Value::Text(_)) { 2 } else { 3 } {
        return Err(format!("too many slice indexes: {}", bounds.len()).into());
    }
    let mut places = Vec::with_capacity(bounds.len());
    for bound in bounds {
        places.push(checked_index(bound, length, true)?);
    }
    let start = places.first().copied().unwrap_or(0);
    let end = places.get(1).copied().unwrap_or(length);
    if start > end || places.get(2).is_some_and(|most| end > *most) {
        return Err(format!("invalid slice index: {start} > {end}").into());
    }
    Ok(match item {
        Value::Text(text) => {
            Value::text(String::from_utf8_lossy(text.as_bytes().get(start..end).unwrap_or_default()))
        }
        Value::List(list) => Value::List(list.get(start..end).unwrap_or_default().into()),
        _ => Value::Nothing,
    })
}

fn equal_to_any(first: &Value, others: &[Value]) -> Result<bool, EvalError> {
    if others.is_empty() {
        return Err("missing argument for comparison".into());
    }
    for other in others {
        if equal(first, other)? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn equal(a: &Value, b: &Value) -> Result<bool, EvalError> {
    Ok(match (a, b) {
        (Value::Bool(a), Value::Bool(b)) => a == b,
        (Value::Float(a), Value::Float(b)) => a == b,
        (Value::Text(a), Value::Text(b)) => a == b,
        (Value::Int(_) | Value::Byte(_), Value::Int(_) | Value::Byte(_)) => whole(a) == whole(b),
        (Value::Resource(a), Value::Resource(b)) => a == b,
        (Value::Nothing, Value::Nothing) => true,
        (Value::Nothing, _) | (_, Value::Nothing) => false,
        (Value::List(_) | Value::Map(_) | Value::Query(_), other)
        | (other, Value::List(_) | Value::Map(_) | Value::Query(_))
            if a.type_name() == b.type_name() =>
        {
            return Err(format!("non-comparable type {}", other.type_name()).into());
        }
        _ => return Err(incompatible(a, b)),
    })
}

fn order(a: &Value, b: &Value) -> Result<Option<Ordering>, EvalError> {
    Ok(match (a, b) {
        (Value::Float(a), Value::Float(b)) => a.partial_cmp(b),
        (Value::Text(a), Value::Text(b)) => Some(a.cmp(b)),
        (Value::Int(_) | Value::Byte(_), Value::Int(_) | Value::Byte(_)) => Some(whole(a).cmp(&whole(b))),
        (Value::Bool(_), Value::Bool(_)) => return Err("invalid type for comparison".into()),
        _ => return Err(incompatible(a, b)),
    })
}

fn whole(value: &Value) -> i64 {
    match value {
        Value::Int(int) => *int,
        Value::Byte(byte) => i64::from(*byte),
        _ => 0,
    }
}

fn incompatible(a: &Value, b: &Value) -> EvalError {
    EvalError(format!("incompatible types for comparison: {} and {}", a.type_name(), b.type_name()))
}
