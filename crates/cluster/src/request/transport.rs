//! Requests without a response, in the words of Go as far as the cause is known.

use std::error::Error;
use std::io::ErrorKind;

use super::{ApiError, Request};

/// `Get "/apis/…": connection refused`.
pub(super) fn failure(request: &Request, words: &str) -> ApiError {
    let method = request.method.as_str();
    let (first, rest) = method.split_at(method.len().min(1));
    ApiError::unanswered(format!("{first}{} \"{}\": {words}", rest.to_ascii_lowercase(), request.uri))
}

/// The cause of a request without a response.
pub(super) struct TransportFailure {
    /// The text of Go: the innermost cause, with the step that failed.
    pub(super) words: String,
    /// Whether the server, or a proxy, closed the connection instead of answering.
    pub(super) is_closed_connection: bool,
}

/// A cause that Go has words for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TransportCause {
    Eof,
    UnexpectedEof,
    TimedOut,
    BodyAborted,
    Refused,
    Reset,
    BrokenPipe,
    HostUnreachable,
    NetworkUnreachable,
}

impl TransportCause {
    fn words(self) -> &'static str {
        match self {
            Self::Eof => "EOF",
            Self::UnexpectedEof => "unexpected EOF",
            Self::TimedOut => "i/o timeout",
            Self::BodyAborted => "http: request body aborted",
            Self::Refused => "connection refused",
            Self::Reset => "connection reset by peer",
            Self::BrokenPipe => "broken pipe",
            Self::HostUnreachable => "no route to host",
            Self::NetworkUnreachable => "network is unreachable",
        }
    }
}

/// The cause of a failure, in the words of Go.
pub(super) fn describe(error: &(dyn Error + 'static)) -> TransportFailure {
    use TransportCause as C;
    let mut dialled = None;
    let mut last = error;
    loop {
        let text = last.to_string();
        if text == "tcp connect error" {
            dialled = Some(address(last).unwrap_or_default());
        } else if text == "dns error" {
            dialled = Some(": lookup".to_owned());
        }
        if let Some(cause) = known(last) {
            let is_closed_connection = match cause {
                C::Eof | C::UnexpectedEof => true,
                C::Reset | C::BrokenPipe => dialled.is_none(),
                _ => false,
            };
            let words = match dialled {
                Some(address) => format!("dial tcp{address}: connect: {}", cause.words()),
                None => cause.words().to_owned(),
            };
            return TransportFailure { words, is_closed_connection };
        }
        let Some(next) = last.source() else { break };
        last = next;
    }
    let words = match dialled {
        Some(address) => format!("dial tcp{address}: {last}"),
        None => last.to_string(),
    };
    TransportFailure { words, is_closed_connection: false }
}

/// Whether an error, or what caused it, is an `E`.
pub(super) fn is_caused_by<E: Error + 'static>(error: &(dyn Error + 'static)) -> bool {
    let mut next = Some(error);
    while let Some(error) = next {
        if error.is::<E>() {
            return true;
        }
        next = error.source();
    }
    false
}

/// The address is visible only in the connector's debug form: `ConnectError("tcp connect error", 127.0.0.1:1, …)`.
fn address(error: &(dyn Error + 'static)) -> Option<String> {
    let debug = format!("{error:?}");
    let field = debug.split(", ").nth(1)?;
    field.parse::<std::net::SocketAddr>().ok().map(|address| format!(" {address}"))
}

fn known(error: &(dyn Error + 'static)) -> Option<TransportCause> {
    if let Some(error) = error.downcast_ref::<hyper::Error>() {
        if error.is_incomplete_message() {
            // The response never began. The source of an error in a body is an `io::Error` of kind `UnexpectedEof`.
            return Some(TransportCause::Eof);
        }
        if error.is_timeout() {
            return Some(TransportCause::TimedOut);
        }
        if error.is_body_write_aborted() {
            return Some(TransportCause::BodyAborted);
        }
    }
    match error.downcast_ref::<std::io::Error>()?.kind() {
        ErrorKind::ConnectionRefused => Some(TransportCause::Refused),
        ErrorKind::ConnectionReset => Some(TransportCause::Reset),
        ErrorKind::BrokenPipe => Some(TransportCause::BrokenPipe),
        ErrorKind::TimedOut => Some(TransportCause::TimedOut),
        ErrorKind::UnexpectedEof => Some(TransportCause::UnexpectedEof),
        ErrorKind::HostUnreachable => Some(TransportCause::HostUnreachable),
        ErrorKind::NetworkUnreachable => Some(TransportCause::NetworkUnreachable),
        _ => None,
    }
}
