//! Rounding, conversion, length.

use super::Given;
use crate::formula::budget::Budget;
use crate::formula::catalog::Function;
use crate::formula::error::EvalError;
use crate::formula::value::Value;

pub(super) fn call(function: Function, given: &Given<'_>, run: &mut Budget) -> Result<Value, EvalError> {
    let value = given.value(0);
    let number = || value.number().ok_or_else(|| given.refused(value));
    Ok(match function {
        Function::Abs => match value {
            Value::Int(number) => Value::Int(run.integer(number.checked_abs(), number.wrapping_abs())?),
            _ => Value::Float(number()?.abs()),
        },
        Function::Ceil => Value::Float(number()?.ceil()),
        Function::Floor => Value::Float(number()?.floor()),
        // Half away from zero.
        Function::Round => Value::Float(number()?.round()),
        Function::Int => Value::Int(int(value, run)?),
        Function::Float => Value::Float(float(value)?),
        Function::String => {
            run.spend(value.size())?;
            run.text(value.to_string())?
        }
        Function::Type => Value::text(type_name(value)),
        _ => Value::Int(match value {
            Value::Text(text) => text.chars().count() as i64,
            Value::Array(list) => list.items().len() as i64,
            Value::Map(map) => map.entries().len() as i64,
            other => return Err(given.refused(other)),
        }),
    })
}

fn int(value: &Value, run: &Budget) -> Result<i64, EvalError> {
    let refused = || EvalError::from(format!("invalid operation: int({value})"));
    match value {
        Value::Int(number) | Value::Span(number) => Ok(*number),
        Value::Float(number) => {
            // Beyond this range Go's result depends on the processor; on amd64 it is the smallest integer.
            let fits = *number >= -9_223_372_036_854_775_808.0 && *number < 9_223_372_036_854_775_808.0;
            run.integer(fits.then_some(*number as i64), i64::MIN).map_err(|_| refused())
        }
        Value::Text(text) => text.parse().map_err(|_| refused()),
        other => Err(format!("invalid operation: int({})", other.type_name()).into()),
    }
}

fn float(value: &Value) -> Result<f64, EvalError> {
    match value {
        Value::Int(number) => Ok(*number as f64),
        Value::Float(number) => Ok(*number),
        Value::Text(text) => {
            crate::float::parse_float(text).map_err(|_| format!("invalid operation: float({value})").into())
        }
        other => Err(format!("invalid operation: float({})", other.type_name()).into()),
    }
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Nil => "nil",
        Value::Bool(_) => "bool",
        Value::Int(_) => "int",
        Value::Float(_) => "float",
        Value::Text(_) => "string",
        Value::Array(_) => "array",
        Value::Map(_) => "map",
        Value::Span(_) => "time.Duration",
        Value::Time(_) => "time.Time",
        Value::Zone(_) => "time.Location",
    }
}
