//! The error of a response: the text of its `Status`, else the text of client-go for its code.

use std::time::Duration;

use api::gotext::quote;
use http::Method;
use serde::Deserialize;

use super::{ApiError, ApiErrorKind, Request};

/// How much of a body that is no `Status` is quoted.
const MAX_QUOTED_BYTES: usize = 2048;

#[derive(Deserialize)]
struct RefusalStatus {
    #[serde(default)]
    kind: Option<String>,
    #[serde(default, rename = "status")]
    outcome: Option<String>,
    #[serde(default)]
    reason: Option<String>,
    #[serde(default)]
    message: Option<String>,
    #[serde(default)]
    code: Option<i64>,
}

/// The error of a response outside of 200 to 206.
pub(super) fn read(
    request: &Request,
    code: u16,
    content_type: &str,
    body: &[u8],
    wait: Option<Duration>,
) -> ApiError {
    // client-go follows `Retry-After` only with these codes.
    let retry_after = wait.filter(|_| code == 429 || code >= 500);
    if is_json(content_type)
        && let Ok(status) = serde_json::from_slice::<RefusalStatus>(body)
        && status.kind.as_deref() == Some("Status")
        && status.outcome.as_deref() == Some("Failure")
    {
        return ApiError {
            kind: ApiErrorKind::Exchange,
            code: Some(
                status.code.and_then(|code| u16::try_from(code).ok()).filter(|c| *c > 0).unwrap_or(code),
            ),
            reason: status.reason.unwrap_or_default(),
            message: status.message.unwrap_or_default(),
            retry_after,
            is_status: true,
        };
    }
    let detail = if is_text(content_type, body) { quoted_part(body) } else { "unknown".to_owned() };
    let (reason, words) = generic(&request.method, code, &detail);
    let method = request.method.as_str().to_ascii_lowercase();
    let message = match (request.resource.as_str(), request.name.as_str()) {
        ("", _) => words,
        (resource, "") => format!("{words} ({method} {resource})"),
        (resource, name) => format!("{words} ({method} {resource} {name})"),
    };
    ApiError {
        kind: ApiErrorKind::Exchange,
        code: Some(code),
        reason: reason.to_owned(),
        message,
        retry_after,
        is_status: false,
    }
}

/// The reason and the text of client-go for a code.
fn generic(method: &Method, code: u16, detail: &str) -> (&'static str, String) {
    let (reason, words) = match code {
        400 => ("BadRequest", "the server rejected our request for an unknown reason"),
        401 => ("Unauthorized", "the server has asked for the client to provide credentials"),
        // The server's text names the user and the verb.
        403 => ("Forbidden", detail),
        404 => ("NotFound", "the server could not find the requested resource"),
        405 => ("MethodNotAllowed", "the server does not allow this method on the requested resource"),
        406 if detail == "unknown" || detail.is_empty() => {
            ("NotAcceptable", "the server was unable to respond with a content type that the client supports")
        }
        406 => ("NotAcceptable", detail),
        409 if method == Method::POST => ("AlreadyExists", "the server reported a conflict"),
        409 => ("Conflict", "the server reported a conflict"),
        415 => ("UnsupportedMediaType", detail),
        422 => ("Invalid", "the server rejected our request due to an error in our request"),
        429 => (
            "TooManyRequests",
            "the server has received too many requests and has asked us to try again later",
        ),
        503 => ("ServiceUnavailable", "the server is currently unable to handle the request"),
        504 => (
            "Timeout",
            "the server was unable to return a response in the time allotted, but may still be processing the request",
        ),
        500.. => {
            let detail = quote(detail);
            let words =
                format!("an error on the server ({detail}) has prevented the request from succeeding");
            return ("InternalError", words);
        }
        _ => {
            let words = format!(
                "the server responded with the status code {code} but did not return more information"
            );
            return ("", words);
        }
    };
    (reason, words.to_owned())
}

/// Whether a body may be JSON; one without a content type may be.
pub(super) fn is_json(content_type: &str) -> bool {
    let kind = media(content_type);
    kind.is_empty() || kind == "application/json"
}

fn media(content_type: &str) -> &str {
    content_type.split(';').next().unwrap_or_default().trim()
}

fn is_text(content_type: &str, body: &[u8]) -> bool {
    // A body without a content type counts as text unless it has a NUL byte.
    let kind = media(content_type);
    if kind.is_empty() { !body.contains(&0) } else { kind.starts_with("text/") }
}

fn quoted_part(body: &[u8]) -> String {
    String::from_utf8_lossy(body.get(..MAX_QUOTED_BYTES).unwrap_or(body)).trim().to_owned()
}
