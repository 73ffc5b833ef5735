//! The error of parsers.

/// Why a text is invalid: a parameter of a trigger, an address, or a part of a response. The message is shown to users; where
/// KEDA has one, it is KEDA's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ParseError(String);

impl From<String> for ParseError {
    fn from(message: String) -> Self {
        Self(message)
    }
}

impl From<&str> for ParseError {
    fn from(message: &str) -> Self {
        Self(message.to_owned())
    }
}

impl From<crate::ScalerError> for ParseError {
    fn from(error: crate::ScalerError) -> Self {
        Self(error.message)
    }
}

impl From<ParseError> for String {
    fn from(error: ParseError) -> Self {
        error.0
    }
}
