//! Routes: the frontend's files for everybody on this machine, `/api` for its session.

use std::sync::Arc;

use bytes::Bytes;
use futures::StreamExt as _;
use futures::future::BoxFuture;
use http::header::{HeaderMap, HeaderValue, LOCATION, SET_COOKIE};
use http::request::Parts;
use http::{Method, Request, Response, StatusCode};
use http_body::Frame;
use http_body_util::{BodyExt as _, Limited, StreamBody};
use serde_json::Value;

use crate::access::{Access, Refusal};
use crate::assets::Assets;
use crate::feed::Feed;
use crate::response::{self, BodyError, ResponseBody};

/// The size of a request's body.
const MAX_BODY_BYTES: usize = 64 * 1024;
const API: &str = "api";
const API_VERSION: &str = "v1";

/// A request about the cluster.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ApiRequest {
    /// The segments of the path below `/api/v1`, decoded.
    pub path: Vec<String>,
    /// The parameters, decoded.
    pub query: Vec<(String, String)>,
    /// The body of a request that changes something.
    pub body: Option<Value>,
}

impl ApiRequest {
    /// A parameter.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }
}

/// An error for the frontend.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ApiError {
    /// HTTP status.
    pub code: u16,
    /// The cause, and a remedy where there is one.
    pub message: String,
}

impl ApiError {
    /// An error with this status.
    pub fn new(code: u16, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }
}

/// Answers requests about the cluster.
pub trait ConsoleBackend: Send + Sync + 'static {
    /// Answers a request.
    fn answer(&self, request: ApiRequest) -> BoxFuture<'_, Result<Value, ApiError>>;
}

/// The console.
pub struct Console {
    access: Access,
    assets: Assets,
    feed: Arc<Feed>,
    backend: Box<dyn ConsoleBackend>,
}

impl Console {
    /// A console with this list and these answers.
    pub fn new(access: Access, feed: Arc<Feed>, backend: Box<dyn ConsoleBackend>) -> Self {
        Self { access, assets: Assets::new(), feed, backend }
    }

    /// The rules of access.
    pub fn access(&self) -> &Access {
        &self.access
    }

