use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use futures::future::join_all;
use http::{Method, Request, Response};
use http_body_util::Full;
use kube::Client;
use kube::client::Body;
use tokio::time::Instant;
use tower::{BoxError, Layer as _, Service, ServiceExt as _, service_fn};

use crate::connect::ConcurrencyLimiter;
use crate::connect::limiter::LimitedService;
use crate::request::{self, ApiError};

const HOUR: Duration = Duration::from_hours(1);

/// What [`Server::behind`] puts behind a limiter.
trait Answers:
    Service<Request<Body>, Response = Response<Full<Bytes>>, Error = BoxError, Future: Send>
    + Clone
    + Send
    + 'static
{
}

impl<S> Answers for S where
    S: Service<Request<Body>, Response = Response<Full<Bytes>>, Error = BoxError, Future: Send>
        + Clone
        + Send
        + 'static
{
}

/// Status and `Retry-After`.
type ScriptedStatus = (u16, Option<&'static str>);

/// A server that takes a second, then gives the next scripted answer, or 200.
#[derive(Clone, Default)]
struct Server {
    answers: Arc<Mutex<VecDeque<ScriptedStatus>>>,
    requests: Arc<Mutex<Vec<(Instant, String)>>>,
}

impl Server {
    fn new(answers: impl IntoIterator<Item = ScriptedStatus>) -> Self {
        let answers = Arc::new(Mutex::new(answers.into_iter().collect()));
        Self { answers, ..Self::default() }
    }

    fn client(&self, limiter: &ConcurrencyLimiter) -> Client {
        Client::new(self.behind(limiter), "default")
    }

    /// The server behind a limiter, without what a client puts between.
    fn behind(&self, limiter: &ConcurrencyLimiter) -> LimitedService<impl Answers> {
        let server = self.clone();
        let service = service_fn(move |request: Request<Body>| {
            let server = server.clone();
            async move {
                server.requests.lock().unwrap().push((Instant::now(), request.uri().path().to_owned()));
                let answer = server.answers.lock().unwrap().pop_front();
                tokio::time::sleep(Duration::from_secs(1)).await;
                let (status, retry) = answer.unwrap_or((200, None));
                let mut response = Response::builder().status(status);
                if let Some(retry) = retry {
                    response = response.header("Retry-After", retry);
                }
                let body = request.into_body().collect_bytes().await?;
                Ok::<_, BoxError>(response.body(Full::new(body))?)
            }
        });
        limiter.layer(service)
    }

    fn paths(&self) -> Vec<String> {
        self.requests.lock().unwrap().iter().map(|(_, path)| path.clone()).collect()
    }

    /// When requests came, in seconds since the first.
    fn times(&self) -> Vec<u64> {
        let requests = self.requests.lock().unwrap();
        requests.iter().map(|(at, _)| (*at - requests[0].0).as_secs()).collect()
    }
}

/// Sends a request once.
async fn send(client: &Client, method: Method, uri: &str) -> u16 {
    let request = Request::builder().method(method).uri(uri).body(Body::from(b"text".to_vec())).unwrap();
    client.send(request).await.unwrap().status().as_u16()
}

/// Sends a request with the retries of `request`.
async fn send_with_retries(client: &Client, method: Method, uri: &str) -> Result<Bytes, ApiError> {
    let body = Some(("text/plain", b"text".to_vec()));
    request::send(client, request::Request { method, body, ..request::Request::get(uri, "", HOUR) }).await
}

#[tokio::test(start_paused = true)]
async fn requests_are_admitted_in_the_order_of_arrival() {
    let (server, limiter) = (Server::default(), ConcurrencyLimiter::default());
    let client = server.client(&limiter);
    let uris: Vec<String> = (0..100).map(|n| format!("/{n}")).collect();
    let tasks = uris.iter().cloned().map(|uri| {
        let client = client.clone();
        tokio::spawn(async move { send(&client, Method::GET, &uri).await })
    });
    let tasks: Vec<_> = tasks.collect();
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!((limiter.snapshot().in_flight, limiter.snapshot().waiting), (32, 68));
    join_all(tasks).await;
    assert_eq!(server.paths(), uris);
    let (snapshot, took) = (limiter.snapshot(), server.times());
    assert_eq!((snapshot.in_flight, snapshot.waiting, snapshot.admitted), (0, 0, 100));
    assert_eq!((took[31], took[32], took[99]), (0, 1, 3));
}

#[tokio::test(start_paused = true)]
async fn a_follow_up_request_is_admitted_after_those_that_wait() {
    let (server, limiter) = (Server::default(), ConcurrencyLimiter::default());
    let service = server.behind(&limiter);
    let tasks = (0..34).map(|n| {
        let service = service.clone();
        tokio::spawn(async move {
            for uri in [format!("/{n}"), format!("/{n}/again")] {
                let request = Request::get(uri).body(Body::empty()).unwrap();
                service.clone().oneshot(request).await.unwrap();
            }
        })
    });
    join_all(tasks.collect::<Vec<_>>()).await;
    assert_eq!(server.paths()[31..35], ["/31", "/32", "/33", "/0/again"]);
}

#[tokio::test(start_paused = true)]
async fn watches_and_leases_never_wait() {
    let (server, limiter) = (Server::new([(429, Some("30"))]), ConcurrencyLimiter::default());
    let client = server.client(&limiter);
    let start = Instant::now();
    let held = tokio::spawn({
        let client = client.clone();
        async move { send_with_retries(&client, Method::GET, "/held").await }
    });
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert!(limiter.snapshot().held_until.is_some());
    let lease = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/x";
    let uris = ["/a?watch=true&x=y", "/b?x=y&watch=1", lease];
    join_all(uris.iter().map(|uri| send(&client, Method::GET, uri))).await;
    assert_eq!(start.elapsed().as_secs(), 3);
    assert_eq!(limiter.snapshot().admitted, 1);
    assert_eq!(held.await.unwrap().unwrap(), "text");
    assert_eq!(start.elapsed().as_secs(), 1 + 30 + 1);
}

#[tokio::test(start_paused = true)]
async fn retry_after_delays_the_retry_and_counts_it() {
    let (server, limiter) =
        (Server::new([(429, Some("5")), (429, Some("5"))]), ConcurrencyLimiter::default());
    let client = server.client(&limiter);
    assert_eq!(send_with_retries(&client, Method::GET, "/x").await.unwrap(), "text");
    assert_eq!(server.times(), [0, 6, 12]);
    assert_eq!((limiter.snapshot().retried, limiter.snapshot().limit), (2, 8));
}

#[tokio::test(start_paused = true)]
async fn the_limiter_sends_each_request_once() {
    for status in [429, 503, 500] {
        let server = Server::new([(status, Some("1")); 9]);
        let client = server.client(&ConcurrencyLimiter::default());
        assert_eq!(send(&client, Method::GET, "/x").await, status);
        assert_eq!(server.paths().len(), 1);
    }
}

/// The limiter and `request` both retried once: up to 33 sends for one request.
#[tokio::test(start_paused = true)]
async fn retries_are_made_by_one_layer() {
    let soon = Some("1");
    for (method, answer, sends) in [
        (Method::GET, (429, soon), 11),
        (Method::GET, (503, soon), 11),
        (Method::PUT, (429, soon), 11),
        (Method::POST, (429, soon), 11),
        (Method::PUT, (503, soon), 11),
        (Method::POST, (503, soon), 11),
        (Method::GET, (500, soon), 11),
        (Method::GET, (504, soon), 11),
        (Method::GET, (429, None), 1),
        (Method::GET, (429, Some("tomorrow")), 1),
        (Method::GET, (404, soon), 1),
        (Method::GET, (404, None), 1),
    ] {
        let (server, limiter) = (Server::new([answer; 99]), ConcurrencyLimiter::default());
        let error = send_with_retries(&server.client(&limiter), method.clone(), "/x").await.unwrap_err();
        assert_eq!((error.code, server.paths().len()), (Some(answer.0), sends), "{method} {answer:?}");
        assert_eq!(limiter.snapshot().retried, sends as u64 - 1, "{method} {answer:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_retry_has_the_body_of_the_request() {
    let (server, limiter) = (Server::new([(429, Some("1"))]), ConcurrencyLimiter::default());
    assert_eq!(send_with_retries(&server.client(&limiter), Method::PUT, "/x").await.unwrap(), "text");
    assert_eq!(server.paths().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn an_abandoned_request_frees_its_place() {
    let (server, limiter) = (Server::default(), ConcurrencyLimiter::default());
    let client = server.client(&limiter);
    let all = join_all((0..50).map(|n| {
        let client = client.clone();
        async move { send(&client, Method::GET, &format!("/{n}")).await }
    }));
    assert!(tokio::time::timeout(Duration::from_millis(100), all).await.is_err());
    tokio::time::sleep(Duration::from_millis(1)).await;
    let snapshot = limiter.snapshot();
    assert_eq!((snapshot.in_flight, snapshot.waiting, snapshot.limit), (0, 0, 32));
    assert_eq!(send(&client, Method::GET, "/next").await, 200);
}

#[tokio::test(start_paused = true)]
async fn reviews_have_a_limit_of_their_own() {
    const TOKENS: &str = "/apis/authentication.k8s.io/v1/tokenreviews";
    const ACCESS: &str = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
    let (server, limiter) = (Server::new([(429, Some("30"))]), ConcurrencyLimiter::default());
    let client = server.client(&limiter);
    assert_eq!(send(&client, Method::POST, TOKENS).await, 429);
    // The next review waits for half a minute, and a scale write does not.
    let begin = Instant::now();
    let (review, write) = futures::join!(
        async { (send(&client, Method::POST, ACCESS).await, begin.elapsed().as_secs()) },
        async { (send(&client, Method::PUT, "/apis/apps/v1/x/scale").await, begin.elapsed().as_secs()) },
    );
    assert_eq!((review, write), ((200, 31), (200, 1)));
    assert_eq!(limiter.snapshot().overloaded, 0);
}
