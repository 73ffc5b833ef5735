//! Prevents request loops: requests to upstreams carry a hop header, and requests with that header are not forwarded.

use std::convert::Infallible;
use std::error::Error;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full};
use serde_json::json;
use tower::Service;
use tower::util::BoxCloneSyncService;

use super::OwnService;

/// Body of a request or response, as in `serve`.
pub type Body = UnsyncBoxBody<Bytes, Box<dyn Error + Send + Sync>>;

/// A service behind `serve`, which has authorized the request.
pub type Route = BoxCloneSyncService<Request<Body>, Response<Body>, Infallible>;

/// Header that names the sending server.
pub(crate) const HOP_HEADER: HeaderName = HeaderName::from_static("x-plimsoll-hop");

tokio::task_local! {
    static LOCAL_ONLY: ();
}

/// Whether the current request came from another plimsoll server; then only local providers answer it.
pub(crate) fn is_local_only() -> bool {
    LOCAL_ONLY.try_with(|()| ()).is_ok()
}

/// Runs `answer` for a request with these headers; without upstreams if another plimsoll server sent it.
pub fn with_hop_header<T>(headers: &HeaderMap, answer: impl FnOnce() -> T) -> T {
    if headers.contains_key(HOP_HEADER) { LOCAL_ONLY.sync_scope((), answer) } else { answer() }
}

/// Value of the hop header of this server.
pub(crate) fn name(own: &OwnService) -> HeaderValue {
    let clean: String = own.id.chars().filter(char::is_ascii_graphic).take(256).collect();
    let name = if clean.is_empty() { "plimsoll".to_owned() } else { clean };
    HeaderValue::try_from(name).unwrap_or_else(|_| HeaderValue::from_static("plimsoll"))
}

/// Wraps `inner` to prevent loops: a request sent by this server is refused, a request of another plimsoll server is
/// answered without upstreams.
pub fn with_loop_guard(inner: Route, own: &OwnService) -> Route {
    let own = (!own.id.is_empty()).then(|| name(own));
    BoxCloneSyncService::new(HopGuard { inner, own })
}

#[derive(Clone)]
struct HopGuard {
    inner: Route,
    own: Option<HeaderValue>,
}

impl Service<Request<Body>> for HopGuard {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Response<Body>, Infallible>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        match request.headers().get(HOP_HEADER) {
            None => self.inner.call(request).boxed(),
            Some(sender) if Some(sender) == self.own.as_ref() => {
                let answer = loop_response(sender.clone());
                async move { Ok(answer) }.boxed()
            }
            Some(_) => {
                let answer = self.inner.call(request);
                LOCAL_ONLY.scope((), answer).boxed()
            }
        }
    }
}

/// Response to a request of this server itself.
fn loop_response(own: HeaderValue) -> Response<Body> {
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": 508,
        "message": "this server was named as its own upstream",
    });
    let mut response = Response::new(full(status.to_string()));
    *response.status_mut() = StatusCode::LOOP_DETECTED;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response.headers_mut().insert(HOP_HEADER, own);
    response
}

/// A body from memory.
pub(crate) fn full(bytes: impl Into<Bytes>) -> Body {
    Full::new(bytes.into()).map_err(|never| match never {}).boxed_unsync()
}
