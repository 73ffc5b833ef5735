//! Maps.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Given;
use crate::formula::budget::Budget;
use crate::formula::catalog::Function;
use crate::formula::error::EvalError;
use crate::formula::operators;
use crate::formula::value::{Key, Map, Value};

pub(super) fn call(function: Function, given: &Given<'_>, run: &mut Budget) -> Result<Value, EvalError> {
    match function {
        // Missing keys are nil, not errors.
        Function::Get => Ok(operators::fetch(given.value(0), given.value(1)).unwrap_or_default()),
        Function::Keys => {
            let map = given.map(0)?;
            run.array(map.entries().keys().map(Key::value).collect())
        }
        Function::Values => {
            let map = given.map(0)?;
            run.array(map.entries().values().cloned().collect())
        }
        Function::ToPairs => {
            let mut pairs = Vec::new();
            for (key, value) in given.map(0)?.entries() {
                pairs.push(run.array(vec![key.value(), value.clone()])?);
            }
            run.array(pairs)
        }
        _ => {
            let mut entries = BTreeMap::new();
            for pair in given.items(0)? {
                let Value::Array(pair) = pair else {
                    return Err(format!("invalid pair {pair}").into());
                };
                let [key, value] = pair.items() else {
                    return Err(format!("invalid pair length {}", pair.items().len()).into());
                };
                let key = Key::of(key).ok_or_else(|| format!("cannot use {} as key", key.type_name()))?;
                entries.insert(key, value.clone());
            }
            run.keep(entries.len() as u64)?;
            Ok(Value::Map(Arc::new(Map::new(entries)?)))
        }
    }
}
