//! The error of parsers.

/// Why a text is invalid: a parameter of a trigger, an address, or a part of a response. The message is shown to users; where
/// KEDA has one, it is KEDA's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ParseError {
    message: String,
    parameter: Option<&'static str>,
}

impl ParseError {
    /// The error of one parameter of a trigger.
    pub(crate) fn of(parameter: &'static str, message: impl Into<String>) -> Self {
        Self { parameter: Some(parameter), ..message.into().into() }
    }

    /// The parameter of a trigger that it is about, if it is about one.
    pub(crate) fn parameter(&self) -> Option<&'static str> {
        self.parameter
    }
}

impl From<String> for ParseError {
    fn from(message: String) -> Self {
        Self { message, parameter: None }
    }
}

impl From<&str> for ParseError {
    fn from(message: &str) -> Self {
        message.to_owned().into()
    }
}

impl From<crate::ScalerError> for ParseError {
    fn from(error: crate::ScalerError) -> Self {
        error.message.into()
    }
}

impl From<ParseError> for String {
    fn from(error: ParseError) -> Self {
        error.message
    }
}
