//! Errors of upstreams, each with a remedy.

use std::fmt;

use api::provider::MetricsError;
use api::text::truncated;

use crate::http;

/// Maximum characters of an upstream message in errors.
const MAX_MESSAGE_CHARS: usize = 512;

/// Why a request to an upstream failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UpstreamError {
    /// No response, not in time, or too large.
    NoAnswer(http::HttpErrorCause),
    /// Too many requests to this upstream are in flight.
    Busy,
    /// It answered 401 or 403.
    Denied {
        /// Status code.
        code: u16,
        /// Message of the response.
        message: String,
    },
    /// It answered with another error.
    Status {
        /// Status code.
        code: u16,
        /// Message of the response.
        message: String,
    },
    /// The response is not valid.
    InvalidResponse(String),
    /// The upstream is this server itself.
    Ourselves,
}

impl UpstreamError {
    /// Whether the next request will probably fail too; such errors open the circuit breaker.
    pub(crate) fn is_of_server(&self) -> bool {
        match self {
            // These errors concern one metric: its size, its syntax or the permission to read it.
            Self::NoAnswer(http::HttpErrorCause::TooLarge(_))
            | Self::Denied { .. }
            | Self::InvalidResponse(_)
            | Self::Busy => false,
            Self::NoAnswer(_) | Self::Ourselves => true,
            Self::Status { code, .. } => matches!(code, 429 | 502..=504),
        }
    }

    /// What the user can do about it.
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::NoAnswer(http::HttpErrorCause::UnknownAuthority) => {
                "give the CA that signed its certificate in tls.caFile"
            }
            Self::NoAnswer(http::HttpErrorCause::WrongName(_)) => {
                "give the name in its certificate in tls.serverName"
            }
            Self::NoAnswer(http::HttpErrorCause::TimedOut(_)) => {
                "check the load and the log of the adapter; raise its timeout if it is only slow"
            }
            Self::NoAnswer(http::HttpErrorCause::TooLarge(_)) => "ask with a narrower selector",
            Self::NoAnswer(cause) => cause.remedy(),
            Self::Busy => "check the load and the log of the adapter; give it more replicas",
            Self::Denied { code: 401, .. } => "give it a token it accepts in auth.tokenFile",
            Self::Denied { .. } => {
                "bind the service account of plimsoll to a role that may get and list this API group's resources"
            }
            Self::Status { code: 429 | 502..=504, .. } => {
                "check the adapter: it reports that it is overloaded or not ready"
            }
            Self::Status { .. } => "check the log of the adapter for this request",
            Self::InvalidResponse(_) => "check that url leads to a metrics API server",
            Self::Ourselves => "remove this upstream: it is the Service of this server",
        }
    }

    /// Error returned to the client.
    pub(crate) fn failure(&self, upstream: &str) -> MetricsError {
        let message = format!("upstream {upstream}: {self}");
        match self {
            Self::Denied { code, .. } | Self::Status { code, .. } => {
                MetricsError::Status { code: *code, reason: reason(*code).to_owned(), message }
            }
            _ => MetricsError::Unavailable(message),
        }
    }
}

/// Kubernetes reason of a status code.
fn reason(code: u16) -> &'static str {
    match code {
        400 => "BadRequest",
        401 => "Unauthorized",
        403 => "Forbidden",
        405 => "MethodNotAllowed",
        406 => "NotAcceptable",
        409 => "Conflict",
        429 => "TooManyRequests",
        500 => "InternalError",
        503 => "ServiceUnavailable",
        504 => "Timeout",
        _ => "",
    }
}

/// Shortens a message and removes control characters.
pub(crate) fn shortened(text: &str) -> String {
    truncated(text, MAX_MESSAGE_CHARS).replace(char::is_control, " ").trim().to_owned()
}

impl fmt::Display for UpstreamError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoAnswer(cause) => cause.fmt(f),
            Self::Busy => f.write_str("too many requests to it are in flight"),
            Self::Denied { code, message } | Self::Status { code, message } => {
                write!(f, "answered {code}: {message}")
            }
            Self::InvalidResponse(why) => write!(f, "its response is not valid: {why}"),
            Self::Ourselves => f.write_str("it is this server itself"),
        }
    }
}
