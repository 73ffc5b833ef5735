//! Why an upstream could not be asked, and what to do about it.

use std::fmt;

use api::provider::Failure;

use crate::http;

/// Characters of somebody else's message that are kept.
const KEPT: usize = 512;

/// Why an upstream did not answer a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    /// There is none at all, or not in time, or too much of it.
    NoAnswer(http::Cause),
    /// So many questions wait for it that another one was not sent.
    Busy,
    /// It wants to know who we are (401), or we may not ask (403).
    Denied {
        /// 401 or 403.
        code: u16,
        /// What it said.
        message: String,
    },
    /// It answered with another error.
    Status {
        /// HTTP code.
        code: u16,
        /// What it said.
        message: String,
    },
    /// What it said makes no sense.
    Garbage(String),
    /// It is our own server.
    Ourselves,
}

impl Cause {
    /// Whether the next question will probably meet the same: then the upstream is left alone for a while.
    pub(crate) fn is_of_server(&self) -> bool {
        match self {
            // What is too large is that of one metric; so is what is broken, and a right may be lacking for one metric.
            Self::NoAnswer(http::Cause::TooLarge(_))
            | Self::Denied { .. }
            | Self::Garbage(_)
            | Self::Busy => false,
            Self::NoAnswer(_) | Self::Ourselves => true,
            Self::Status { code, .. } => matches!(code, 429 | 502..=504),
        }
    }

    /// What a person can do about it.
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::NoAnswer(http::Cause::UnknownAuthority) => {
                "give the CA that signed its certificate in tls.caFile"
            }
            Self::NoAnswer(http::Cause::WrongName(_)) => "give the name in its certificate in tls.serverName",
            Self::NoAnswer(http::Cause::TimedOut(_)) => {
                "look at the adapter's load and logs; raise its timeout if it is just slow"
            }
            Self::NoAnswer(http::Cause::TooLarge(_)) => "ask with a narrower selector",
            Self::NoAnswer(cause) => cause.remedy(),
            Self::Busy => "look at the adapter's load and logs; give it more replicas",
            Self::Denied { code: 401, .. } => "give it a token it accepts in auth.tokenFile",
            Self::Denied { .. } => {
                "bind our service account to a role that may get and list this API group's resources"
            }
            Self::Status { code: 429 | 502..=504, .. } => {
                "look at the adapter: it says itself that it is overloaded or not ready"
            }
            Self::Status { .. } => "look at the adapter's logs for this question",
            Self::Garbage(_) => "check that url leads to a metrics API server",
            Self::Ourselves => "remove this upstream: it is our own Service",
        }
    }

    /// The answer to whoever asked us.
    pub(crate) fn failure(&self, upstream: &str) -> Failure {
        let message = format!("upstream {upstream}: {self}");
        match self {
            Self::Denied { code, .. } | Self::Status { code, .. } => {
                Failure::Status { code: *code, reason: reason(*code).to_owned(), message }
            }
            _ => Failure::Unavailable(message),
        }
    }
}

/// The word that Kubernetes has for a code.
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

/// The beginning of somebody else's words, fit for a log.
pub(crate) fn shortened(text: &str) -> String {
    let clean = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    let mut kept: String = clean.take(KEPT).collect();
    if text.chars().nth(KEPT).is_some() {
        kept.push('…');
    }
    kept.trim().to_owned()
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoAnswer(cause) => cause.fmt(f),
            Self::Busy => f.write_str("too many questions wait for it"),
            Self::Denied { code, message } | Self::Status { code, message } => {
                write!(f, "answered {code}: {message}")
            }
            Self::Garbage(why) => write!(f, "the answer makes no sense: {why}"),
            Self::Ourselves => f.write_str("it is our own server"),
        }
    }
}
