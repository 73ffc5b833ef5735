//! The concurrency limiter: requests wait in order until the adaptive limit admits them. It sends each request once; retries
//! are made by `request`.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll};
use std::time::Duration;

use futures::future::BoxFuture;
use http::header::RETRY_AFTER;
use http::{Request, Response, StatusCode};
use kube::client::Body;
use locks::MutexExt as _;
use tokio::sync::Notify;
use tokio::time::Instant;
use tower::{BoxError, Layer, Service, ServiceExt as _};

use super::adaptive_limit::{AdaptiveLimit, Admission, LimiterSnapshot, RequestOutcome};
use super::leader_only;

/// A layer that admits requests in the order of their arrival, as many at once as the adaptive limit allows. Clones share one
/// limit.
#[derive(Clone, Default)]
pub struct ConcurrencyLimiter(Arc<LimiterState>);

/// Marks a request, as an extension, that was sent before and is counted as a retry.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RetryMarker;

#[derive(Default)]
struct LimiterState {
    adaptive_limit: Mutex<AdaptiveLimit>,
    /// The holder is the next to be admitted; tokio's mutex is fair, so that requests keep their order.
    turn: tokio::sync::Mutex<()>,
    /// Notified when a request has ended.
    freed: Notify,
    waiting: AtomicUsize,
}

/// A service behind a limiter.
#[derive(Clone, Debug)]
pub struct LimitedService<S> {
    limiter: ConcurrencyLimiter,
    /// The limiter of reviews, which clients of our own servers cause: however many there are, and however the API server
    /// slows them down, other requests do not wait for them.
    reviews: ConcurrencyLimiter,
    inner: S,
}

/// The place of a request in flight, given back when this is dropped.
struct RequestPermit<'a> {
    limiter: &'a ConcurrencyLimiter,
    admitted: Instant,
    outcome: RequestOutcome,
}

/// Counts a waiting request until this is dropped.
struct Waiting<'a>(&'a AtomicUsize);

impl ConcurrencyLimiter {
    /// The current state.
    pub fn snapshot(&self) -> LimiterSnapshot {
        LimiterSnapshot {
            waiting: self.0.waiting.load(Ordering::Relaxed),
            ..self.adaptive_limit().snapshot()
        }
    }

    fn adaptive_limit(&self) -> MutexGuard<'_, AdaptiveLimit> {
        self.0.adaptive_limit.locked()
    }

    async fn enter(&self) -> RequestPermit<'_> {
        let _waiting = Waiting::new(&self.0.waiting);
        let _turn = self.0.turn.lock().await;
        loop {
            let now = Instant::now();
            let admission = self.adaptive_limit().admit(now);
            match admission {
                Admission::Now => {
                    return RequestPermit {
                        limiter: self,
                        admitted: now,
                        outcome: RequestOutcome::Abandoned,
                    };
                }
                Admission::At(moment) => tokio::time::sleep_until(moment).await,
                Admission::Full => self.0.freed.notified().await,
            }
        }
    }
}

impl Drop for RequestPermit<'_> {
    fn drop(&mut self) {
        self.limiter.adaptive_limit().finish(Instant::now(), self.admitted, self.outcome);
        self.limiter.0.freed.notify_one();
    }
}

impl<'a> Waiting<'a> {
    fn new(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl fmt::Debug for ConcurrencyLimiter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ConcurrencyLimiter").field(&self.snapshot()).finish()
    }
}

impl<S> Layer<S> for ConcurrencyLimiter {
    type Service = LimitedService<S>;

    fn layer(&self, inner: S) -> LimitedService<S> {
        LimitedService { limiter: self.clone(), reviews: ConcurrencyLimiter::default(), inner }
    }
}

impl<S, B> Service<Request<Body>> for LimitedService<S>
where
    S: Service<Request<Body>, Response = Response<B>> + Clone + Send + 'static,
    S::Future: Send,
    S::Error: Into<BoxError>,
    B: Send,
{
    type Response = Response<B>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Response<B>, BoxError>>;

    /// Always ready: requests wait in `call`, and watches do not wait.
    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let service = self.inner.clone();
        if never_waits(&request) {
            return Box::pin(async move { service.oneshot(request).await.map_err(Into::into) });
        }
        let limiter = if is_review(&request) { self.reviews.clone() } else { self.limiter.clone() };
        Box::pin(async move { limiter.send(service, request).await })
    }
}

impl ConcurrencyLimiter {
    async fn send<S, B>(&self, service: S, request: Request<Body>) -> Result<Response<B>, BoxError>
    where
        S: Service<Request<Body>, Response = Response<B>>,
        S::Error: Into<BoxError>,
    {
        if request.extensions().get::<RetryMarker>().is_some() {
            self.adaptive_limit().retried();
        }
        let mut permit = self.enter().await;
        // The wait may have been longer than the lease lasts.
        leader_only::check(&request)?;
        let response = service.oneshot(request).await.map_err(Into::into);
        permit.outcome = outcome(response.as_ref().ok());
        response
    }
}

/// A watch runs for minutes, so it must not occupy a place. A lease that is renewed late would be lost.
fn never_waits(request: &Request<Body>) -> bool {
    let query = request.uri().query().unwrap_or_default();
    query.split('&').any(|pair| matches!(pair, "watch=true" | "watch=1"))
        || request.uri().path().starts_with("/apis/coordination.k8s.io/")
}

/// Whether a request is a TokenReview or SubjectAccessReview.
fn is_review(request: &Request<Body>) -> bool {
    let path = request.uri().path();
    path.starts_with("/apis/authentication.k8s.io/") || path.starts_with("/apis/authorization.k8s.io/")
}

fn outcome<B>(response: Option<&Response<B>>) -> RequestOutcome {
    let Some(response) = response else { return RequestOutcome::Failed };
    match response.status() {
        StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => {
            RequestOutcome::Overloaded(retry_after(response))
        }
        StatusCode::GATEWAY_TIMEOUT => RequestOutcome::TimedOut,
        status if status.is_server_error() => RequestOutcome::Failed,
        _ => RequestOutcome::Answered,
    }
}

/// The `Retry-After` header, if it is a number of seconds.
fn retry_after<B>(response: &Response<B>) -> Option<Duration> {
    let seconds = response.headers().get(RETRY_AFTER)?.to_str().ok()?;
    seconds.trim().parse().ok().map(Duration::from_secs)
}
