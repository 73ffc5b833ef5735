//! Responses and their common headers.

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER};
use http::{Response, StatusCode};
use serde::Serialize;

pub use crate::body::{Body, BodyError, full};
use crate::encode::{self, Choice, Encoding};
use crate::status::Status;

/// The content type of JSON.
pub const JSON: &str = "application/json";

/// A response with a content type.
pub fn with_type(code: u16, content_type: &str, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    let plain = HeaderValue::from_static("text/plain; charset=utf-8");
    headers.insert(CONTENT_TYPE, HeaderValue::from_str(content_type).unwrap_or(plain));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    // Browsers must not interpret a response as HTML.
    headers.insert(HeaderName::from_static("x-content-type-options"), HeaderValue::from_static("nosniff"));
    response
}

/// Plain text.
pub fn text(code: u16, text: impl Into<Bytes>) -> Response<Body> {
    with_type(code, "text/plain; charset=utf-8", full(text))
}

/// An object as one line of JSON, as Kubernetes sends it.
pub fn json<T: Serialize + ?Sized>(code: u16, value: &T) -> Response<Body> {
    match serde_json::to_vec(value) {
        Ok(mut bytes) => {
            bytes.push(b'\n');
            with_type(code, JSON, full(bytes))
        }
        Err(error) => status(&Status::internal(&error.to_string())),
    }
}

/// An error as JSON. The status is also an extension, from which the router encodes it as the client accepts.
pub fn status(status: &Status) -> Response<Body> {
    let choice = Choice { encoding: Encoding::Json, pretty: false, form: None };
    let mut response = presented(status, choice);
    response.extensions_mut().insert(status.clone());
    response
}

/// An error in the negotiated encoding.
pub(crate) fn presented(status: &Status, choice: Choice) -> Response<Body> {
    let body = full(encode::encode(status, choice));
    let mut response = with_type(status.code, choice.encoding.content_type(), body);
    if let Some(seconds) = status.retry_after {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}
