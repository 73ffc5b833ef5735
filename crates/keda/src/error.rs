//! The error type of results that the caller passes to the rules.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

/// Why an operation of the caller failed: reading a trigger, a scale, a Secret or a config map, or creating a job. Displays the
/// text that KEDA shows in events and conditions, and keeps the error that caused it. Two errors are equal if their texts are.
#[derive(Clone)]
pub struct OperationError(Arc<Failure>);

struct Failure {
    text: String,
    source: Option<Box<dyn Error + Send + Sync>>,
}

impl OperationError {
    /// An error that displays as its cause.
    pub fn from_error(source: impl Error + Send + Sync + 'static) -> Self {
        Self::with_source(source.to_string(), source)
    }

    /// An error with its own text.
    pub fn with_source(text: impl Into<String>, source: impl Error + Send + Sync + 'static) -> Self {
        Self(Arc::new(Failure { text: text.into(), source: Some(Box::new(source)) }))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0.text
    }
}

impl From<String> for OperationError {
    fn from(text: String) -> Self {
        Self(Arc::new(Failure { text, source: None }))
    }
}

impl From<&str> for OperationError {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

impl fmt::Display for OperationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.text)
    }
}

impl fmt::Debug for OperationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0.text, f)
    }
}

impl Error for OperationError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0.source.as_deref().map(|source| source as _)
    }
}

impl PartialEq for OperationError {
    fn eq(&self, other: &Self) -> bool {
        self.0.text == other.0.text
    }
}

impl Eq for OperationError {}
