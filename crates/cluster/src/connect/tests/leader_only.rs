//! Writes of a leader whose lease passes while they wait or are under way.

use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use jiff::Timestamp;
use kube::Client;
use kube::client::Body;
use runtime::leader::{Leadership, LeadershipTerm, LeadershipView};
use tokio::net::TcpListener;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep};
use tower::{BoxError, Layer as _, service_fn};

use super::Scratch;
use crate::Clock;
use crate::connect::{ConcurrencyLimiter, ConnectTarget, connect};
use crate::request::{self, ApiError, send_leading};

const MINUTE: Duration = Duration::from_mins(1);

/// A term that a test ends, by either clock.
struct Term {
    leadership: Leadership,
    view: watch::Sender<LeadershipView>,
    wall: Arc<Mutex<Timestamp>>,
}

impl Term {
    fn of(length: Duration) -> Self {
        let wall = Arc::new(Mutex::new(Timestamp::UNIX_EPOCH));
        let read = Arc::clone(&wall);
        let end = LeadershipTerm { until: Instant::now() + length, wall: Timestamp::UNIX_EPOCH + length };
        let (view, seen) = watch::channel(LeadershipView { term: Some(end), ..LeadershipView::default() });
        let leadership = Leadership::elected(seen, Clock::new(move || *read.lock().unwrap()));
        Self { leadership, view, wall }
    }

    /// The wall clock jumps, as after a suspended machine has woken up.
    fn wake_later(&self) {
        *self.wall.lock().unwrap() += MINUTE;
    }

    fn renew(&self, length: Duration) {
        let end = LeadershipTerm { until: Instant::now() + length, wall: Timestamp::UNIX_EPOCH + length };
        self.view.send_modify(|view| view.term = Some(end));
    }
}

/// A server behind a limiter: the first answer is 429 with `Retry-After`, or none; every answer takes `slow`.
fn server(retry_after: Option<&'static str>, slow: Duration) -> (Client, Arc<Mutex<Vec<String>>>) {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let reported = Arc::clone(&seen);
    let service = service_fn(move |request: Request<Body>| {
        let reported = Arc::clone(&reported);
        async move {
            sleep(slow).await;
            let first = {
                let mut reported = reported.lock().unwrap();
                reported.push(format!("{} {}", request.method(), request.uri().path()));
                reported.len() == 1
            };
            let answer = match retry_after.filter(|_| first) {
                Some(seconds) => Response::builder().status(429).header("Retry-After", seconds),
                None => Response::builder(),
            };
            Ok::<_, BoxError>(answer.body(Full::new(Bytes::from_static(b"{}")))?)
        }
    });
    (Client::new(ConcurrencyLimiter::default().layer(service), "default"), seen)
}

async fn put(client: &Client, leadership: &Leadership) -> Result<Bytes, ApiError> {
    let body = Some(("application/json", b"{\"a\":1}".to_vec()));
    let request = request::Request { method: Method::PUT, body, ..request::Request::get("/x", "", MINUTE) };
    send_leading(client, request, leadership).await
}

#[tokio::test(start_paused = true)]
async fn a_leader_writes_and_others_do_not() {
    let (client, seen) = server(None, Duration::ZERO);
    let term = Term::of(MINUTE);
    assert_eq!(put(&client, &term.leadership).await.unwrap(), "{}");
    assert_eq!(put(&client, &Leadership::without_election()).await.unwrap(), "{}");
    sleep(MINUTE).await;
    let error = put(&client, &term.leadership).await.unwrap_err();
    assert!(error.is_not_leading() && !error.is_unsettled(), "{error:?}");
    assert_eq!(error.message, "another instance leads by now");
    assert_eq!(*seen.lock().unwrap(), ["PUT /x", "PUT /x"]);
}

