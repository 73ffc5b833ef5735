//! HTTP responses, shared by the API server and the metrics APIs.

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderValue};
use http::{Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};

/// The media type of plain text.
pub(crate) const PLAIN_TEXT: &str = "text/plain; charset=utf-8";

/// An error while a body is sent or received.
pub(crate) type BodyError = Box<dyn std::error::Error + Send + Sync>;

/// The body of a response.
pub(crate) type ResponseBody = UnsyncBoxBody<Bytes, BodyError>;

/// A complete response.
pub(crate) fn respond(
    code: u16,
    content_type: &'static str,
    body: impl Into<Bytes>,
) -> Response<ResponseBody> {
    let body = Full::new(body.into()).map_err(|never| match never {});
    let mut response = Response::new(body.boxed_unsync());
    *response.status_mut() = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}
