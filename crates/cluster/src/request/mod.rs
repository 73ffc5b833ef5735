//! Requests to the API server: the one retry policy, and errors in the words of client-go.
//!
//! The words matter: they appear in conditions and events, and people have alerts on them. Each was recorded from
//! Kubernetes' own controller talking to a server that misbehaves; `tests/mod.rs` is the table.

mod decode;
mod failure;
mod refusal;
mod shape;
#[cfg(test)]
pub(crate) mod tests;
mod transport;

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::header::{ACCEPT, CONTENT_TYPE, ETAG, IF_NONE_MATCH, RETRY_AFTER};
use http::{Method, StatusCode};
use http_body_util::BodyExt;
use kube::Client;
use kube::client::Body;
use runtime::Leadership;
use tokio::time::{Instant, sleep, timeout_at};

use crate::connect::{LeaderOnly, NotLeading, RetryMarker};
pub use crate::uri::{below, path, with_query, within};
pub use decode::{Expected, decode};
pub(crate) use shape::{GoStruct, GoType};

/// A larger response is refused, unless its request has a lower limit: 100,000 pods with their metrics need half of it.
pub const MAX_RESPONSE_BYTES: usize = 64 << 20;

/// How often client-go retries: when the server sends `Retry-After`, or when it closes the connection of a GET.
const MAX_RETRIES: u32 = 10;

/// How long client-go waits before it retries a GET whose connection was closed.
const CLOSED_CONNECTION_DELAY: Duration = Duration::from_secs(1);

/// A longer deadline or `Retry-After` is cut to this, so that adding times cannot overflow.
const MAX_REQUEST_DURATION: Duration = Duration::from_hours(1);

/// A request, not yet sent.
#[derive(Clone, Debug)]
pub struct Request {
    /// Method.
    pub method: Method,
    /// Path and query, encoded.
    pub uri: String,
    /// Resource and group in messages: `pods.metrics.k8s.io`, `deployments.apps`, `pods`.
    pub resource: String,
    /// Name of the object in messages; empty if there is none.
    pub name: String,
    /// Content type and body, where there is one.
    pub body: Option<(&'static str, Vec<u8>)>,
    /// The deadline of all attempts together, at most an hour.
    pub deadline: Duration,
    /// A larger response is refused, in bytes.
    pub max_bytes: usize,
}

/// A successful response.
#[derive(Clone, Debug, Default)]
pub struct Answer {
    /// HTTP status, from 200 to 206.
    pub code: u16,
    /// Content type; empty if the server sent none.
    pub content_type: String,
    /// The `ETag` of the response.
    pub etag: Option<String>,
    /// What took the samples of the response, if the server states it ([`api::metrics::SOURCE_HEADER`]).
    pub source: Option<String>,
    /// The whole body.
    pub body: Bytes,
}

/// What failed: the exchange with the server, or the condition under which this process may send a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApiErrorKind {
    /// The server refused the request, did not respond, or its response could not be decoded.
    Exchange,
    /// The write was not sent, or not completely, because this process is not the leader.
    NotLeading,
    /// The response is larger than the request allows.
    TooLarge,
}

/// A failed request, in the words of client-go.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ApiError {
    /// What failed.
    pub kind: ApiErrorKind,
    /// HTTP status; none if there was no response, or none that could be decoded.
    pub code: Option<u16>,
    /// `NotFound`, `Conflict`, …; empty if the server gave none.
    pub reason: String,
    /// The text.
    pub message: String,
    /// The `Retry-After` of the response.
    pub retry_after: Option<Duration>,
    /// Whether the response was a `Status`. Without one, a 404 means that the path is not served at all.
    pub is_status: bool,
}

impl ApiError {
    /// Whether the object was changed since the version that was sent.
    pub fn is_conflict(&self) -> bool {
        self.code == Some(409) && self.reason == "Conflict"
    }

    /// Whether the object, or the whole resource, does not exist.
    pub fn is_not_found(&self) -> bool {
        self.code == Some(404)
    }

    /// Whether an object with this name exists already.
    pub fn is_already_exists(&self) -> bool {
        self.code == Some(409) && self.reason == "AlreadyExists"
    }

    /// Whether the server may have carried out the request although it did not say so.
    pub fn is_unsettled(&self) -> bool {
        self.code.is_none_or(|code| code >= 500) && !self.is_not_leading()
    }

    /// Whether the request was not sent, or not completely, because this process is not the leader.
    pub fn is_not_leading(&self) -> bool {
        self.kind == ApiErrorKind::NotLeading
    }

    /// Whether the response is larger than the request allows.
    pub fn is_too_large(&self) -> bool {
        self.kind == ApiErrorKind::TooLarge
    }

