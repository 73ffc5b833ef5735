//! String functions.

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{GeneralPurpose, GeneralPurposeConfig};

use super::Given;
use crate::formula::budget::Budget;
use crate::formula::catalog::Function;
use crate::formula::error::EvalError;
use crate::formula::value::{Value, too_large};

pub(super) fn call(function: Function, given: &Given<'_>, run: &mut Budget) -> Result<Value, EvalError> {
    if function == Function::Join {
        return join(given, run);
    }
    let text = given.text(0)?;
    run.spend(text.len() as u64)?;
    match function {
        Function::Trim if given.is_given(1) => {
            let set = given.text(1)?;
            run.text(text.trim_matches(|c| set.contains(c)).to_owned())
        }
        Function::Trim => run.text(text.trim().to_owned()),
        Function::TrimPrefix => {
            let prefix = if given.is_given(1) { given.text(1)? } else { " " };
            run.text(text.strip_prefix(prefix).unwrap_or(text).to_owned())
        }
        Function::TrimSuffix => {
            let suffix = if given.is_given(1) { given.text(1)? } else { " " };
            run.text(text.strip_suffix(suffix).unwrap_or(text).to_owned())
        }
        Function::Upper => run.text(text.to_uppercase()),
        Function::Lower => run.text(text.to_lowercase()),
        Function::Split | Function::SplitAfter => split(function, given, run, text),
        Function::Replace => replace(given, run, text),
        Function::Repeat => repeat(given, run, text),
        Function::IndexOf => Ok(Value::Int(text.find(given.text(1)?).map_or(-1, |at| at as i64))),
        Function::LastIndexOf => Ok(Value::Int(text.rfind(given.text(1)?).map_or(-1, |at| at as i64))),
        Function::HasPrefix => Ok(Value::Bool(text.starts_with(given.text(1)?))),
        Function::HasSuffix => Ok(Value::Bool(text.ends_with(given.text(1)?))),
        Function::ToBase64 => run.text(GO_BASE64.encode(text)),
        _ => {
            let bytes = from_base64(text).ok_or("illegal base64 data")?;
            run.text(String::from_utf8_lossy(&bytes).into_owned())
        }
    }
}

fn join(given: &Given<'_>, run: &mut Budget) -> Result<Value, EvalError> {
    let separator = if given.is_given(1) { given.text(1)? } else { "" };
    let mut joined = String::new();
    for (index, item) in given.items(0)?.iter().enumerate() {
        let Value::Text(item) = item else {
            return Err(given.refused(item));
        };
        if index > 0 {
            joined.push_str(separator);
        }
        joined.push_str(item);
        run.spend(1 + (item.len() + separator.len()) as u64)?;
    }
    run.text(joined)
}

fn split(function: Function, given: &Given<'_>, run: &mut Budget, text: &str) -> Result<Value, EvalError> {
    let separator = given.text(1)?;
    // As in Go: no limit if negative, no parts if zero.
    let limit = match given.is_given(2).then(|| given.int(2)).transpose()? {
        Some(0) => return run.array(Vec::new()),
        Some(limit) if limit > 0 => usize::try_from(limit).unwrap_or(usize::MAX),
        _ => usize::MAX,
    };
    let parts: Vec<&str> = if separator.is_empty() {
        let mut rest = text;
        let mut parts = Vec::new();
        while let Some(c) = rest.chars().next() {
            let (part, after) =
                if parts.len() + 1 >= limit { (rest, "") } else { rest.split_at(c.len_utf8()) };
            parts.push(part);
            rest = after;
        }
        parts
    } else if function == Function::SplitAfter {
        let mut rest = text;
        let mut parts = Vec::new();
        while let Some(at) = rest.find(separator).filter(|_| parts.len() + 1 < limit) {
            let (part, after) = rest.split_at(at + separator.len());
            parts.push(part);
            rest = after;
        }
        parts.push(rest);
        parts
    } else {
        text.splitn(limit, separator).collect()
    };
    run.keep(text.len() as u64)?;
    run.array(parts.into_iter().map(Value::text).collect())
}

fn replace(given: &Given<'_>, run: &mut Budget, text: &str) -> Result<Value, EvalError> {
    let (old, new) = (given.text(1)?, given.text(2)?);
    let limit = match given.is_given(3).then(|| given.int(3)).transpose()? {
        Some(limit) if limit >= 0 => usize::try_from(limit).unwrap_or(usize::MAX),
        _ => usize::MAX,
    };
    let found = if old.is_empty() { text.chars().count() + 1 } else { text.matches(old).count() };
    let added = found.min(limit).saturating_mul(new.len());
    run.keep(added as u64)?;
    run.spend(added as u64)?;
    run.text(text.replacen(old, new, limit))
}

fn repeat(given: &Given<'_>, run: &mut Budget, text: &str) -> Result<Value, EvalError> {
    let times = given.int(1)?;
    let times = usize::try_from(times)
        .map_err(|_| format!("invalid argument for repeat (expected positive integer, got {times})"))?;
    let length = text.len().checked_mul(times).ok_or_else(too_large)?;
    run.keep(length as u64)?;
    run.spend(length as u64)?;
    Ok(Value::Text(text.repeat(times).into()))
}

/// Go's `base64.StdEncoding`: padding is required, bits behind the last byte are ignored.
const GO_BASE64: GeneralPurpose =
    GeneralPurpose::new(&STANDARD, GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true));

fn from_base64(text: &str) -> Option<Vec<u8>> {
    // Go skips line ends.
    GO_BASE64.decode(text.replace(['\r', '\n'], "")).ok()
}
