//! The server of a proxy: accepts connections, and applies rules to requests.

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

use super::body::{self, Body, BodyEnd};
use super::rule::{AppliedRules, Fault};
use super::{ProxyShared, StoredList};

/// How long a client may take to send its first byte.
const FIRST_BYTE_TIMEOUT: Duration = Duration::from_secs(10);

/// The first byte of every TLS connection.
const TLS_HANDSHAKE_BYTE: u8 = 0x16;

/// The error that closes the connection without a response.
#[derive(Debug, thiserror::Error)]
#[error("closed on purpose")]
struct ConnectionClosed;

/// Serves all connections, which end when this task ends.
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
    // An error of the service would only reset one stream of HTTP/2, so the connection is closed here.
    let closed = Arc::new(Notify::new());
    let service = {
        let closed = Arc::clone(&closed);
        service_fn(move |request: Request<Incoming>| {
            let (shared, closed) = (Arc::clone(&shared), Arc::clone(&closed));
            async move {
                let response = respond(&shared, request).await;
                if response.is_err() {
                    closed.notify_one();
                }
                response
            }
        })
    };
    let builder = auto::Builder::new(TokioExecutor::new());
    let connection = builder.serve_connection(TokioIo::new(stream), service);
    tokio::select! {
        // Errors of clients are ignored.
        _ = connection => {}
        () = closed.notified() => {}
    }
}

async fn respond(
    shared: &Arc<ProxyShared>,
    request: Request<Incoming>,
) -> Result<Response<Body>, ConnectionClosed> {
    let (mut parts, body) = request.into_parts();
    let (number, applied) = {
        let mut state = shared.lock();
        (state.log.begin(&parts), state.rule_set.apply(&parts))
    };
    let original = Arc::new(parts.clone());
    for rewrite in &applied.rewrites {
        let path = parts.uri.path_and_query().map_or("/", |path| path.as_str());
        parts.uri = rewrite(path).parse().map_err(|_| ConnectionClosed)?;
    }
    let response =
        apply_faults(shared, &original, Request::from_parts(parts, body::whole(body)), applied).await?;
    let status = response.status();
    shared.lock().log.record_status(number, status.as_u16());
    if !matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
        return Ok(response);
    }
    let weak = Arc::downgrade(shared);
    let record = move |words: bytes::Bytes| {
        if let Some(shared) = weak.upgrade() {
            shared.lock().log.record_refusal(number, &words);
        }
    };
    Ok(response.map(|body| body::copied(body, record)))
}

/// Applies the faults of the matching rules to a request.
async fn apply_faults(
    shared: &Arc<ProxyShared>,
    original: &Arc<Parts>,
    request: Request<Body>,
    applied: AppliedRules,
) -> Result<Response<Body>, ConnectionClosed> {
    tokio::time::sleep(applied.delay).await;
    if let Some(mut held) = applied.hold {
        // An error means that the sender was dropped. The request could not be released later, so it continues.
        let _ = held.wait_for(|held| !held).await;
    }
    match applied.fault {
        Some(Fault::Refuse) => Err(ConnectionClosed),
        Some(Fault::Garbage) => Ok(json(200, "{\"kind\":\"Garbage\",\"items\":[{\"met")),
        Some(Fault::Status { code, reason, message, retry_after }) => {
            Ok(status(code, reason, &message, retry_after))
        }
        Some(Fault::LoseResponse) => {
            if let Ok(response) = shared.upstream.send(request).await {
                // The server has handled the request when its response is complete.
                let _ = response.into_body().collect().await;
            }
            Err(ConnectionClosed)
        }
        Some(Fault::DelayResponse(delay)) => {
            let response = forward(shared, original, request).await;
            tokio::time::sleep(delay).await;
            response
        }
        Some(Fault::CutBody { after_bytes }) => Ok(forward(shared, original, request)
            .await?
            .map(|body| body::first(body, after_bytes, BodyEnd::Cut))),
        Some(Fault::StallBody { after_bytes }) => Ok(forward(shared, original, request)
            .await?
            .map(|body| body::first(body, after_bytes, BodyEnd::Stall))),
        Some(Fault::StaleList) if let Some(stale) = stale_list(shared, original) => Ok(stale),
        _ => forward(shared, original, request).await,
    }
}

async fn forward(
    shared: &Arc<ProxyShared>,
    original: &Arc<Parts>,
    request: Request<Body>,
) -> Result<Response<Body>, ConnectionClosed> {
    // An unavailable server also closes the connection.
    let response = shared.upstream.send(request).await.map_err(|_| ConnectionClosed)?;
    let (parts, body) = response.into_parts();
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
            weak.upgrade().is_some_and(|shared| shared.lock().rule_set.stalls(parts, opened))
        };
        body::watched(body, watch, stalled)
    } else if let Some(key) = shared.remember.then(|| list_key(original)).flatten()
        && !shared.lock().lists.contains_key(&key)
    {
        let (shared, headers) = (Arc::downgrade(shared), parts.headers.clone());
        body::copied(body, move |bytes| {
            if let Some(shared) = shared.upgrade() {
                shared.lock().lists.entry(key).or_insert(StoredList { headers, body: bytes });
            }
        })
    } else {
        body::whole(body)
    };
    Ok(Response::from_parts(parts, body))
}

/// The first response to a list, if one is stored.
fn stale_list(shared: &ProxyShared, parts: &Parts) -> Option<Response<Body>> {
    let key = list_key(parts)?;
    let StoredList { headers, body } = shared.lock().lists.get(&key).cloned()?;
    let mut response = Response::new(body::full(body));
    *response.headers_mut() = headers;
    response.headers_mut().remove(CONTENT_LENGTH);
    Some(response)
}

pub(super) fn is_watch(parts: &Parts) -> bool {
    let query = Query::parse(parts.uri.query().unwrap_or_default());
    query.is_some_and(|query| query.is_set("watch")) || parts.uri.path().contains("/watch/")
}

/// The key of a stored list: path, selectors and media type; none if the request is no list.
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
