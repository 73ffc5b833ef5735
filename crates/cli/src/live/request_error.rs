//! Errors of requests to a cluster.

use cluster::connect::{Connection, explain};

/// Why a request failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum RequestError {
    /// The cluster cannot be reached or refuses our credentials: a text with a remedy, whose first line is the cause.
    #[error("{}", .0.lines().next().unwrap_or_default())]
    Unreachable(String),
    /// The server answered with an error.
    #[error("{message} ({code})")]
    Refused {
        /// HTTP status.
        code: u16,
        /// The server's message.
        message: String,
    },
    /// The response cannot be decoded.
    #[error("the answer cannot be read: {0}")]
    InvalidResponse(String),
    /// A decision that another version wrote cannot be decoded; those that follow it may be.
    #[error("a decision cannot be decoded: {0}")]
    Undecodable(String),
}

impl RequestError {
    /// The error of the client, without its prefix.
    pub(crate) fn of(error: &kube::Error, connection: &Connection) -> Self {
        match error {
            kube::Error::Api(status) if status.code != 401 => {
                let message = [status.message.trim(), status.reason.trim()];
                let message = message.into_iter().find(|text| !text.is_empty()).unwrap_or("no reason given");
                Self::Refused { code: status.code, message: message.to_owned() }
            }
            kube::Error::FromUtf8(error) => Self::InvalidResponse(error.to_string()),
            other => Self::Unreachable(explain(other, connection)),
        }
    }

    /// The remedy in the text, if it has one.
    pub(crate) fn remedy(&self) -> Option<&str> {
        match self {
            Self::Unreachable(text) => {
                text.lines().find_map(|line| line.trim_start().strip_prefix("remedy: "))
            }
            _ => None,
        }
    }

    /// The server's status, if it answered.
    pub(crate) fn code(&self) -> Option<u16> {
        match self {
            Self::Refused { code, .. } => Some(*code),
            _ => None,
        }
    }
}
