//! Errors of formulas with their position.

use std::borrow::Cow;
use std::fmt;

/// Why an operator or a function failed: expr's message. The evaluator adds the position and makes a [`FormulaError`] of both.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(super) struct EvalError(Cow<'static, str>);

impl From<&'static str> for EvalError {
    fn from(message: &'static str) -> Self {
        Self(message.into())
    }
}

impl From<String> for EvalError {
    fn from(message: String) -> Self {
        Self(message.into())
    }
}

impl From<EvalError> for String {
    fn from(error: EvalError) -> Self {
        error.0.into_owned()
    }
}

/// A message and its position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FormulaError {
    /// The message.
    pub message: String,
    /// Zero-based character position, if there is one.
    pub at: Option<u32>,
    /// The position as text, with the marked source line.
    shown: String,
}

impl FormulaError {
    /// An error at a character.
    pub(super) fn new(at: u32, message: impl Into<String>) -> Self {
        Self { message: message.into(), at: Some(at), shown: String::new() }
    }

    /// An error without a position.
    pub(super) fn whole(message: impl Into<String>) -> Self {
        Self { message: message.into(), at: None, shown: String::new() }
    }

    /// Adds the source line, as expr shows it.
    pub(super) fn shown_in(mut self, source: &str) -> Self {
        let Some(at) = self.at.filter(|_| self.shown.is_empty()) else {
            return self;
        };
        let before: String = source.chars().take(at as usize).collect();
        let line_number = before.matches('\n').count();
        let column = before.chars().rev().take_while(|c| *c != '\n').count();
        let line = source.split('\n').nth(line_number).unwrap_or_default();
        let marks = ".".repeat(column);
        self.shown = format!(" ({}:{})\n | {line}\n | {marks}^", line_number + 1, column + 1);
        self
    }
}

impl fmt::Display for FormulaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.message, self.shown)
    }
}

impl std::error::Error for FormulaError {}
