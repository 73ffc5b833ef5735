//! Requests and responses.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use http_body_util::BodyExt as _;
use hyper::body::{Body as _, Incoming};
use tokio::time::{Instant, timeout_at};

use super::budget::{ByteBudget, ByteShare, UNCOUNTED_BYTES};
use super::error::{HttpError, HttpErrorCause, classify};

/// Limits of a response unless the request sets its own.
const DEFAULT_RESPONSE_TIMEOUT: Duration = Duration::from_secs(30);
const DEFAULT_MAX_RESPONSE_BYTES: usize = 64 << 20;

/// A request to a server.
#[derive(Clone, Debug)]
pub struct HttpRequest {
    pub(super) method: Method,
    pub(super) path: String,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
    pub(super) timeout: Duration,
    pub(super) max_bytes: usize,
    pub(super) budget: Option<ByteBudget>,
}

impl HttpRequest {
    /// A request; `path` may have a query and is appended to the path of the endpoint.
    pub fn new(method: Method, path: impl Into<String>) -> Self {
        let headers = HeaderMap::new();
        Self {
            method,
            path: path.into(),
            headers,
            body: Bytes::new(),
            timeout: DEFAULT_RESPONSE_TIMEOUT,
            max_bytes: DEFAULT_MAX_RESPONSE_BYTES,
            budget: None,
        }
    }

    /// A GET request.
    pub fn get(path: impl Into<String>) -> Self {
        Self::new(Method::GET, path)
    }

    /// Adds a header.
    pub fn header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.append(name, value);
        self
    }

    /// Adds headers.
    pub fn headers(mut self, headers: HeaderMap) -> Self {
        self.headers.extend(headers);
        self
    }

    /// Sets the body.
    pub fn body(mut self, body: impl Into<Bytes>) -> Self {
        self.body = body.into();
        self
    }

    /// Limits the time until the last byte of the response.
    pub fn timeout(mut self, time: Duration) -> Self {
        self.timeout = time;
        self
    }

    /// Limits the size of the response body.
    pub fn max_bytes(mut self, bytes: usize) -> Self {
        self.max_bytes = bytes;
        self
    }

    /// Does not limit the size of the response body, for callers that stream it and keep a bounded part.
    pub fn unlimited_stream(self) -> Self {
        self.max_bytes(usize::MAX)
    }

    /// Takes the memory of a response that is read as a whole from a budget; the response waits for its share within its timeout.
    pub fn budget(mut self, budget: ByteBudget) -> Self {
        self.budget = Some(budget);
        self
    }

    /// Method.
    pub fn method(&self) -> &Method {
        &self.method
    }

    /// Path and query, without the path of the endpoint.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Body of the request.
    pub fn payload(&self) -> &Bytes {
        &self.body
    }
}

/// A response with its whole body.
#[derive(Clone, Debug)]
pub struct HttpResponse {
    /// Status code.
    pub status: StatusCode,
    /// Headers.
    pub headers: HeaderMap,
    /// Body.
    pub body: Bytes,
}

/// A response whose body is read in chunks.
pub struct StreamedResponse {
    /// Status code.
    pub status: StatusCode,
    /// Headers.
    pub headers: HeaderMap,
    pub(super) source: BodySource,
    pub(super) server: Arc<str>,
    pub(super) started: Instant,
    pub(super) deadline: Instant,
    pub(super) left: usize,
    pub(super) max_bytes: usize,
}

pub(super) enum BodySource {
    Wire(Incoming),
    Pieces(VecDeque<Bytes>),
}

impl StreamedResponse {
    /// A response from memory, for fake servers in tests.
    pub fn from_chunks(status: StatusCode, pieces: impl IntoIterator<Item = Bytes>) -> Self {
        let now = Instant::now();
        Self {
            status,
            headers: HeaderMap::new(),
            source: BodySource::Pieces(pieces.into_iter().collect()),
            server: Arc::from(""),
            started: now,
            deadline: now + DEFAULT_RESPONSE_TIMEOUT,
            left: usize::MAX,
            max_bytes: usize::MAX,
        }
    }

    /// Next chunk of the body; `None` at its end.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, HttpError> {
        let fail = |server: &str, cause| Err(HttpError::new(server, cause));
        loop {
            let piece = match &mut self.source {
                BodySource::Pieces(pieces) => return Ok(pieces.pop_front()),
                BodySource::Wire(body) => match timeout_at(self.deadline, body.frame()).await {
                    Err(_) => {
                        return fail(&self.server, HttpErrorCause::TimedOut(self.deadline - self.started));
                    }
                    Ok(None) => return Ok(None),
                    Ok(Some(Err(error))) => return fail(&self.server, classify(&error)),
                    Ok(Some(Ok(frame))) => frame.into_data(),
                },
            };
            // Trailers are ignored.
            let Ok(piece) = piece else { continue };
            match self.left.checked_sub(piece.len()) {
                Some(left) => self.left = left,
                None => return fail(&self.server, HttpErrorCause::TooLarge(self.max_bytes)),
            }
            return Ok(Some(piece));
        }
    }

    /// Reads the rest of the body with memory of a budget. A body of unknown length takes as much as it may have.
    pub(super) async fn rest_within(&mut self, budget: &ByteBudget) -> Result<Bytes, HttpError> {
        let mut all = Vec::new();
        let mut share = None;
        let announced = self.announced().min(self.left);
        if announced > UNCOUNTED_BYTES {
            share = self.share(budget, announced).await?;
            all.reserve_exact(announced);
        }
        while let Some(piece) = self.chunk().await? {
            let length = all.len() + piece.len();
            if share.is_none() {
                if all.is_empty() && length <= UNCOUNTED_BYTES && self.is_over() {
                    return Ok(piece);
                }
                if length > UNCOUNTED_BYTES {
                    share = self.share(budget, self.max_bytes).await?;
                    // A vector that grows copies its content each time. Memory that is never written is not resident.
                    let reserved = self.max_bytes.min(DEFAULT_MAX_RESPONSE_BYTES);
                    all.reserve_exact(reserved.saturating_sub(all.len()));
                }
            }
            all.extend_from_slice(&piece);
        }
        Ok(match share {
            Some(share) => share.attach(all),
            None => all.into(),
        })
    }

    async fn share(&self, budget: &ByteBudget, bytes: usize) -> Result<Option<ByteShare>, HttpError> {
        let late = |_| HttpError::new(&self.server, HttpErrorCause::TimedOut(self.deadline - self.started));
        timeout_at(self.deadline, budget.share(bytes)).await.map_err(late)
    }

    /// Whether the body has ended, as far as that is known without reading.
    fn is_over(&self) -> bool {
        match &self.source {
            BodySource::Wire(body) => body.is_end_stream(),
            BodySource::Pieces(pieces) => pieces.is_empty(),
        }
    }

    /// Reads the rest of the body.
    pub async fn rest(&mut self) -> Result<Bytes, HttpError> {
        let Some(first) = self.chunk().await? else { return Ok(Bytes::new()) };
        let Some(second) = self.chunk().await? else { return Ok(first) };
        let mut all = BytesMut::from(first);
        all.extend_from_slice(&second);
        while let Some(piece) = self.chunk().await? {
            all.extend_from_slice(&piece);
        }
        Ok(all.freeze())
    }

    /// Lower bound of the body size, from `Content-Length`.
    pub(super) fn announced(&self) -> usize {
        match &self.source {
            BodySource::Wire(body) => usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX),
            BodySource::Pieces(pieces) => pieces.iter().map(Bytes::len).sum(),
        }
    }
}
