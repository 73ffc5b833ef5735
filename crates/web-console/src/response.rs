//! Responses with the headers that every page has.

use std::io::Write as _;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use http::header::{
    ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderMap,
    HeaderName, HeaderValue, REFERRER_POLICY, VARY, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use http::{Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full};

/// An error while a body is sent.
pub(crate) type BodyError = Box<dyn std::error::Error + Send + Sync>;

/// The body of a response.
pub type ResponseBody = UnsyncBoxBody<Bytes, Box<dyn std::error::Error + Send + Sync>>;

/// Only our own files: no inline script or style, no other host, no frame around us.
pub(crate) const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
                                 connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
/// Smaller answers are not compressed.
const MIN_COMPRESSED_BYTES: usize = 4096;

/// A response with a content type and the headers of all pages.
pub(crate) fn with_type(
    code: StatusCode,
    content_type: &'static str,
    body: ResponseBody,
) -> Response<ResponseBody> {
    let mut response = Response::new(body);
    *response.status_mut() = code;
    let headers = response.headers_mut();
    for (name, value) in [
        (CONTENT_TYPE, content_type),
        (CONTENT_SECURITY_POLICY, POLICY),
        (CACHE_CONTROL, "no-store"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (X_FRAME_OPTIONS, "DENY"),
        (REFERRER_POLICY, "no-referrer"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

/// A body of known bytes.
pub(crate) fn full(bytes: impl Into<Bytes>) -> ResponseBody {
    Full::new(bytes.into()).map_err(|never| match never {}).boxed_unsync()
}

/// JSON, compressed if it is long and the client accepts gzip.
pub(crate) fn json(
    code: StatusCode,
    value: &serde_json::Value,
    accepts: &HeaderMap,
) -> Response<ResponseBody> {
    let bytes = value.to_string().into_bytes();
    let packed = (bytes.len() >= MIN_COMPRESSED_BYTES && accepts_gzip(accepts))
        .then(|| gzip(&bytes, Compression::fast()));
    let is_packed = packed.is_some();
    let mut response = with_type(code, "application/json", full(packed.unwrap_or(bytes)));
    if is_packed {
        mark_compressed(&mut response);
    }
    response
}

/// An error as the frontend reads it.
pub(crate) fn failure(code: StatusCode, message: &str) -> Response<ResponseBody> {
    json(code, &serde_json::json!({"message": message}), &HeaderMap::new())
}

pub(crate) fn mark_compressed(response: &mut Response<ResponseBody>) {
    let headers = response.headers_mut();
    headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    headers.insert(VARY, HeaderValue::from_static("Accept-Encoding"));
}

pub(crate) fn accepts_gzip(headers: &HeaderMap) -> bool {
    let values = headers.get_all(ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|text| text.split(',')).any(|coding| {
        let mut parts = coding.split(';').map(str::trim);
        parts.next() == Some("gzip") && parts.next() != Some("q=0")
    })
}

/// Compresses bytes; writing to memory cannot fail.
pub(crate) fn gzip(bytes: &[u8], level: Compression) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), level);
    let _ = encoder.write_all(bytes);
    encoder.finish().unwrap_or_default()
}
