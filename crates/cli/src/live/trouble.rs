//! What can go wrong with a question to a cluster.

use cluster::connect::{Connection, explain};

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Trouble {
    /// Nobody answered, or nobody there knows us: a text with remedy, of which the first line says what happened.
    #[error("{}", .0.lines().next().unwrap_or_default())]
    Unreachable(String),
    /// The server said no.
    #[error("{message} ({code})")]
    Refused {
        /// HTTP status.
        code: u16,
        /// The server's words.
        message: String,
    },
    /// The answer cannot be read.
    #[error("the answer cannot be read: {0}")]
    Nonsense(String),
}

impl Trouble {
    /// What a client says, without its own words around it.
    pub(crate) fn of(error: &kube::Error, connection: &Connection) -> Self {
        match error {
            kube::Error::Api(status) if status.code != 401 => {
                let message = [status.message.trim(), status.reason.trim()];
                let message = message.into_iter().find(|text| !text.is_empty()).unwrap_or("no reason given");
                Self::Refused { code: status.code, message: message.to_owned() }
            }
            kube::Error::FromUtf8(error) => Self::Nonsense(error.to_string()),
            other => Self::Unreachable(explain(other, connection)),
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
