//! The budget of steps and memory of one run, which operators and functions spend.

use api::provider::Compat;
use jiff::Timestamp;

use super::error::EvalError;
use super::value::{MAX_VALUE_SIZE, Value, too_large};

/// Maximum number of steps per run.
const MAX_STEPS: u64 = 2_000_000;

/// Time and compatibility mode of a run.
#[derive(Clone, Copy, Debug)]
pub struct EvaluationContext {
    /// The value of `now()`.
    pub now: Timestamp,
    /// Whether integer overflow wraps around, as in expr, or is an error.
    pub compat: Compat,
}

/// The context of a run and what it has spent.
pub(super) struct Budget {
    moment: EvaluationContext,
    steps: u64,
    memory: u64,
}

impl Budget {
    /// A budget of which nothing is spent.
    pub(super) fn new(moment: EvaluationContext) -> Self {
        Self { moment, steps: 0, memory: 0 }
    }

    /// The value of `now()`.
    pub(super) fn now(&self) -> Timestamp {
        self.moment.now
    }

    /// Spends steps.
    pub(super) fn spend(&mut self, steps: u64) -> Result<(), EvalError> {
        self.steps = self.steps.saturating_add(steps);
        if self.steps > MAX_STEPS {
            Err(format!("formula takes more than {MAX_STEPS} steps").into())
        } else {
            Ok(())
        }
    }

    /// Spends memory.
    pub(super) fn keep(&mut self, items: u64) -> Result<(), EvalError> {
        self.memory = self.memory.saturating_add(items);
        if self.memory > MAX_VALUE_SIZE { Err(too_large()) } else { Ok(()) }
    }

    /// An array, charged to the budget.
    pub(super) fn array(&mut self, items: Vec<Value>) -> Result<Value, EvalError> {
        self.keep(items.len() as u64)?;
        Value::array(items)
    }

    /// A string, charged to the budget.
    pub(super) fn text(&mut self, text: String) -> Result<Value, EvalError> {
        self.keep(text.len() as u64)?;
        Ok(Value::Text(text.into()))
    }

    /// The result of integer arithmetic: on overflow an error, or the wrapped value in strict mode.
    pub(super) fn integer(&self, checked: Option<i64>, wrapped: i64) -> Result<i64, EvalError> {
        match checked {
            Some(number) => Ok(number),
            None if self.moment.compat.is_strict() => Ok(wrapped),
            None => Err("integer overflow".into()),
        }
    }
}
