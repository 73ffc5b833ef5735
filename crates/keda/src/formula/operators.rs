//! Operators on values.

use std::cmp::Ordering;
use std::sync::Arc;

use jiff::Zoned;
use regex::{Regex, RegexBuilder};

use super::budget::Budget;
use super::dates::instant;
use super::error::EvalError;
use super::syntax::{Binary, Unary};
use super::value::Value;

/// Maximum size of a compiled regular expression, in bytes.
const MAX_COMPILED_PATTERN_BYTES: usize = 1 << 18;

/// Maximum length of a regular expression, in bytes. The size of the compiled one does not bound its syntax tree, in which each `\w` takes
/// thousands of times its own length.
const MAX_PATTERN_BYTES: usize = 1 << 10;

/// Steps that one byte of a pattern costs when it is compiled.
const STEPS_PER_PATTERN_BYTE: u64 = 1_000;

/// A pattern of `matches`.
pub(super) fn pattern(text: &str) -> Result<Regex, EvalError> {
    if text.len() > MAX_PATTERN_BYTES {
        return Err(format!("error parsing regexp: longer than {MAX_PATTERN_BYTES} bytes").into());
    }
    RegexBuilder::new(text)
        .size_limit(MAX_COMPILED_PATTERN_BYTES)
        .dfa_size_limit(MAX_COMPILED_PATTERN_BYTES)
        .nest_limit(50)
        .build()
        .map_err(|error| format!("error parsing regexp: {error}").into())
}

fn refused(left: &Value, sign: &str, right: &Value) -> EvalError {
    format!("invalid operation: {} {sign} {}", left.type_name(), right.type_name()).into()
}

/// One operand.
pub(super) fn unary(operator: Unary, value: &Value, run: &Budget) -> Result<Value, EvalError> {
    match (operator, value) {
        (Unary::Not, Value::Bool(flag)) => Ok(Value::Bool(!flag)),
        (Unary::Plus, Value::Int(_) | Value::Float(_)) => Ok(value.clone()),
        (Unary::Minus, Value::Int(number)) => {
            Ok(Value::Int(run.integer(number.checked_neg(), number.wrapping_neg())?))
        }
        (Unary::Minus, Value::Float(number)) => Ok(Value::Float(-number)),
        (Unary::Minus, Value::Span(span)) => Ok(Value::Span(span.saturating_neg())),
        _ => Err(format!("invalid operation: {} {}", operator.sign(), value.type_name()).into()),
    }
}

/// Binary operators, except `and`, `or` and `??`, which do not always evaluate both operands.
pub(super) fn binary(
    operator: Binary,
    left: &Value,
    right: &Value,
    run: &mut Budget,
) -> Result<Value, EvalError> {
    match operator {
        Binary::Add => add(left, right, run),
        Binary::Subtract => subtract(left, right, run),
        Binary::Multiply => multiply(left, right, run),
        Binary::Divide => match (left.number(), right.number()) {
            // Division always yields floats: division by zero is infinite.
            (Some(a), Some(b)) => Ok(Value::Float(a / b)),
            _ => Err(refused(left, "/", right)),
        },
        Binary::Modulo => match (left, right) {
            (Value::Int(_), Value::Int(0)) => Err("runtime error: integer divide by zero".into()),
            (Value::Int(a), Value::Int(b)) => Ok(Value::Int(a.wrapping_rem(*b))),
            _ => Err(refused(left, "%", right)),
        },
        Binary::Power => match (left.number(), right.number()) {
            (Some(a), Some(b)) => Ok(Value::Float(a.powf(b))),
            _ => Err(refused(left, "**", right)),
        },
        Binary::Range => match (left, right) {
            (Value::Int(from), Value::Int(to)) => range(*from, *to, run),
            _ => Err(refused(left, "..", right)),
        },
        Binary::Equal | Binary::Unequal => {
            if let Value::Array(_) | Value::Map(_) = left {
                run.spend(left.size().min(right.size()))?;
            }
            Ok(Value::Bool(left.equals(right) == (operator == Binary::Equal)))
        }
        Binary::Less => compare(left, right, "<").map(|order| Value::Bool(order == Ordering::Less)),
        Binary::Greater => compare(left, right, ">").map(|order| Value::Bool(order == Ordering::Greater)),
        Binary::AtMost => at_most(left, right, "<=").map(Value::Bool),
        Binary::AtLeast => at_most(right, left, ">=").map(Value::Bool),
        Binary::In => is_in(left, right, run).map(Value::Bool),
        Binary::Matches | Binary::Contains | Binary::StartsWith | Binary::EndsWith => {
            texts(operator, left, right, run).map(Value::Bool)
        }
        Binary::And | Binary::Or | Binary::Coalesce => Err(refused(left, operator.sign(), right)),
    }
}

