//! Tests of the formula language.

mod bounds;
mod functions;
mod language;
mod properties;
mod refusals;

use api::provider::Compat;
use jiff::Timestamp;

use super::{EvaluationContext, Program, Value};

/// 2026-08-14T10:20:30Z, a Friday.
fn moment() -> EvaluationContext {
    EvaluationContext { now: Timestamp::constant(1_786_702_830, 0), compat: Compat::Better }
}

fn run(formula: &str, values: &[Value]) -> Result<Value, String> {
    let names = ["a", "b", "c"].map(str::to_owned);
    let program = Program::compile(formula, &names).map_err(|error| error.to_string())?;
    program.run(values, moment()).map_err(|error| error.to_string())
}

/// With a = 2, b = 3 and c = 5: the type and the value, as Go prints them.
fn result(formula: &str) -> Result<String, String> {
    let value = run(formula, &[2.0, 3.0, 5.0].map(Value::Float))?;
    Ok(format!("{} {value}", value.type_name()))
}

/// With a = nil, b = nil and c = 5.
fn result_with_nil(formula: &str) -> Result<String, String> {
    let value = run(formula, &[Value::Nil, Value::Nil, Value::Float(5.0)])?;
    Ok(format!("{} {value}", value.type_name()))
}

#[track_caller]
fn yields(cases: &[(&str, &str)]) {
    for (formula, expected) in cases {
        assert_eq!(result(formula).as_deref(), Ok(*expected), "{formula}");
    }
}

/// The error begins with these words.
#[track_caller]
fn refused(cases: &[(&str, &str)]) {
    for (formula, expected) in cases {
        let error = result(formula).expect_err(formula);
        assert!(error.starts_with(expected), "{formula}: {error}");
    }
}
