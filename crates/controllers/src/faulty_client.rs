//! An API client whose requests fail at random, from a seed, and which records the writes that reached the server.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::{StreamExt as _, TryStreamExt as _};
use http::{Method, Request, Response};
use http_body::Frame;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

type Bytes = <Body as http_body::Body>::Data;
type BoxError = Box<dyn std::error::Error + Send + Sync>;
type Answer = UnsyncBoxBody<Bytes, BoxError>;

/// Pseudo-random numbers from a seed.
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A number below `end`.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % end.max(1)
    }

    /// Whether an event with this probability, in percent, happens.
    pub(crate) fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    pub(crate) fn pick<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        let at = self.below(all.len() as u64);
        all.get(usize::try_from(at).unwrap()).unwrap()
    }
}

/// A number from an environment variable, with which a longer run is configured.
pub(crate) fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().map_or(default, |text| text.parse().expect("a number"))
}

/// What happens to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum RequestFault {
    /// 409, the server does nothing.
    Conflict,
    /// 429, with `Retry-After` or without.
    TooManyRequests(Option<u64>),
    /// 500, the server does nothing.
    ServerError,
    /// No connection.
    Unreachable,
    /// The server carries it out and answers 500.
    ErrorAfterwards,
    /// The server carries it out, and its answer is lost.
    LostAnswer,
    /// The server carries it out, and its answer ends in the middle.
    CutAnswer,
    /// It arrives late.
    Slow,
}

const ANY_REQUEST: &[RequestFault] = &[
    RequestFault::TooManyRequests(Some(1)),
    RequestFault::TooManyRequests(None),
    RequestFault::ServerError,
    RequestFault::Unreachable,
    RequestFault::ErrorAfterwards,
    RequestFault::LostAnswer,
    RequestFault::CutAnswer,
    RequestFault::Slow,
];

/// A write that reached the server.
#[derive(Clone, Debug)]
pub(crate) struct SeenWrite {
    /// When it was sent.
    pub(crate) sent: Instant,
    /// When the server had carried it out.
    pub(crate) done: Instant,
    /// Whose client sent it.
    pub(crate) by: String,
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) body: Value,
    /// The server's own status.
    pub(crate) code: u16,
}

#[derive(Debug)]
struct FaultState {
    random: Random,
    /// How many of a hundred requests fail.
    rate: u64,
    /// Whether the process behind this client is dead: nothing arrives any more.
    is_dead: bool,
    /// Parts of paths; answers to requests to them are lost.
    lost: Vec<String>,
    injected: BTreeMap<String, u64>,
}

/// The faults of one client. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct FaultyClient {
    name: String,
    state: Arc<Mutex<FaultState>>,
    history: Arc<Mutex<Vec<SeenWrite>>>,
    /// Parts of paths; writes to them wait until they are let through.
    held: Arc<watch::Sender<Vec<String>>>,
    /// Whether watches are late.
    stale: Arc<watch::Sender<bool>>,
    /// Ends all watches when it changes.
    cut: Arc<watch::Sender<u64>>,
}

impl FaultyClient {
    pub(crate) fn new(name: &str, seed: u64, history: Arc<Mutex<Vec<SeenWrite>>>) -> Self {
        let state = FaultState {
            random: Random::new(seed),
            rate: 0,
            is_dead: false,
            lost: Vec::new(),
            injected: BTreeMap::new(),
        };
        Self {
            name: name.to_owned(),
            state: Arc::new(Mutex::new(state)),
            history,
            held: Arc::default(),
            stale: Arc::default(),
            cut: Arc::default(),
        }
    }

    /// Lets so many of a hundred requests fail.
    pub(crate) fn set_rate(&self, percent: u64) {
        self.state.lock().unwrap().rate = percent;
    }

    /// Holds writes to paths with these parts where the network would, until others are named; then they arrive, even if no caller
    /// waits for the answer any more.
    pub(crate) fn hold(&self, parts: &[&str]) {
        self.held.send_replace(parts.iter().map(|part| (*part).to_owned()).collect());
    }

    /// Loses the answers to requests to paths with these parts, until others are named. The server carries the requests out, and
    /// watches go on.
    pub(crate) fn lose_answers(&self, parts: &[&str]) {
        self.state.lock().unwrap().lost = parts.iter().map(|part| (*part).to_owned()).collect();
    }

    /// Delays the events of all watches, or delivers them.
    pub(crate) fn set_stale(&self, is_stale: bool) {
        self.stale.send_replace(is_stale);
    }

    /// Ends all watches.
    pub(crate) fn cut_watches(&self) {
        self.cut.send_modify(|count| *count += 1);
    }

    /// From now on nothing arrives, as if the process had been killed.
    pub(crate) fn kill(&self) {
        self.state.lock().unwrap().is_dead = true;
        self.cut_watches();
    }

    /// How often each fault was injected.
    pub(crate) fn injected(&self) -> BTreeMap<String, u64> {
        self.state.lock().unwrap().injected.clone()
    }

    /// A client with these faults.
    pub(crate) fn client(&self, inner: &Client) -> Client {
        let (faults, inner) = (self.clone(), inner.clone());
        let service = tower::service_fn(move |request: Request<Body>| {
            let (faults, inner) = (faults.clone(), inner.clone());
            async move { faults.send(inner, request).await }
        });
        Client::new(service, "default")
    }

