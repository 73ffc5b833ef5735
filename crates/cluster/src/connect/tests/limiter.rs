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
type Answer = (u16, Option<&'static str>);

/// A server that takes a second, then answers as it is told, or 200.
#[derive(Clone, Default)]
struct Server {
    answers: Arc<Mutex<VecDeque<Answer>>>,
    asked: Arc<Mutex<Vec<(Instant, String)>>>,
}

impl Server {
    fn new(answers: impl IntoIterator<Item = Answer>) -> Self {
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
                server.asked.lock().unwrap().push((Instant::now(), request.uri().path().to_owned()));
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
        self.asked.lock().unwrap().iter().map(|(_, path)| path.clone()).collect()
    }

    /// When requests came, in seconds since the first.
    fn times(&self) -> Vec<u64> {
        let asked = self.asked.lock().unwrap();
        asked.iter().map(|(at, _)| (*at - asked[0].0).as_secs()).collect()
    }
}

async fn send(client: &Client, method: Method, uri: &str) -> u16 {
    let request = Request::builder().method(method).uri(uri).body(Body::from(b"text".to_vec())).unwrap();
    client.send(request).await.unwrap().status().as_u16()
}

#[tokio::test(start_paused = true)]
async fn requests_pass_in_the_order_they_came() {
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
async fn who_comes_back_at_once_does_not_jump_the_line() {
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
        async move { send(&client, Method::GET, "/held").await }
    });
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert!(limiter.snapshot().held_until.is_some());
    let lease = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/x";
    let uris = ["/a?watch=true&x=y", "/b?x=y&watch=1", lease];
    join_all(uris.iter().map(|uri| send(&client, Method::GET, uri))).await;
    assert_eq!(start.elapsed().as_secs(), 3);
    assert_eq!(limiter.snapshot().admitted, 1);
    assert_eq!(held.await.unwrap(), 200);
    assert_eq!(start.elapsed().as_secs(), 1 + 30 + 1);
}

#[tokio::test(start_paused = true)]
async fn a_pause_holds_everybody_and_then_the_request_goes_again() {
    let (server, limiter) =
        (Server::new([(429, Some("5")), (429, Some("5"))]), ConcurrencyLimiter::default());
    let client = server.client(&limiter);
    assert_eq!(send(&client, Method::GET, "/x").await, 200);
    assert_eq!(server.times(), [0, 6, 12]);
    assert_eq!((limiter.snapshot().retried, limiter.snapshot().limit), (2, 8));
}

#[tokio::test(start_paused = true)]
async fn what_is_repeated_and_what_is_not() {
    let soon = Some("1");
    for (method, answer, sent) in [
        (Method::GET, (429, soon), 3),
        (Method::GET, (503, soon), 3),
        (Method::PUT, (429, soon), 3),
        (Method::POST, (429, soon), 3),
        (Method::PUT, (503, soon), 1),
        (Method::POST, (503, soon), 1),
        (Method::GET, (429, None), 1),
        (Method::GET, (429, Some("tomorrow")), 1),
        (Method::GET, (500, soon), 1),
        (Method::GET, (504, soon), 1),
        (Method::GET, (404, None), 1),
    ] {
        let server = Server::new([answer; 9]);
        let status = send(&server.client(&ConcurrencyLimiter::default()), method.clone(), "/x").await;
        assert_eq!((status, server.paths().len()), (answer.0, sent), "{method} {answer:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_repeated_request_has_its_body() {
    let (server, limiter) = (Server::new([(429, Some("1"))]), ConcurrencyLimiter::default());
    let request = Request::put("/x").body(Body::from(b"text".to_vec())).unwrap();
    let answer = server.client(&limiter).send(request).await.unwrap();
    assert_eq!(answer.into_body().collect_bytes().await.unwrap(), "text");
}

#[tokio::test(start_paused = true)]
async fn who_gives_up_leaves_the_line_and_the_gate() {
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
