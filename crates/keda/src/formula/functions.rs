//! Implementations of the builtin functions, one file per kind.

mod aggregates;
mod bits;
mod json;
mod lists;
mod maps;
mod numbers;
mod strings;
mod times;

pub(super) use lists::{is_descending, sort_by_keys};
pub(super) use times::{method, method_type};

use super::budget::Budget;
use super::catalog::Function;
use super::error::EvalError;
use super::value::{Map, Value};

/// Calls a function.
pub(super) fn call(function: Function, arguments: &[Value], run: &mut Budget) -> Result<Value, EvalError> {
    use Function as F;
    let given = Given { name: function, arguments };
    match function {
        F::Abs | F::Ceil | F::Floor | F::Round | F::Int | F::Float | F::String | F::Type | F::Len => {
            numbers::call(function, &given, run)
        }
        F::Max | F::Min | F::Mean | F::Median => aggregates::call(function, arguments, run),
        F::BitAnd | F::BitNand | F::BitNot | F::BitOr | F::BitShl | F::BitShr | F::BitUshr | F::BitXor => {
            bits::call(function, &given)
        }
        F::Trim
        | F::TrimPrefix
        | F::TrimSuffix
        | F::Upper
        | F::Lower
        | F::Split
        | F::SplitAfter
        | F::Replace
        | F::Repeat
        | F::Join
        | F::IndexOf
        | F::LastIndexOf
        | F::HasPrefix
        | F::HasSuffix
        | F::ToBase64
        | F::FromBase64 => strings::call(function, &given, run),
        F::First | F::Last | F::Take | F::Reverse | F::Uniq | F::Concat | F::Flatten | F::Sort => {
            lists::call(function, &given, run)
        }
        F::Get | F::Keys | F::Values | F::ToPairs | F::FromPairs => maps::call(function, &given, run),
        F::ToJson | F::FromJson => json::call(function, &given, run),
        F::Now | F::Duration | F::Date | F::Timezone => times::call(function, &given, run),
    }
}

/// The arguments of a call, consumed one by one.
struct Given<'a> {
    name: Function,
    arguments: &'a [Value],
}

impl Given<'_> {
    fn refused(&self, value: &Value) -> EvalError {
        format!("invalid argument for {} (type {})", self.name.name(), value.type_name()).into()
    }

    fn value(&self, index: usize) -> &Value {
        self.arguments.get(index).unwrap_or(&Value::Nil)
    }

    fn is_given(&self, index: usize) -> bool {
        index < self.arguments.len()
    }

    fn text(&self, index: usize) -> Result<&str, EvalError> {
        match self.value(index) {
            Value::Text(text) => Ok(text),
            other => Err(self.refused(other)),
        }
    }

    fn int(&self, index: usize) -> Result<i64, EvalError> {
        match self.value(index) {
            Value::Int(number) => Ok(*number),
            other => Err(self.refused(other)),
        }
    }

    fn items(&self, index: usize) -> Result<&[Value], EvalError> {
        match self.value(index) {
            Value::Array(list) => Ok(list.items()),
            other => Err(self.refused(other)),
        }
    }

    fn map(&self, index: usize) -> Result<&Map, EvalError> {
        match self.value(index) {
            Value::Map(map) => Ok(map),
            other => Err(self.refused(other)),
        }
    }
}
