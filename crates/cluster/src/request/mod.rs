//! One request to the API server, and errors in the words of client-go.
//!
//! The words matter: they end up in conditions and events, and people have alerts on them. Each was read off Kubernetes'
//! own controller talking to a server that misbehaves; `tests.rs` is the table.

mod decode;
mod refusal;
mod shape;
#[cfg(test)]
pub(crate) mod tests;
mod transport;
mod uri;

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::header::{ACCEPT, CONTENT_TYPE, ETAG, IF_NONE_MATCH, RETRY_AFTER};
use http::{Method, StatusCode};
use http_body_util::BodyExt;
use kube::Client;
use kube::client::Body;
use tokio::time::{Instant, sleep, timeout_at};

pub use decode::{Expected, decode};
pub(crate) use shape::{Kind, Shape};
pub use uri::{path, with_query};

/// No answer that we ask for is larger: 100,000 pods with their metrics are half of it.
pub const LARGEST_ANSWER: usize = 64 << 20;

/// How often client-go tries again: when the server asks to, or when it hung up on somebody who was only reading.
const RETRIES: u32 = 10;

/// How long client-go waits before it asks a server again that hung up.
const HUNG_UP: Duration = Duration::from_secs(1);

/// No deadline and no pause is longer, so that times can be added without fear.
const LONGEST: Duration = Duration::from_hours(1);

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
    /// When to give up, after an hour at the latest.
    pub deadline: Duration,
}

/// What came back from a server that was content.
#[derive(Clone, Debug, Default)]
pub struct Answer {
    /// HTTP status, in the range of success.
    pub code: u16,
    /// Content type; empty if the server did not tell.
    pub content_type: String,
    /// The version of the answer, where the server tells.
    pub etag: Option<String>,
    /// The whole body.
    pub body: Bytes,
}

/// What went wrong, worded as client-go words it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ApiError {
    /// HTTP status; 0 if there was no answer.
    pub code: u16,
    /// `NotFound`, `Conflict`, …; empty if there was no answer.
    pub reason: String,
    /// Text.
    pub message: String,
    /// How long the server asks us to wait.
    pub retry_after: Option<Duration>,
}

impl ApiError {
    /// Whether somebody else wrote in between.
    pub fn is_conflict(&self) -> bool {
        self.code == 409 && self.reason == "Conflict"
    }

    /// Whether the object, or the whole resource, is not there.
    pub fn is_not_found(&self) -> bool {
        self.code == 404
    }

    /// No answer, or none that can be used.
    pub(crate) fn unanswered(message: String) -> Self {
        Self { code: 0, reason: String::new(), message, retry_after: None }
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
        }
    }

    /// The object's name in messages.
    pub fn named(self, name: impl Into<String>) -> Self {
        Self { name: name.into(), ..self }
    }
}

/// Sends a request and waits for the whole answer.
pub async fn send(client: &Client, request: Request) -> Result<Bytes, ApiError> {
    exchange(client, &request).await.map(|answer| answer.body)
}

/// Sends a request and waits for the whole answer, all within the deadline.
pub async fn exchange(client: &Client, request: &Request) -> Result<Answer, ApiError> {
    let until = Instant::now() + request.deadline.min(LONGEST);
    persist(request, until, || attempt(client, request, "application/json", None)).await
}

/// As [`exchange`], but asks for the metadata of an object alone; a server that does not know that form sends everything.
pub async fn metadata(client: &Client, request: &Request) -> Result<Answer, ApiError> {
    exchange_as(client, request, crate::watch::METADATA).await
}

/// As [`exchange`], but asks for a form of its own.
pub(crate) async fn exchange_as(
    client: &Client,
    request: &Request,
    accept: &str,
) -> Result<Answer, ApiError> {
    let until = Instant::now() + request.deadline.min(LONGEST);
    persist(request, until, || attempt(client, request, accept, None)).await
}

/// Asks for a document that accepts `accept`; none if it is still the one with this tag.
pub(crate) async fn ask_again(
    client: &Client,
    request: &Request,
    accept: &str,
    etag: Option<&str>,
) -> Result<Option<Answer>, ApiError> {
    let until = Instant::now() + request.deadline.min(LONGEST);
    match persist(request, until, || attempt(client, request, accept, etag)).await {
        Ok(answer) => Ok(Some(answer)),
        Err(error) if error.code == 304 && etag.is_some() => Ok(None),
        Err(error) => Err(error),
    }
}

/// Why an attempt failed, and after how long another one makes sense.
struct Setback {
    error: ApiError,
    again: Option<Duration>,
}

/// Tries until it works, until another attempt makes no sense, or until the deadline.
async fn persist<F>(
    request: &Request,
    until: Instant,
    mut attempt: impl FnMut() -> F,
) -> Result<Answer, ApiError>
where
    F: Future<Output = Result<Answer, Setback>>,
{
    let mut tries = 0;
    let mut last = None;
    loop {
        let setback = match timeout_at(until, attempt()).await {
            Ok(Ok(answer)) => return Ok(answer),
            Ok(Err(setback)) => setback,
            // What the server said before tells more than that it was slow at the end.
            Err(_) => {
                return Err(last.unwrap_or_else(|| transport::failure(request, "context deadline exceeded")));
            }
        };
        let Some(wait) = setback.again else { return Err(setback.error) };
        tries += 1;
        if tries > RETRIES || Instant::now() + wait >= until {
            return Err(setback.error);
        }
        last = Some(setback.error);
        sleep(wait).await;
    }
}

async fn attempt(
    client: &Client,
    request: &Request,
    accept: &str,
    etag: Option<&str>,
) -> Result<Answer, Setback> {
    let built = build(request, accept, etag).map_err(|error| Setback { error, again: None })?;
    let response = client.send(built).await.map_err(|e| {
        let words = transport::words(&e);
        // A server that hung up may have done what it was asked, so only reading is repeated.
        let again = request.method == Method::GET && transport::hung_up(&words);
        Setback { error: transport::failure(request, &words), again: again.then_some(HUNG_UP) }
    })?;
    let (head, body) = response.into_parts();
    let header = |name| head.headers.get(name).and_then(|value| value.to_str().ok());
    let content_type = header(CONTENT_TYPE).unwrap_or_default().to_owned();
    let etag = header(ETAG).map(str::to_owned);
    let wait = header(RETRY_AFTER).and_then(|text| text.trim().parse().ok());
    let wait = wait.map(|seconds| Duration::from_secs(seconds).min(LONGEST));
    let body = collect(body).await.map_err(|error| Setback { error, again: None })?;
    if !(StatusCode::OK..=StatusCode::PARTIAL_CONTENT).contains(&head.status) {
        let error = refusal::read(request, head.status.as_u16(), &content_type, &body, wait);
        let again = error.retry_after;
        return Err(Setback { error, again });
    }
    Ok(Answer { code: head.status.as_u16(), content_type, etag, body })
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

/// The whole body, in one piece and within bounds.
async fn collect(mut body: Body) -> Result<Bytes, ApiError> {
    let mut first = Bytes::new();
    let mut all = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|e| {
            let words = transport::words(&e);
            ApiError::unanswered(format!(
                "unexpected error when reading response body. Please retry. Original error: {words}"
            ))
        })?;
        let Ok(data) = frame.into_data() else { continue };
        if first.len().max(all.len()) + data.len() > LARGEST_ANSWER {
            let most = LARGEST_ANSWER >> 20;
            return Err(ApiError::unanswered(format!("the answer is larger than {most} MiB")));
        }
        // Most answers come in one frame, which need not be copied.
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