    /// The refusal of a write by a process that is not the leader.
    fn not_leading() -> Self {
        Self { kind: ApiErrorKind::NotLeading, ..Self::unanswered(NotLeading.to_string()) }
    }

    /// An error without a usable response.
    pub fn unanswered(message: String) -> Self {
        Self {
            kind: ApiErrorKind::Exchange,
            code: None,
            reason: String::new(),
            message,
            retry_after: None,
            is_status: false,
        }
    }
}

impl Request {
    /// Reads `uri` within `deadline`.
    pub fn get(uri: impl Into<String>, resource: impl Into<String>, deadline: Duration) -> Self {
        Self {
            method: Method::GET,
            uri: uri.into(),
            resource: resource.into(),
            name: String::new(),
            body: None,
            deadline,
            max_bytes: MAX_RESPONSE_BYTES,
        }
    }

    /// The same, for responses of at most this size in bytes.
    pub fn max_bytes(self, max_bytes: usize) -> Self {
        Self { max_bytes, ..self }
    }

    /// The object's name in messages.
    pub fn named(self, name: impl Into<String>) -> Self {
        Self { name: name.into(), ..self }
    }
}

/// Sends a request and returns the body of the response.
pub async fn send(client: &Client, request: Request) -> Result<Bytes, ApiError> {
    exchange(client, &request).await.map(|answer| answer.body)
}

/// Sends a request and returns the whole response, within the deadline.
pub async fn exchange(client: &Client, request: &Request) -> Result<Answer, ApiError> {
    exchange_as(client, request, "application/json").await
}

/// As [`send`], but only while this process is the leader, see [`exchange_leading`].
pub async fn send_leading(
    client: &Client,
    request: Request,
    leadership: &Leadership,
) -> Result<Bytes, ApiError> {
    exchange_leading(client, &request, leadership).await.map(|answer| answer.body)
}

/// As [`exchange`], but only while this process is the leader: checked before each attempt, when the limiter admits it, and when
/// its body is sent. An attempt under way is abandoned at the end of the term, so that its deadline is never later.
pub async fn exchange_leading(
    client: &Client,
    request: &Request,
    leadership: &Leadership,
) -> Result<Answer, ApiError> {
    // In a box, as in `exchange_as`.
    let answer = Box::pin(retry(client, request, "application/json", None, Some(leadership)));
    tokio::select! {
        biased;
        () = leadership.lost() => Err(ApiError::not_leading()),
        answer = answer => answer,
    }
}

/// As [`exchange`], but requests only the metadata of an object; a server that does not know `PartialObjectMetadata` sends
/// the whole object.
pub async fn metadata(client: &Client, request: &Request) -> Result<Answer, ApiError> {
    exchange_as(client, request, crate::watch::METADATA).await
}

/// As [`exchange`], with an `Accept` header.
pub(crate) async fn exchange_as(
    client: &Client,
    request: &Request,
    accept: &str,
) -> Result<Answer, ApiError> {
    // In a box, because the futures of polls and reconciles contain requests that most of them do not send.
    Box::pin(retry(client, request, accept, None, None)).await
}

/// Gets a document unless its `ETag` is still `etag`: none if it is.
pub(crate) async fn get_if_changed(
    client: &Client,
    request: &Request,
    accept: &str,
    etag: Option<&str>,
) -> Result<Option<Answer>, ApiError> {
    match retry(client, request, accept, etag, None).await {
        Ok(answer) => Ok(Some(answer)),
        Err(error) if error.code == Some(304) && etag.is_some() => Ok(None),
        Err(error) => Err(error),
    }
}

/// Why an attempt failed, and after how long it may be retried.
struct FailedAttempt {
    error: ApiError,
    retry_after: Option<Duration>,
}

/// The extensions of an attempt, which the layers of the client read.
#[derive(Clone, Copy)]
struct AttemptExtensions<'a> {
    is_retry: bool,
    leadership: Option<&'a Leadership>,
}

/// Sends a request until it succeeds, must not be retried, or its deadline is over. This is the only retry layer: at most
/// `1 + MAX_RETRIES` sends.
async fn retry(
    client: &Client,
    request: &Request,
    accept: &str,
    etag: Option<&str>,
    leadership: Option<&Leadership>,
) -> Result<Answer, ApiError> {
    let until = Instant::now() + request.deadline.min(MAX_REQUEST_DURATION);
    let mut retries = 0;
    let mut last = None;
    loop {
        if leadership.is_some_and(|leadership| !leadership.is_leader()) {
            return Err(ApiError::not_leading());
        }
        let extensions = AttemptExtensions { is_retry: retries > 0, leadership };
        let failed = match timeout_at(until, attempt(client, request, accept, etag, extensions)).await {
            Ok(Ok(answer)) => return Ok(answer),
            Ok(Err(failed)) => failed,
            // An earlier error of the server says more than the timeout of the last attempt.
            Err(_) => {
                return Err(last.unwrap_or_else(|| transport::failure(request, "context deadline exceeded")));
            }
        };
        let Some(wait) = failed.retry_after else { return Err(failed.error) };
        retries += 1;
        if retries > MAX_RETRIES || Instant::now() + wait >= until {
            return Err(failed.error);
        }
        last = Some(failed.error);
        sleep(wait).await;
    }
}

