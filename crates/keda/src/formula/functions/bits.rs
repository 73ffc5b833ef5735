//! Bit functions.

use super::Given;
use crate::formula::catalog::Function;
use crate::formula::error::EvalError;
use crate::formula::value::Value;

pub(super) fn call(function: Function, given: &Given<'_>) -> Result<Value, EvalError> {
    let a = given.int(0)?;
    if function == Function::BitNot {
        return Ok(Value::Int(!a));
    }
    let b = given.int(1)?;
    let shift = || -> Result<u32, EvalError> {
        match u32::try_from(b) {
            Ok(by) => Ok(by),
            Err(_) if b < 0 => Err("invalid operation: negative shift count".into()),
            Err(_) => Ok(u32::MAX),
        }
    };
    Ok(Value::Int(match function {
        Function::BitAnd => a & b,
        Function::BitOr => a | b,
        Function::BitXor => a ^ b,
        // Go's `&^` (AND NOT).
        Function::BitNand => a & !b,
        Function::BitShl => a.checked_shl(shift()?).unwrap_or(0),
        Function::BitShr => a.checked_shr(shift()?).unwrap_or(if a < 0 { -1 } else { 0 }),
        _ => (a as u64).checked_shr(shift()?).unwrap_or(0) as i64,
    }))
}
