//! Requests wait in line until the pressure lets them pass.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use futures::future::BoxFuture;
use http::header::RETRY_AFTER;
use http::{Method, Request, Response, StatusCode};
use kube::client::Body;
use tokio::sync::Notify;
use tokio::time::Instant;
use tower::{BoxError, Layer, Service, ServiceExt as _};

use super::adaptive_limit::{AdaptiveLimit, Admission, LimiterSnapshot, RequestOutcome};

/// How often a request is sent again.
const RETRIES: u32 = 2;

/// A layer that lets as many requests pass at once as the server bears, in the order they came. Clones are the same limiter.
#[derive(Clone, Default)]
pub struct ConcurrencyLimiter(Arc<Inner>);

#[derive(Default)]
struct Inner {
    adaptive_limit: Mutex<AdaptiveLimit>,
    /// Whoever holds it is the next to pass; tokio hands it on in order.
    turn: tokio::sync::Mutex<()>,
    /// Tells the next that a request has come back.
    freed: Notify,
    waiting: AtomicUsize,
}

/// A service behind a limiter.
#[derive(Clone, Debug)]
pub struct LimitedService<S> {
    limiter: ConcurrencyLimiter,
    inner: S,
}

/// A request in flight.
struct RequestPermit<'a> {
    limiter: &'a ConcurrencyLimiter,
    admitted: Instant,
    outcome: RequestOutcome,
}

/// Counts who waits, however the waiting ends.
struct Waiting<'a>(&'a AtomicUsize);

impl ConcurrencyLimiter {
    /// What can be seen of the pressure.
    pub fn snapshot(&self) -> LimiterSnapshot {
        LimiterSnapshot {
            waiting: self.0.waiting.load(Ordering::Relaxed),
            ..self.adaptive_limit().snapshot()
        }
    }

    fn adaptive_limit(&self) -> MutexGuard<'_, AdaptiveLimit> {
        self.0.adaptive_limit.lock().unwrap_or_else(PoisonError::into_inner)
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
        LimitedService { limiter: self.clone(), inner }
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

    /// Always: whoever must wait does so in line, and watches not at all.
    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let service = self.inner.clone();
        if never_waits(&request) {
            return Box::pin(async move { service.oneshot(request).await.map_err(Into::into) });
        }
        let limiter = self.limiter.clone();
        Box::pin(async move { limiter.send(service, request).await })
    }
}

impl ConcurrencyLimiter {
    async fn send<S, B>(&self, service: S, mut request: Request<Body>) -> Result<Response<B>, BoxError>
    where
        S: Service<Request<Body>, Response = Response<B>> + Clone,
        S::Error: Into<BoxError>,
    {
        let mut left = RETRIES;
        loop {
            let again = copy(&request);
            let method = request.method().clone();
            let mut ticket = self.enter().await;
            let answer = service.clone().oneshot(request).await.map_err(Into::into);
            ticket.outcome = outcome(answer.as_ref().ok());
            drop(ticket);
            match (answer, again) {
                // The pause itself is kept by the limiter, for everybody.
                (Ok(answer), Some(again)) if left > 0 && may_repeat(&method, &answer) => {
                    left -= 1;
                    self.adaptive_limit().retried();
                    request = again;
                }
                (answer, _) => return answer,
            }
        }
    }
}

/// A watch lasts, so it must not take a place; the lease is how others know that we live.
fn never_waits(request: &Request<Body>) -> bool {
    let query = request.uri().query().unwrap_or_default();
    query.split('&').any(|pair| matches!(pair, "watch=true" | "watch=1"))
        || request.uri().path().starts_with("/apis/coordination.k8s.io/")
}

/// What was refused with 429 was not processed. 503 may have been, so only reading is repeated.
fn may_repeat<B>(method: &Method, answer: &Response<B>) -> bool {
    let status = answer.status();
    pause(answer).is_some()
        && (status == StatusCode::TOO_MANY_REQUESTS
            || status == StatusCode::SERVICE_UNAVAILABLE && *method == Method::GET)
}

fn outcome<B>(answer: Option<&Response<B>>) -> RequestOutcome {
    let Some(answer) = answer else { return RequestOutcome::Failed };
    match answer.status() {
        StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => {
            RequestOutcome::Overloaded(pause(answer))
        }
        StatusCode::GATEWAY_TIMEOUT => RequestOutcome::TimedOut,
        status if status.is_server_error() => RequestOutcome::Failed,
        _ => RequestOutcome::Answered,
    }
}

/// How long the server asks to be left alone.
fn pause<B>(answer: &Response<B>) -> Option<Duration> {
    let seconds = answer.headers().get(RETRY_AFTER)?.to_str().ok()?;
    seconds.trim().parse().ok().map(Duration::from_secs)
}

/// The same request once more; none if its body can be sent only once.
fn copy(request: &Request<Body>) -> Option<Request<Body>> {
    let mut copy = Request::new(request.body().try_clone()?);
    copy.method_mut().clone_from(request.method());
    copy.uri_mut().clone_from(request.uri());
    copy.headers_mut().clone_from(request.headers());
    copy.extensions_mut().clone_from(request.extensions());
    Some(copy)
}
