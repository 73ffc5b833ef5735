//! Arrays.

use std::cmp::Ordering;

use super::Given;
use crate::formula::budget::Budget;
use crate::formula::catalog::Function;
use crate::formula::error::EvalError;
use crate::formula::operators;
use crate::formula::value::Value;

pub(super) fn call(function: Function, given: &Given<'_>, run: &mut Budget) -> Result<Value, EvalError> {
    match function {
        Function::First => Ok(given.items(0)?.first().cloned().unwrap_or_default()),
        Function::Last => Ok(given.items(0)?.last().cloned().unwrap_or_default()),
        Function::Take => {
            let (items, count) = (given.items(0)?, given.int(1)?);
            let count = usize::try_from(count).map_err(|_| format!("cannot take {count} elements"))?;
            run.array(items.iter().take(count).cloned().collect())
        }
        Function::Reverse => {
            let items = given.items(0)?;
            run.array(items.iter().rev().cloned().collect())
        }
        Function::Uniq => {
            let items = given.items(0)?;
            let mut found: Vec<Value> = Vec::new();
            for item in items {
                run.spend((1 + found.len() as u64).saturating_mul(item.size()))?;
                if !found.iter().any(|known| known.equals(item)) {
                    found.push(item.clone());
                }
            }
            run.array(found)
        }
        Function::Concat => {
            let mut all = Vec::new();
            for index in 0..given.arguments.len() {
                let items = given.items(index)?;
                run.spend(items.len() as u64)?;
                all.extend_from_slice(items);
            }
            run.array(all)
        }
        Function::Flatten => {
            let mut flat = Vec::new();
            run.spend(given.value(0).size())?;
            flatten(given.items(0)?, &mut flat);
            run.array(flat)
        }
        _ => {
            let items = given.items(0)?;
            let descending =
                given.is_given(1).then(|| is_descending(given.value(1))).transpose()?.unwrap_or(false);
            let keyed = items.iter().map(|item| (item.clone(), item.clone())).collect();
            sort_by_keys(keyed, descending, run)
        }
    }
}

fn flatten(items: &[Value], flat: &mut Vec<Value>) {
    for item in items {
        match item {
            Value::Array(inner) => flatten(inner.items(), flat),
            other => flat.push(other.clone()),
        }
    }
}

/// Whether the order that a formula names is descending.
pub(in crate::formula) fn is_descending(value: &Value) -> Result<bool, EvalError> {
    match value {
        Value::Text(text) if &**text == "asc" => Ok(false),
        Value::Text(text) if &**text == "desc" => Ok(true),
        other => Err(format!("invalid order \"{other}\", expected asc or desc").into()),
    }
}

/// Sorts items by their keys; what is the same stays in its order.
pub(in crate::formula) fn sort_by_keys(
    mut keyed: Vec<(Value, Value)>,
    descending: bool,
    run: &mut Budget,
) -> Result<Value, EvalError> {
    let count = keyed.len() as u64;
    run.spend(count.saturating_mul(u64::from(u64::BITS - count.leading_zeros())))?;
    // Incomparable keys are refused first, so that sorting has a total order.
    let mut keys = keyed.iter().map(|(key, _)| key);
    if let Some(first) = keys.next() {
        for key in keys {
            operators::compare(first, key, "<")?;
        }
    }
    keyed.sort_by(|(a, _), (b, _)| {
        let found = operators::compare(a, b, "<").unwrap_or(Ordering::Equal);
        if descending { found.reverse() } else { found }
    });
    run.array(keyed.into_iter().map(|(_, item)| item).collect())
}