    /// Answers a request.
    pub async fn answer<B>(&self, request: Request<B>) -> Response<ResponseBody>
    where
        B: http_body::Body<Data = Bytes> + Send,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let (parts, body) = request.into_parts();
        if let Err(refusal) = self.access.check_host(&parts) {
            return refused(refusal);
        }
        let mut segments = parts.uri.path().split('/').filter(|segment| !segment.is_empty());
        match (segments.next(), segments.next()) {
            (Some(API), Some(API_VERSION)) => {
                let path = segments.map(decoded).collect();
                self.api(&parts, path, body).await
            }
            (Some(API), _) => response::failure(StatusCode::NOT_FOUND, "there is no such path"),
            (Some("assets"), Some(name)) => self.file(&parts, name),
            _ => self.page(&parts),
        }
    }

    async fn api<B>(&self, parts: &Parts, path: Vec<String>, body: B) -> Response<ResponseBody>
    where
        B: http_body::Body<Data = Bytes> + Send,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let checked = self.access.check_site(parts).and_then(|()| self.access.check_session(parts));
        if let Err(refusal) = checked {
            return refused(refusal);
        }
        let is_read = parts.method == Method::GET;
        if !is_read && parts.method != Method::POST {
            return response::failure(StatusCode::METHOD_NOT_ALLOWED, "GET or POST");
        }
        match path.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
            ["session"] if is_read => {
                return response::json(StatusCode::OK, &Value::Bool(true), &HeaderMap::new());
            }
            ["events"] if is_read => return self.events(parts),
            _ => {}
        }
        let body = if is_read {
            None
        } else {
            // Forms of other sites cannot send this type.
            let is_json = parts
                .headers
                .get(http::header::CONTENT_TYPE)
                .is_some_and(|value| value == "application/json");
            if !is_json {
                return response::failure(
                    StatusCode::UNSUPPORTED_MEDIA_TYPE,
                    "the body must be application/json",
                );
            }
            // Boxed, because the compiler cannot prove `Send` for the future of the body otherwise.
            let reading: BoxFuture<'_, _> = Box::pin(Limited::new(body, MAX_BODY_BYTES).collect());
            let Ok(read) = reading.await else {
                return response::failure(
                    StatusCode::PAYLOAD_TOO_LARGE,
                    "the body cannot be read, or is too long",
                );
            };
            match serde_json::from_slice(&read.to_bytes()) {
                Ok(value) => Some(value),
                Err(error) => return response::failure(StatusCode::BAD_REQUEST, &error.to_string()),
            }
        };
        let request = ApiRequest { path, query: parameters(parts), body };
        match self.backend.answer(request).await {
            Ok(value) => response::json(StatusCode::OK, &value, &parts.headers),
            Err(ApiError { code, message }) => {
                let code = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
                response::failure(code, &message)
            }
        }
    }

    fn events(&self, parts: &Parts) -> Response<ResponseBody> {
        let last = parts.headers.get("last-event-id").and_then(|value| value.to_str().ok());
        let frames = Arc::clone(&self.feed).events(last).map(|bytes| Ok::<_, BodyError>(Frame::data(bytes)));
        response::with_type(StatusCode::OK, "text/event-stream", StreamBody::new(frames).boxed_unsync())
    }

    fn file(&self, parts: &Parts, name: &str) -> Response<ResponseBody> {
        if !matches!(parts.method, Method::GET | Method::HEAD) {
            return response::failure(StatusCode::METHOD_NOT_ALLOWED, "GET or HEAD");
        }
        let found = self.assets.answer(name, &parts.headers);
        found.unwrap_or_else(|| response::failure(StatusCode::NOT_FOUND, "there is no such file"))
    }

    /// Every other path is a page of the frontend. A token is exchanged for a cookie and removed from the address.
    fn page(&self, parts: &Parts) -> Response<ResponseBody> {
        let parameters = parameters(parts);
        let Some((_, token)) = parameters.iter().find(|(name, _)| name == "token") else {
            return self.file(parts, "index.html");
        };
        let Some(cookie) = self.access.exchange(token) else {
            // An old address in a browser that has a session still works.
            return match self.access.check_session(parts) {
                Ok(()) => moved(parts.uri.path(), None),
                Err(_) => self.file(parts, "index.html"),
            };
        };
        moved(parts.uri.path(), Some(&cookie))
    }
}

impl std::fmt::Debug for Console {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Console").finish_non_exhaustive()
    }
}

fn moved(path: &str, cookie: Option<&str>) -> Response<ResponseBody> {
    let mut response = response::with_type(StatusCode::SEE_OTHER, "text/plain", response::full(""));
    // A path such as `//host` would lead to another host.
    let own = format!("/{}", path.trim_start_matches('/'));
    for (name, value) in [(LOCATION, Some(own.as_str())), (SET_COOKIE, cookie)] {
        if let Some(value) = value.and_then(|value| HeaderValue::from_str(value).ok()) {
            response.headers_mut().insert(name, value);
        }
    }
    response
}

fn refused(refusal: Refusal) -> Response<ResponseBody> {
    let code = match refusal {
        Refusal::Host => StatusCode::MISDIRECTED_REQUEST,
        Refusal::CrossSite => StatusCode::FORBIDDEN,
        Refusal::NoSession => StatusCode::UNAUTHORIZED,
    };
    let mut response = response::failure(code, &refusal.to_string());
    response.headers_mut().insert(http::header::VARY, HeaderValue::from_static("Cookie"));
    response
}

fn parameters(parts: &Parts) -> Vec<(String, String)> {
    let pairs = parts.uri.query().unwrap_or_default().split('&').filter(|pair| !pair.is_empty());
    pairs
        .map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            (decoded(name), decoded(&value.replace('+', " ")))
        })
        .collect()
}

/// Decodes `%2F`; what is not an escape stays.
fn decoded(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        let escape = text.get(at + 1..at + 3).filter(|_| *byte == b'%');
        match escape.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(value) => {
                out.push(value);
                at += 3;
            }
            None => {
                out.push(*byte);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests;
