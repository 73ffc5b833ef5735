//! max, min, mean and median of numbers and arrays of numbers.

use crate::formula::budget::Budget;
use crate::formula::catalog::Function;
use crate::formula::error::EvalError;
use crate::formula::value::Value;

pub(super) fn call(function: Function, arguments: &[Value], run: &mut Budget) -> Result<Value, EvalError> {
    match function {
        Function::Max | Function::Min => {
            // A single value is returned as it is, so that nil stays nil for `??`.
            if let [only @ (Value::Nil | Value::Bool(_) | Value::Text(_) | Value::Span(_))] = arguments {
                return Ok(only.clone());
            }
            let mut best: Option<Value> = None;
            each(function, arguments, run, &mut |value, number| {
                let is_better = best.as_ref().and_then(Value::number).is_none_or(|so_far| {
                    if function == Function::Max { so_far < number } else { number < so_far }
                });
                if is_better {
                    best = Some(value.clone());
                }
            })?;
            Ok(best.unwrap_or_default())
        }
        Function::Mean => {
            let (mut sum, mut count) = (0.0, 0u32);
            each(function, arguments, run, &mut |_, number| {
                sum += number;
                count += 1;
            })?;
            Ok(Value::Float(if count == 0 { 0.0 } else { sum / f64::from(count) }))
        }
        _ => {
            let mut numbers = Vec::new();
            each(function, arguments, run, &mut |_, number| numbers.push(number))?;
            numbers.sort_by(f64::total_cmp);
            let middle = numbers.len() / 2;
            let upper = numbers.get(middle).copied().unwrap_or(0.0);
            let is_odd = numbers.len() % 2 == 1;
            let lower = middle.checked_sub(1).and_then(|index| numbers.get(index).copied());
            Ok(Value::Float(if is_odd {
                upper
            } else {
                lower.map_or(0.0, |lower| f64::midpoint(lower, upper))
            }))
        }
    }
}

/// All numbers, including nested arrays; other values are errors.
fn each(
    function: Function,
    values: &[Value],
    run: &mut Budget,
    take: &mut dyn FnMut(&Value, f64),
) -> Result<(), EvalError> {
    run.spend(values.len() as u64)?;
    for value in values {
        match value {
            Value::Int(number) => take(value, *number as f64),
            Value::Float(number) => take(value, *number),
            Value::Array(list) => each(function, list.items(), run, take)?,
            other => {
                let (name, found) = (function.name(), other.type_name());
                return Err(format!("invalid argument for {name} (type {found})").into());
            }
        }
    }
    Ok(())
}