    fn choose(&self, method: &Method, is_watch: bool) -> Option<RequestFault> {
        let mut state = self.state.lock().unwrap();
        let rate = state.rate;
        if !state.random.chance(rate) {
            return None;
        }
        let is_update = *method == Method::PUT || *method == Method::PATCH;
        let fault = match state.random.below(5) {
            0 if is_update => RequestFault::Conflict,
            _ => *state.random.pick(ANY_REQUEST),
        };
        let name = if is_watch { format!("watch {fault:?}") } else { format!("{fault:?}") };
        *state.injected.entry(name).or_default() += 1;
        Some(fault)
    }

    fn check_alive(&self) -> Result<(), BoxError> {
        if self.state.lock().unwrap().is_dead { Err(broken(io::ErrorKind::ConnectionReset)) } else { Ok(()) }
    }

    async fn send(&self, inner: Client, request: Request<Body>) -> Result<Response<Answer>, BoxError> {
        self.check_alive()?;
        let (method, path) = (request.method().clone(), request.uri().path().to_owned());
        let is_watch = request.uri().query().is_some_and(|query| query.contains("watch="));
        let fault = self.choose(&method, is_watch);
        match fault {
            Some(RequestFault::Conflict) => return Ok(refusal(409, "Conflict", None)),
            Some(RequestFault::TooManyRequests(after)) => return Ok(refusal(429, "TooManyRequests", after)),
            // A watch that begins with an error has expired more often than not.
            Some(RequestFault::ServerError) if is_watch => return Ok(refusal(410, "Expired", None)),
            Some(RequestFault::ServerError) => return Ok(refusal(500, "InternalError", None)),
            Some(RequestFault::Unreachable) => return Err(broken(io::ErrorKind::ConnectionRefused)),
            Some(RequestFault::Slow) => {
                let wait = self.state.lock().unwrap().random.below(12);
                sleep(Duration::from_secs(wait)).await;
                self.check_alive()?;
            }
            _ => {}
        }
        if is_watch {
            let response = inner.send(request).await?;
            return Ok(response.map(|body| self.watched(body)));
        }
        let response = self.forward(inner, request).await?;
        self.check_alive()?;
        if self.state.lock().unwrap().lost.iter().any(|part| path.contains(part)) {
            return Err(broken(io::ErrorKind::ConnectionReset));
        }
        let (head, body) = response.into_parts();
        match fault {
            Some(RequestFault::ErrorAfterwards) => Ok(refusal(500, "InternalError", None)),
            Some(RequestFault::LostAnswer) => Err(broken(io::ErrorKind::ConnectionReset)),
            Some(RequestFault::CutAnswer) => {
                let half = body.slice(..body.len() / 2);
                let chunks = [Ok(Frame::data(half)), Err(broken(io::ErrorKind::UnexpectedEof))];
                let cut = StreamBody::new(futures::stream::iter(chunks));
                Ok(Response::from_parts(head, cut.boxed_unsync()))
            }
            _ => Ok(Response::from_parts(head, whole(body))),
        }
    }

    /// Sends a request to the server and records a write. It is sent even if its caller does not wait for the response any more: what was
    /// sent cannot be taken back.
    async fn forward(&self, inner: Client, request: Request<Body>) -> Result<Response<Bytes>, BoxError> {
        let faults = self.clone();
        let sent = Instant::now();
        let task = tokio::spawn(async move {
            let (head, body) = request.into_parts();
            let body = body.collect_bytes().await?;
            let (method, path) = (head.method.clone(), head.uri.path().to_owned());
            if method != Method::GET {
                let mut held = faults.held.subscribe();
                let _ = held.wait_for(|parts| !parts.iter().any(|part| path.contains(part))).await;
            }
            let write = (method != Method::GET).then(|| serde_json::from_slice(&body).unwrap_or_default());
            let response = inner.send(Request::from_parts(head, Body::from(body))).await?;
            let (head, body) = response.into_parts();
            let body = body.collect_bytes().await?;
            if let Some(write) = write {
                let (done, code) = (Instant::now(), head.status.as_u16());
                let by = faults.name.clone();
                let write = SeenWrite { sent, done, by, method, path, body: write, code };
                faults.history.lock().unwrap().push(write);
            }
            Ok::<_, BoxError>(Response::from_parts(head, body))
        });
        task.await?
    }

    /// The events of a watch: late while watches are stale, and at an end when they are cut.
    fn watched(&self, body: Body) -> Answer {
        let stale = Arc::clone(&self.stale);
        let mut cut = self.cut.subscribe();
        let events = body.into_data_stream().then(move |chunk| {
            let mut stale = stale.subscribe();
            async move {
                let _ = stale.wait_for(|is_stale| !is_stale).await;
                chunk
            }
        });
        let events = events.take_until(async move {
            let _ = cut.changed().await;
        });
        let events = events.map_ok(Frame::data).map_err(BoxError::from);
        StreamBody::new(events).boxed_unsync()
    }
}

fn broken(kind: io::ErrorKind) -> BoxError {
    io::Error::from(kind).into()
}

fn whole(body: Bytes) -> Answer {
    Full::new(body).map_err(|never| match never {}).boxed_unsync()
}

fn refusal(code: u16, reason: &str, retry_after: Option<u64>) -> Response<Answer> {
    let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code,
        "reason": reason, "message": format!("injected: {reason}")});
    let mut response = Response::builder().status(code).header("content-type", "application/json");
    if let Some(seconds) = retry_after {
        response = response.header("retry-after", seconds);
    }
    response.body(whole(Bytes::from(status.to_string()))).unwrap()
}