async fn attempt(
    client: &Client,
    request: &Request,
    accept: &str,
    etag: Option<&str>,
    extensions: AttemptExtensions<'_>,
) -> Result<Answer, FailedAttempt> {
    let mut built =
        build(request, accept, etag).map_err(|error| FailedAttempt { error, retry_after: None })?;
    if extensions.is_retry {
        built.extensions_mut().insert(RetryMarker);
    }
    if let Some(leadership) = extensions.leadership {
        built.extensions_mut().insert(LeaderOnly(leadership.clone()));
    }
    let response = client.send(built).await.map_err(|e| {
        if transport::is_caused_by::<NotLeading>(&e) {
            return FailedAttempt { error: ApiError::not_leading(), retry_after: None };
        }
        let failure = transport::describe(&e);
        // A write may have succeeded before the connection was closed, so only a GET is retried.
        let again = request.method == Method::GET && failure.is_closed_connection;
        let retry_after = again.then_some(CLOSED_CONNECTION_DELAY);
        FailedAttempt { error: transport::failure(request, &failure.words), retry_after }
    })?;
    let (head, body) = response.into_parts();
    let header = |name| head.headers.get(name).and_then(|value| value.to_str().ok());
    let content_type = header(CONTENT_TYPE).unwrap_or_default().to_owned();
    let etag = header(ETAG).map(str::to_owned);
    let source = header_text(&head.headers, api::metrics::SOURCE_HEADER);
    let wait = header(RETRY_AFTER).and_then(|text| text.trim().parse().ok());
    let wait = wait.map(|seconds| Duration::from_secs(seconds).min(MAX_REQUEST_DURATION));
    let body =
        collect(body, request.max_bytes).await.map_err(|error| FailedAttempt { error, retry_after: None })?;
    if !(StatusCode::OK..=StatusCode::PARTIAL_CONTENT).contains(&head.status) {
        let error = refusal::read(request, head.status.as_u16(), &content_type, &body, wait);
        let retry_after = error.retry_after;
        return Err(FailedAttempt { error, retry_after });
    }
    Ok(Answer { code: head.status.as_u16(), content_type, etag, source, body })
}

/// A header as text of limited length: it is recorded and shown to people.
fn header_text(headers: &http::HeaderMap, name: &str) -> Option<String> {
    const MAX_CHARS: usize = 300;
    let text = String::from_utf8_lossy(headers.get(name)?.as_bytes());
    let shown: String = text.chars().filter(|c| !c.is_control()).take(MAX_CHARS).collect();
    (!shown.is_empty()).then_some(shown)
}

fn build(request: &Request, accept: &str, etag: Option<&str>) -> Result<http::Request<Body>, ApiError> {
    let mut builder =
        http::Request::builder().method(&request.method).uri(&request.uri).header(ACCEPT, accept);
    if let Some(etag) = etag {
        builder = builder.header(IF_NONE_MATCH, etag);
    }
    let mut bytes = Vec::new();
    if let Some((kind, body)) = &request.body {
        builder = builder.header(CONTENT_TYPE, *kind);
        bytes.clone_from(body);
    }
    builder
        .body(Body::from(bytes))
        .map_err(|e| ApiError::unanswered(format!("cannot ask for {:?}: {e}", request.uri)))
}

/// Reads the whole body, of at most this size.
async fn collect(mut body: Body, max_bytes: usize) -> Result<Bytes, ApiError> {
    let mut first = Bytes::new();
    let mut all = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|e| {
            let words = transport::describe(&e).words;
            ApiError::unanswered(format!(
                "unexpected error when reading response body. Please retry. Original error: {words}"
            ))
        })?;
        let Ok(data) = frame.into_data() else { continue };
        if first.len().max(all.len()) + data.len() > max_bytes {
            let error = ApiError::unanswered(format!("the answer is larger than {} MiB", max_bytes >> 20));
            return Err(ApiError { kind: ApiErrorKind::TooLarge, ..error });
        }
        // Most bodies are one frame, which need not be copied.
        if all.is_empty() && first.is_empty() {
            first = data;
        } else {
            if all.is_empty() {
                all.extend_from_slice(&first);
            }
            all.extend_from_slice(&data);
        }
    }
    Ok(if all.is_empty() { first } else { all.freeze() })
}
