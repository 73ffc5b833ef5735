//! Errors of a step, and errors that are recorded with it.

use serde::{Deserialize, Serialize};

use crate::request_failure::RequestFailure;

/// The error of a step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{text}")]
pub struct StepError {
    /// Error text.
    pub text: String,
    /// Class of the error.
    pub class: ErrorClass,
}

/// An error that is part of a recorded observation or decision: the text that events and conditions quote, and what failed
/// where that is known. Two errors are equal if their texts are.
#[derive(Clone, Debug, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(from = "StoredError", into = "StoredError")]
#[error("{text}")]
pub struct RecordedError {
    text: String,
    failure: Option<Box<RequestFailure>>,
}

/// The JSON form of a [`RecordedError`]: a string, or an object if the failure is known.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum StoredError {
    Text(String),
    Typed { text: String, failure: Box<RequestFailure> },
}

impl RecordedError {
    /// An error whose cause is known.
    pub fn new(text: impl Into<String>, failure: Option<RequestFailure>) -> Self {
        Self { text: text.into(), failure: failure.map(Box::new) }
    }

    /// The text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// What failed, if it is known.
    pub fn failure(&self) -> Option<&RequestFailure> {
        self.failure.as_deref()
    }
}

impl From<StoredError> for RecordedError {
    fn from(stored: StoredError) -> Self {
        match stored {
            StoredError::Text(text) => Self { text, failure: None },
            StoredError::Typed { text, failure } => Self { text, failure: Some(failure) },
        }
    }
}

impl From<RecordedError> for StoredError {
    fn from(RecordedError { text, failure }: RecordedError) -> Self {
        match failure {
            None => Self::Text(text),
            Some(failure) => Self::Typed { text, failure },
        }
    }
}

impl PartialEq for RecordedError {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl PartialEq<str> for RecordedError {
    fn eq(&self, text: &str) -> bool {
        self.text == text
    }
}

impl PartialEq<&str> for RecordedError {
    fn eq(&self, text: &&str) -> bool {
        self.text == *text
    }
}

impl<T: Into<String>> From<T> for RecordedError {
    fn from(text: T) -> Self {
        Self { text: text.into(), failure: None }
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