/// `time + span`.
pub(super) fn later(at: &Zoned, nanoseconds: i128) -> Result<Value, EvalError> {
    let moved = instant(at.timestamp().as_nanosecond() + nanoseconds)?;
    Ok(Value::Time(Arc::new(moved.to_zoned(at.time_zone().clone()))))
}

/// `a - b`, as far as a span reaches.
pub(super) fn between(a: &Zoned, b: &Zoned) -> Value {
    let difference = a.timestamp().as_nanosecond() - b.timestamp().as_nanosecond();
    Value::Span(difference.clamp(i64::MIN.into(), i64::MAX.into()) as i64)
}

fn add(left: &Value, right: &Value, run: &mut Budget) -> Result<Value, EvalError> {
    match (left, right) {
        (Value::Int(a), Value::Int(b)) => Ok(Value::Int(run.integer(a.checked_add(*b), a.wrapping_add(*b))?)),
        (Value::Text(a), Value::Text(b)) => {
            run.spend((a.len() + b.len()) as u64)?;
            run.text(format!("{a}{b}"))
        }
        (Value::Span(a), Value::Span(b)) => Ok(Value::Span(a.saturating_add(*b))),
        (Value::Time(at), Value::Span(by)) | (Value::Span(by), Value::Time(at)) => later(at, (*by).into()),
        _ => match (left.number(), right.number()) {
            (Some(a), Some(b)) => Ok(Value::Float(a + b)),
            _ => Err(refused(left, "+", right)),
        },
    }
}

fn subtract(left: &Value, right: &Value, run: &Budget) -> Result<Value, EvalError> {
    match (left, right) {
        (Value::Int(a), Value::Int(b)) => Ok(Value::Int(run.integer(a.checked_sub(*b), a.wrapping_sub(*b))?)),
        (Value::Span(a), Value::Span(b)) => Ok(Value::Span(a.saturating_sub(*b))),
        (Value::Time(at), Value::Span(by)) => later(at, -i128::from(*by)),
        (Value::Time(a), Value::Time(b)) => Ok(between(a, b)),
        _ => match (left.number(), right.number()) {
            (Some(a), Some(b)) => Ok(Value::Float(a - b)),
            _ => Err(refused(left, "-", right)),
        },
    }
}

fn multiply(left: &Value, right: &Value, run: &Budget) -> Result<Value, EvalError> {
    match (left, right) {
        (Value::Int(a), Value::Int(b)) => Ok(Value::Int(run.integer(a.checked_mul(*b), a.wrapping_mul(*b))?)),
        (Value::Span(span), Value::Int(by)) | (Value::Int(by), Value::Span(span)) => {
            Ok(Value::Span(span.saturating_mul(*by)))
        }
        // In expr a duration times a float is a float of nanoseconds, although its type is a duration when the formula is checked.
        (Value::Span(span), Value::Float(by)) | (Value::Float(by), Value::Span(span)) => {
            Ok(Value::Float(*span as f64 * by))
        }
        _ => match (left.number(), right.number()) {
            (Some(a), Some(b)) => Ok(Value::Float(a * b)),
            _ => Err(refused(left, "*", right)),
        },
    }
}

fn range(from: i64, to: i64, run: &mut Budget) -> Result<Value, EvalError> {
    let count = i128::from(to) - i128::from(from) + 1;
    run.keep(u64::try_from(count.max(0)).unwrap_or(u64::MAX))?;
    Value::array((from..=to).map(Value::Int).collect())
}

/// Compares two values. NaN compares as equal here; [`at_most`] handles it.
pub(super) fn compare(left: &Value, right: &Value, sign: &str) -> Result<Ordering, EvalError> {
    match (left, right) {
        (Value::Int(a), Value::Int(b)) | (Value::Span(a), Value::Span(b)) => Ok(a.cmp(b)),
        (Value::Text(a), Value::Text(b)) => Ok(a.cmp(b)),
        (Value::Time(a), Value::Time(b)) => Ok(a.timestamp().cmp(&b.timestamp())),
        _ => match (left.number(), right.number()) {
            (Some(a), Some(b)) => Ok(a.partial_cmp(&b).unwrap_or(Ordering::Equal)),
            _ => Err(refused(left, sign, right)),
        },
    }
}