#[tokio::test(start_paused = true)]
async fn a_write_that_waited_for_the_limiter_is_not_sent_late() {
    let (client, seen) = server(Some("30"), Duration::ZERO);
    let held = client.clone();
    let held = tokio::spawn(async move {
        let request = Request::get("/held").body(Body::empty()).unwrap();
        held.send(request).await.map(|response| response.status().as_u16())
    });
    assert_eq!(held.await.unwrap().unwrap(), 429);
    // The limiter holds everything for 30 s. The monotonic term is long enough, but the wall clock jumps meanwhile.
    let term = Term::of(MINUTE);
    let (result, ()) = tokio::join!(put(&client, &term.leadership), async {
        sleep(Duration::from_secs(5)).await;
        term.wake_later();
    });
    assert!(result.unwrap_err().is_not_leading());
    assert_eq!(*seen.lock().unwrap(), ["GET /held"]);
}

#[tokio::test(start_paused = true)]
async fn a_write_is_not_resent_late() {
    let (client, seen) = server(Some("5"), Duration::ZERO);
    let term = Term::of(MINUTE);
    let (result, ()) = tokio::join!(put(&client, &term.leadership), async {
        sleep(Duration::from_secs(1)).await;
        term.wake_later();
    });
    assert!(result.unwrap_err().is_not_leading());
    assert_eq!(*seen.lock().unwrap(), ["PUT /x"]);
}

#[tokio::test(start_paused = true)]
async fn a_write_under_way_is_abandoned_at_the_end_of_the_term_unless_it_is_renewed() {
    let (client, seen) = server(None, Duration::from_secs(30));
    let began = Instant::now();
    let term = Term::of(Duration::from_secs(10));
    assert!(put(&client, &term.leadership).await.unwrap_err().is_not_leading());
    assert_eq!(began.elapsed().as_secs(), 10);
    assert!(seen.lock().unwrap().is_empty());

    let term = Term::of(Duration::from_secs(10));
    let (result, ()) = tokio::join!(put(&client, &term.leadership), async {
        sleep(Duration::from_secs(8)).await;
        term.renew(MINUTE);
    });
    assert_eq!(result.unwrap(), "{}");
}

/// The body of a request is sent when there is a connection, which is later than the limiter admits the request.
#[tokio::test]
async fn the_body_of_a_late_write_is_not_sent() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    let (whole, mut bodies) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let whole = whole.clone();
            let service = hyper::service::service_fn(move |request: Request<Incoming>| {
                let whole = whole.clone();
                async move {
                    let body = request.into_body().collect().await.map(http_body_util::Collected::to_bytes);
                    whole.send(body.is_ok()).unwrap();
                    body.map(|_| Response::new(Full::new(Bytes::from_static(b"{}"))))
                }
            });
            tokio::spawn(async move {
                let _ = auto::Builder::new(TokioExecutor::new())
                    .serve_connection(TokioIo::new(stream), service)
                    .await;
            });
        }
    });
    let scratch = Scratch::new("late-body");
    let kubeconfig = format!(
        "current-context: c\nclusters: [{{name: c, cluster: {{server: 'http://{address}'}}}}]\n\
         contexts: [{{name: c, context: {{cluster: c}}}}]\n"
    );
    let path = scratch.file("kubeconfig", &kubeconfig);
    let connection = connect(&ConnectTarget { kubeconfig: Some(path), context: None }).await.unwrap();
    let term = LeadershipTerm { until: Instant::now() + 10 * MINUTE, wall: Timestamp::UNIX_EPOCH + MINUTE };
    let (_view, seen) = watch::channel(LeadershipView { term: Some(term), ..LeadershipView::default() });
    // The first two checks are those before the attempt and behind the limiter; the third is that of the body.
    for (in_time, sent) in [(usize::MAX, true), (2, false)] {
        let checks = AtomicUsize::new(0);
        let clock = Clock::new(move || {
            let late = checks.fetch_add(1, Ordering::SeqCst) >= in_time;
            Timestamp::UNIX_EPOCH + if late { 2 * MINUTE } else { Duration::ZERO }
        });
        let leadership = Leadership::elected(seen.clone(), clock);
        let result = put(&connection.client, &leadership).await;
        if sent {
            assert_eq!(result.unwrap(), "{}");
            assert_eq!(bodies.recv().await, Some(true));
        } else {
            let error = result.unwrap_err();
            assert!(error.is_not_leading(), "{error:?}");
        }
    }
    // Whatever the server saw of the second request, it was not a whole one.
    assert_ne!(bodies.try_recv(), Ok(true));
}
