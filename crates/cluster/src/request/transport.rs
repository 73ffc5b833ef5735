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

/// The text of Go for this failure: the innermost cause, with the step that failed.
pub(super) fn words(error: &(dyn Error + 'static)) -> String {
    let mut dialled = None;
    let mut last = error;
    loop {
        let text = last.to_string();
        if text == "tcp connect error" {
            dialled = Some(address(last).unwrap_or_default());
        } else if text == "dns error" {
            dialled = Some(": lookup".to_owned());
        }
        if let Some(words) = known(last) {
            return match dialled {
                Some(address) => format!("dial tcp{address}: connect: {words}"),
                None => words,
            };
        }
        let Some(next) = last.source() else { break };
        last = next;
    }
    match dialled {
        Some(address) => format!("dial tcp{address}: {last}"),
        None => last.to_string(),
    }
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

/// Whether the server, or a proxy, closed the connection instead of answering.
pub(super) fn is_closed_connection(words: &str) -> bool {
    words.ends_with("EOF") || words == "connection reset by peer" || words == "broken pipe"
}

/// The address is visible only in the connector's debug form: `ConnectError("tcp connect error", 127.0.0.1:1, …)`.
fn address(error: &(dyn Error + 'static)) -> Option<String> {
    let debug = format!("{error:?}");
    let field = debug.split(", ").nth(1)?;
    field.parse::<std::net::SocketAddr>().ok().map(|address| format!(" {address}"))
}

fn known(error: &(dyn Error + 'static)) -> Option<String> {
    if let Some(error) = error.downcast_ref::<hyper::Error>() {
        if error.is_incomplete_message() {
            // Go distinguishes a response that never began from one that was cut off.
            return Some(
                if error.to_string().contains("body") { "unexpected EOF" } else { "EOF" }.to_owned(),
            );
        }
        if error.is_timeout() {
            return Some("i/o timeout".to_owned());
        }
        if error.is_body_write_aborted() {
            return Some("http: request body aborted".to_owned());
        }
    }
    let io = error.downcast_ref::<std::io::Error>()?;
    let words = match io.kind() {
        ErrorKind::ConnectionRefused => "connection refused",
        ErrorKind::ConnectionReset => "connection reset by peer",
        ErrorKind::BrokenPipe => "broken pipe",
        ErrorKind::TimedOut => "i/o timeout",
        ErrorKind::UnexpectedEof => "unexpected EOF",
        ErrorKind::HostUnreachable => "no route to host",
        ErrorKind::NetworkUnreachable => "network is unreachable",
        _ => return None,
    };
    Some(words.to_owned())
}
