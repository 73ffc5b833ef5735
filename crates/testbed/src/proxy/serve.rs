//! The port of a proxy, and what happens to each request.

use std::sync::Arc;
use std::time::Duration;

use http::header::{ACCEPT, CONTENT_LENGTH, CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use http::request::Parts;
use http::{HeaderMap, Method, Request, Response, StatusCode};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use localkube::listen;
use localkube::request::Query;
use serde_json::json;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, oneshot};

use super::body::{self, Body, End};
use super::rule::{Fault, Sentence};
use super::{ProxyShared, Remembered};

/// How long a client may take until its first byte.
const FIRST_BYTE_TIMEOUT: Duration = Duration::from_secs(10);

/// The first byte of every TLS connection.
const TLS_HANDSHAKE_BYTE: u8 = 0x16;

/// The connection is closed instead of an answer.
#[derive(Debug, thiserror::Error)]
#[error("closed on purpose")]
struct Closed;

/// Serves every connection; they end with this task.
pub(super) async fn accept(listener: TcpListener, shared: Arc<ProxyShared>) {
    listen::accept(listener, |stream| connection(stream, Arc::clone(&shared))).await;
}

async fn connection(stream: TcpStream, shared: Arc<ProxyShared>) {
    let mut first = [0];
    let Ok(Ok(1)) = tokio::time::timeout(FIRST_BYTE_TIMEOUT, stream.peek(&mut first)).await else { return };
    if first == [TLS_HANDSHAKE_BYTE] {
        let Some(stream) = listen::handshake(&shared.tls, stream).await else { return };
        serve(stream, shared).await;
    } else {
        serve(stream, shared).await;
    }
}

async fn serve(stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static, shared: Arc<ProxyShared>) {
    // HTTP/2 would close one stream alone.
    let closed = Arc::new(Notify::new());
    let service = {
        let closed = Arc::clone(&closed);
        service_fn(move |request: Request<Incoming>| {
            let (shared, closed) = (Arc::clone(&shared), Arc::clone(&closed));
            async move {
                let answer = respond(&shared, request).await;
                if answer.is_err() {
                    closed.notify_one();
                }
                answer
            }
        })
    };
    let builder = auto::Builder::new(TokioExecutor::new());
    let connection = builder.serve_connection(TokioIo::new(stream), service);
    tokio::select! {
        // What a client does wrong is its own affair.
        _ = connection => {}
        () = closed.notified() => {}
    }
}

async fn respond(shared: &Arc<ProxyShared>, request: Request<Incoming>) -> Result<Response<Body>, Closed> {
    let (mut parts, body) = request.into_parts();
    let (number, sentence) = {
        let mut state = shared.lock();
        (state.log.begin(&parts), state.book.judge(&parts))
    };
    let original = Arc::new(parts.clone());
    for rewrite in &sentence.rewrites {
        let path = parts.uri.path_and_query().map_or("/", |path| path.as_str());
        parts.uri = rewrite(path).parse().map_err(|_| Closed)?;
    }
    let answer = settle(shared, &original, Request::from_parts(parts, body::whole(body)), sentence).await?;
    let status = answer.status();
    shared.lock().log.answered(number, status.as_u16());
    if !matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
        return Ok(answer);
    }
    let weak = Arc::downgrade(shared);
    let keep = move |words: bytes::Bytes| {
        if let Some(shared) = weak.upgrade() {
            shared.lock().log.refused(number, &words);
        }
    };
    Ok(answer.map(|body| body::remembered(body, keep)))
}

/// Does to a request what its sentence says.
async fn settle(
    shared: &Arc<ProxyShared>,
    original: &Arc<Parts>,
    request: Request<Body>,
    sentence: Sentence,
) -> Result<Response<Body>, Closed> {
    tokio::time::sleep(sentence.delay).await;
    if let Some(mut held) = sentence.hold {
        // The sender is gone, so the request cannot be released later: it goes on.
        let _ = held.wait_for(|held| !held).await;
    }
    match sentence.fault {
        Some(Fault::Refuse) => Err(Closed),
        Some(Fault::Garbage) => Ok(json(200, "{\"kind\":\"Garbage\",\"items\":[{\"met")),
        Some(Fault::Status { code, reason, message, retry_after }) => {
            Ok(status(code, reason, &message, retry_after))
        }
        Some(Fault::LoseAnswer) => {
            if let Ok(answer) = shared.upstream.send(request).await {
                // The server has handled the request when its response is complete.
                let _ = answer.into_body().collect().await;
            }
            Err(Closed)
        }
        Some(Fault::DelayAnswer(delay)) => {
            let answer = forward(shared, original, request).await;
            tokio::time::sleep(delay).await;
            answer
        }
        Some(Fault::CutBody { after_bytes }) => {
            Ok(forward(shared, original, request).await?.map(|body| body::first(body, after_bytes, End::Cut)))
        }
        Some(Fault::StallBody { after_bytes }) => Ok(forward(shared, original, request)
            .await?
            .map(|body| body::first(body, after_bytes, End::Stall))),
        Some(Fault::StaleList) if let Some(stale) = remembered(shared, original) => Ok(stale),
        _ => forward(shared, original, request).await,
    }
}