fn at_most(left: &Value, right: &Value, sign: &str) -> Result<bool, EvalError> {
    if let (Some(a), Some(b)) = (left.number(), right.number())
        && (a.is_nan() || b.is_nan())
    {
        return Ok(false);
    }
    let (shown_left, shown_right) = if sign == ">=" { (right, left) } else { (left, right) };
    compare(left, right, sign).map(Ordering::is_le).map_err(|_| refused(shown_left, sign, shown_right))
}

fn is_in(needle: &Value, haystack: &Value, run: &mut Budget) -> Result<bool, EvalError> {
    match haystack {
        Value::Array(list) => {
            run.spend((list.items().len() as u64).saturating_mul(needle.size()))?;
            Ok(list.items().iter().any(|item| item.equals(needle)))
        }
        Value::Map(map) => {
            Ok(super::value::Key::of(needle).is_some_and(|key| map.entries().contains_key(&key)))
        }
        Value::Nil => Ok(false),
        _ => Err(format!("operator \"in\" not defined on {}", haystack.type_name()).into()),
    }
}

fn texts(operator: Binary, left: &Value, right: &Value, run: &mut Budget) -> Result<bool, EvalError> {
    let (Value::Text(text), Value::Text(part)) = (left, right) else {
        return Err(refused(left, operator.sign(), right));
    };
    run.spend((text.len() + part.len()) as u64)?;
    Ok(match operator {
        Binary::Contains => text.contains(&**part),
        Binary::StartsWith => text.starts_with(&**part),
        Binary::EndsWith => text.ends_with(&**part),
        _ => {
            run.spend(5_000 + STEPS_PER_PATTERN_BYTE.saturating_mul(part.len() as u64))?;
            pattern(part)?.is_match(text)
        }
    })
}

/// `base[key]`: an item, a byte, an entry.
pub(super) fn fetch(base: &Value, key: &Value) -> Result<Value, EvalError> {
    match (base, key.index()) {
        (Value::Array(list), Some(index)) => {
            let items = list.items();
            place(index, items.len()).and_then(|place| items.get(place)).cloned().ok_or_else(|| {
                let shown = if index < 0 { index.saturating_add(items.len() as i64) } else { index };
                format!("index out of range: {shown} (array length is {})", items.len()).into()
            })
        }
        (Value::Text(text), Some(index)) => place(index, text.len())
            .and_then(|place| text.as_bytes().get(place))
            .map(|byte| Value::Int((*byte).into()))
            .ok_or_else(|| format!("index out of range: {index} (string length is {})", text.len()).into()),
        (Value::Map(map), _) => map.fetch(key),
        _ => Err(format!("cannot fetch {key} from {}", base.type_name()).into()),
    }
}

/// Negative indexes count from the end.
fn place(index: i64, length: usize) -> Option<usize> {
    let index = if index < 0 { index.checked_add(i64::try_from(length).ok()?)? } else { index };
    usize::try_from(index).ok()
}

/// `base[from:to]`: bounds are clamped.
pub(super) fn slice(
    base: &Value,
    from: Option<i64>,
    to: Option<i64>,
    run: &mut Budget,
) -> Result<Value, EvalError> {
    let length = match base {
        Value::Array(list) => list.items().len(),
        Value::Text(text) => text.len(),
        _ => return Err(format!("cannot slice {}", base.type_name()).into()),
    };
    let bound = |index: i64| {
        let index = if index < 0 { index.saturating_add(length as i64).max(0) } else { index };
        usize::try_from(index).unwrap_or(usize::MAX).min(length)
    };
    let end = to.map_or(length, bound);
    let start = from.map_or(0, bound).min(end);
    match base {
        Value::Array(list) => run.array(list.items().get(start..end).unwrap_or_default().to_vec()),
        Value::Text(text) => {
            let bytes = text.as_bytes().get(start..end).unwrap_or_default();
            run.text(String::from_utf8_lossy(bytes).into_owned())
        }
        _ => Err("".into()),
    }
}
