//! A question and its answer over a connection.

use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};

use bytes::Bytes;
use http::header::{AUTHORIZATION, HOST, USER_AGENT};
use http::{HeaderValue, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Empty};
use hyper::body::{Body as _, Incoming};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;

use super::budget::{Body, Budget};
use super::connect::Stream;
use super::{Deadline, Failure};
use crate::kubelet::address::Place;
use crate::kubelet::report::{Cause, Stage};

/// The head of an answer may be so long; its body is read in such pieces.
const PIECE: usize = 16 << 10;

/// What is read of an answer that is an error.
pub(super) const WORDS: usize = 4 << 10;

/// A connection on which an answer comes in.
pub(super) struct Exchange {
    line: Line,
    send: http1::SendRequest<Empty<Bytes>>,
    response: Response<Incoming>,
}

/// A connection until it ends. Then it is dropped at once: only so does whoever waits for it learn of that.
struct Line(Option<http1::Connection<TokioIo<Stream>, Empty<Bytes>>>);

/// What is asked.
pub(super) fn request(
    place: &Place,
    authority: &str,
    agent: &str,
    token: Option<HeaderValue>,
) -> Result<Request<Empty<Bytes>>, Failure> {
    let mut request = Request::get(&*place.path).header(HOST, authority).header(USER_AGENT, agent);
    if let Some(token) = token {
        request = request.header(AUTHORIZATION, token);
    }
    let odd = |error: http::Error| {
        let words = format!("{place} cannot be asked: {error}");
        Failure::new(Cause::Other(words.clone().into()), words)
    };
    request.body(Empty::new()).map_err(odd)
}

/// Asks, and waits until the answer begins. With a failure comes whether the connection was closed or broken before
/// that.
pub(super) async fn begin(
    stream: Stream,
    request: Request<Empty<Bytes>>,
    deadline: Deadline,
) -> Result<Exchange, (bool, Failure)> {
    let shaken = http1::Builder::new().read_buf_exact_size(Some(PIECE)).handshake(TokioIo::new(stream)).await;
    let (mut send, connection) = shaken.map_err(|error| (true, broken(&error)))?;
    let mut line = Line(Some(connection));
    let answered = deadline.limit(Stage::Waiting, line.drive(send.send_request(request))).await;
    match answered.map_err(|failure| (false, failure))? {
        Ok(response) => Ok(Exchange { line, send, response }),
        Err(error) => Err((!error.is_parse(), broken(&error))),
    }
}

impl Exchange {
    pub(super) fn status(&self) -> StatusCode {
        self.response.status()
    }

    /// The whole body. `usual` is how long it probably is.
    pub(super) async fn body(
        &mut self,
        budget: &Budget,
        usual: usize,
        limit: usize,
        deadline: Deadline,
    ) -> Result<Body, Failure> {
        let mut body = Body::default();
        let source = self.response.body_mut();
        let too_large = || {
            let cause = Cause::TooLarge { limit };
            Failure::new(cause.clone(), cause.words())
        };
        let told = source.size_hint().exact();
        if told.is_some_and(|told| told > limit as u64) {
            return Err(too_large());
        }
        // A server may lie about the length of what it sends, but memory is only taken as far as others leave some.
        let usual = told.map_or(usual + usual / 8, |told| told as usize).min(limit);
        deadline.limit(Stage::Reading, budget.reserve(&mut body, usual.min(256 << 10))).await?;
        loop {
            let frame = deadline.limit(Stage::Reading, self.line.drive(source.frame())).await?;
            let Some(frame) = frame else { return Ok(body) };
            let frame = frame.map_err(|error| broken(&error))?;
            // Trailers say nothing to us.
            let Ok(piece) = frame.into_data() else { continue };
            if body.bytes().len() + piece.len() > limit {
                return Err(too_large());
            }
            deadline.limit(Stage::Reading, budget.reserve(&mut body, piece.len())).await?;
            Budget::add(&mut body, &piece);
        }
    }

    /// The connection for the next question, if the other side keeps it open.
    pub(super) async fn stream(self, deadline: Deadline) -> Option<Stream> {
        let Self { mut line, mut send, response } = self;
        drop(response);
        let ready = line.drive(poll_fn(|context| send.poll_ready(context)));
        let ready = deadline.limit(Stage::Reading, ready).await;
        if !matches!(ready, Ok(Ok(()))) {
            return None;
        }
        let parts = line.0?.into_parts();
        // Whoever says more than he was asked for is not understood.
        parts.read_buf.is_empty().then(|| parts.io.into_inner())
    }
}

impl Line {
    /// Does something that needs the connection to go on.
    async fn drive<T>(&mut self, work: impl Future<Output = T>) -> T {
        let mut work = pin!(work);
        poll_fn(|context| {
            // What goes wrong here is told to whoever waits for the answer.
            if self.0.as_mut().is_some_and(|connection| Pin::new(connection).poll(context).is_ready()) {
                self.0 = None;
            }
            work.as_mut().poll(context)
        })
        .await
    }
}

fn broken(error: &hyper::Error) -> Failure {
    let source = std::error::Error::source(error);
    let inner = source.map(|source| format!(": {source}")).unwrap_or_default();
    let ended = source
        .and_then(|source| source.downcast_ref::<io::Error>())
        .is_some_and(|error| error.kind() == io::ErrorKind::UnexpectedEof);
    let words = if error.is_incomplete_message() || ended {
        "the kubelet closed the connection before its answer was complete".to_owned()
    } else if error.is_parse() {
        format!("the answer is not HTTP: {error}{inner}")
    } else {
        format!("the connection broke: {error}{inner}")
    };
    Failure::new(Cause::Other(words.clone().into()), words)
}