async fn forward(
    shared: &Arc<ProxyShared>,
    original: &Arc<Parts>,
    request: Request<Body>,
) -> Result<Response<Body>, Closed> {
    // A server that is not there looks so from here, too.
    let answer = shared.upstream.send(request).await.map_err(|_| Closed)?;
    let (parts, body) = answer.into_parts();
    let body = if parts.status != StatusCode::OK || original.method != Method::GET {
        body::whole(body)
    } else if is_watch(original) {
        let content_type = parts.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let lines = content_type.is_some_and(|text| text.starts_with("application/json"));
        let (end, cut) = oneshot::channel();
        let opened = shared.lock().open_watch(Arc::clone(original), end);
        let watch = body::WatchBody { request: Arc::clone(original), lines, cut };
        let weak = Arc::downgrade(shared);
        let stalled = move |parts: &Parts| {
            weak.upgrade().is_some_and(|shared| shared.lock().book.stalls(parts, opened))
        };
        body::watched(body, watch, stalled)
    } else if let Some(key) = shared.remember.then(|| list_key(original)).flatten()
        && !shared.lock().lists.contains_key(&key)
    {
        let (shared, headers) = (Arc::downgrade(shared), parts.headers.clone());
        body::remembered(body, move |bytes| {
            if let Some(shared) = shared.upgrade() {
                shared.lock().lists.entry(key).or_insert(Remembered { headers, body: bytes });
            }
        })
    } else {
        body::whole(body)
    };
    Ok(Response::from_parts(parts, body))
}

/// The first answer that was seen for a list.
fn remembered(shared: &ProxyShared, parts: &Parts) -> Option<Response<Body>> {
    let key = list_key(parts)?;
    let Remembered { headers, body } = shared.lock().lists.get(&key).cloned()?;
    let mut response = Response::new(body::full(body));
    *response.headers_mut() = headers;
    response.headers_mut().remove(CONTENT_LENGTH);
    Some(response)
}

pub(super) fn is_watch(parts: &Parts) -> bool {
    let query = Query::parse(parts.uri.query().unwrap_or_default());
    query.is_some_and(|query| query.is_set("watch")) || parts.uri.path().contains("/watch/")
}

/// Which list is asked for, and in which form; of its query only what selects counts. None for anything else.
fn list_key(parts: &Parts) -> Option<String> {
    let list = match localkube::request::RequestPath::parse(parts.uri.path())? {
        localkube::request::RequestPath::Resource(path) => path.name.is_none(),
        _ => false,
    };
    if !list || parts.method != Method::GET || is_watch(parts) {
        return None;
    }
    let query = Query::parse(parts.uri.query().unwrap_or_default())?;
    let selected =
        ["labelSelector", "fieldSelector"].map(|name| query.get(name).unwrap_or_default().to_owned());
    let accept = header(&parts.headers, &ACCEPT);
    Some(format!("{} {selected:?} {accept}", parts.uri.path()))
}

fn header(headers: &HeaderMap, name: &http::HeaderName) -> String {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned()
}

fn status(code: u16, reason: &str, message: &str, retry_after: Option<u32>) -> Response<Body> {
    let mut object = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": message});
    if let Some(object) = object.as_object_mut() {
        if !reason.is_empty() {
            object.insert("reason".to_owned(), reason.into());
        }
        if let Some(seconds) = retry_after {
            object.insert("details".to_owned(), json!({"retryAfterSeconds": seconds}));
        }
        object.insert("code".to_owned(), code.into());
    }
    let mut response = json(code, object.to_string());
    if let Some(seconds) = retry_after {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}

fn json(code: u16, body: impl Into<bytes::Bytes>) -> Response<Body> {
    let mut response = Response::new(body::full(body));
    *response.status_mut() = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
