//! No question goes round in circles: what we ask others carries a header, and what arrives with it is not passed on.

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

use super::Own;

/// The body of a request or an answer, as `serve` has it.
pub type Body = UnsyncBoxBody<Bytes, Box<dyn Error + Send + Sync>>;

/// A service behind `serve`, which has asked who may use it.
pub type Route = BoxCloneSyncService<Request<Body>, Response<Body>, Infallible>;

/// Says who asks.
pub(crate) const HOP: HeaderName = HeaderName::from_static("x-plimsoll-hop");

tokio::task_local! {
    static ALONE: ();
}

/// Whether the question that is being answered came from another server of our kind: then we answer it alone.
pub(crate) fn is_alone() -> bool {
    ALONE.try_with(|()| ()).is_ok()
}

/// What `answer` says to a question with these headers: without upstreams, if another server of our kind asked it.
pub fn heard<T>(headers: &HeaderMap, answer: impl FnOnce() -> T) -> T {
    if headers.contains_key(HOP) { ALONE.sync_scope((), answer) } else { answer() }
}

/// How we name ourselves in the header.
pub(crate) fn name(own: &Own) -> HeaderValue {
    let clean: String = own.id.chars().filter(char::is_ascii_graphic).take(256).collect();
    let name = if clean.is_empty() { "plimsoll".to_owned() } else { clean };
    HeaderValue::try_from(name).unwrap_or_else(|_| HeaderValue::from_static("plimsoll"))
}

/// Answers `inner`'s requests so that none goes round in circles: one that we sent ourselves is refused, one that another
/// server like us sent is answered without asking upstreams.
pub fn guarded(inner: Route, own: &Own) -> Route {
    let own = (!own.id.is_empty()).then(|| name(own));
    BoxCloneSyncService::new(Guard { inner, own })
}

#[derive(Clone)]
struct Guard {
    inner: Route,
    own: Option<HeaderValue>,
}

impl Service<Request<Body>> for Guard {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Response<Body>, Infallible>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        match request.headers().get(HOP) {
            None => self.inner.call(request).boxed(),
            Some(sender) if Some(sender) == self.own.as_ref() => {
                let answer = circle(sender.clone());
                async move { Ok(answer) }.boxed()
            }
            Some(_) => {
                let answer = self.inner.call(request);
                ALONE.scope((), answer).boxed()
            }
        }
    }
}

/// The answer to ourselves.
fn circle(own: HeaderValue) -> Response<Body> {
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": 508,
        "message": "this server was named as its own upstream",
    });
    let mut response = Response::new(full(status.to_string()));
    *response.status_mut() = StatusCode::LOOP_DETECTED;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response.headers_mut().insert(HOP, own);
    response
}

/// A body that is all there.
pub(crate) fn full(bytes: impl Into<Bytes>) -> Body {
    Full::new(bytes.into()).map_err(|never| match never {}).boxed_unsync()
}
