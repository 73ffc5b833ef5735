//! Errors of a step, and errors that are recorded with it.

use serde::{Deserialize, Serialize};

/// The error of a step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{text}")]
pub struct StepError {
    /// Error text.
    pub text: String,
    /// Class of the error.
    pub class: ErrorClass,
}

/// An error that is part of a recorded observation or decision. Records are stored as JSON, so only the text is kept: the
/// one that events and conditions quote.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(transparent)]
#[error("{0}")]
pub struct RecordedError(String);

impl RecordedError {
    /// The text.
    pub fn text(&self) -> &str {
        &self.0
    }
}

impl PartialEq<str> for RecordedError {
    fn eq(&self, text: &str) -> bool {
        self.0 == text
    }
}

impl PartialEq<&str> for RecordedError {
    fn eq(&self, text: &&str) -> bool {
        self.0 == *text
    }
}

impl<T: Into<String>> From<T> for RecordedError {
    fn from(text: T) -> Self {
        Self(text.into())
    }
}

/// Class of an error; the `error` label of exported metrics (docs/spec/hpa.md 8).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ErrorClass {
    /// The object's spec is wrong.
    Spec,
    /// Any other error.
    Internal,
}

/// The `error` label for an error of this class.
pub(crate) fn label(class: Option<ErrorClass>) -> &'static str {
    match class {
        None => "none",
        Some(ErrorClass::Spec) => "spec",
        Some(ErrorClass::Internal) => "internal",
    }
}
