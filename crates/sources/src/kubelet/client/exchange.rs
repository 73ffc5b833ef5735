//! A question and its answer over a connection.

use http::uri::PathAndQuery;
use http::{HeaderValue, StatusCode};

use super::Failure;
use super::budget::{Body, Budget};
use super::head::{Flaw, Framing, Head};
use super::wire::{Broken, Wire};
use crate::kubelet::address::Place;
use crate::kubelet::report::Cause;

/// What is read of an answer that is an error.
pub(super) const WORDS: usize = 4 << 10;

/// A connection on which an answer comes in.
pub(super) struct Exchange {
    wire: Wire,
    head: Head,
    /// What came after what was read so far.
    rest: Vec<u8>,
}

/// What is asked.
pub(super) fn request(
    place: &Place,
    authority: &str,
    agent: &str,
    token: Option<&HeaderValue>,
) -> Result<Vec<u8>, Failure> {
    let odd = |error: &dyn std::fmt::Display| {
        let words = format!("{place} cannot be asked: {error}");
        Failure::new(Cause::Other(words.clone().into()), words)
    };
    // Nobody who names a node or its path may add lines of his own.
    PathAndQuery::try_from(&*place.path).map_err(|error| odd(&error))?;
    for value in [authority, agent] {
        HeaderValue::from_str(value).map_err(|error| odd(&error))?;
    }
    let mut request = Vec::with_capacity(128 + place.path.len() + token.map_or(0, HeaderValue::len));
    for part in ["GET ", &*place.path, " HTTP/1.1\r\nHost: ", authority, "\r\nUser-Agent: ", agent] {
        request.extend_from_slice(part.as_bytes());
    }
    if let Some(token) = token {
        request.extend_from_slice(b"\r\nAuthorization: ");
        request.extend_from_slice(token.as_bytes());
    }
    request.extend_from_slice(b"\r\n\r\n");
    Ok(request)
}

/// Asks, and waits until the answer begins. With a failure comes whether the connection was closed or broken before
/// that.
pub(super) async fn begin(mut wire: Wire, request: &[u8], fresh: bool) -> Result<Exchange, (bool, Failure)> {
    if !fresh && !wire.is_quiet() {
        return Err((true, broken(&Broken::Ended)));
    }
    wire.write(request).await.map_err(|error| (true, broken(&error)))?;
    let (mut rest, mut seen) = (Vec::new(), 0);
    loop {
        match wire.read(&mut rest).await {
            Ok(0) => return Err((true, broken(&Broken::Ended))),
            Ok(_) => {}
            Err(error) => return Err((true, broken(&error))),
        }
        loop {
            let read = Head::read(&rest, seen).map_err(|flaw| (false, not_http(flaw)))?;
            let Some((head, length)) = read else { break };
            rest.drain(..length);
            match head.status {
                101 => return Err((false, not_http("it wants to speak another language"))),
                // An answer will come.
                100..200 => {}
                _ => return Ok(Exchange { wire, head, rest }),
            }
        }
        seen = rest.len();
    }
}

impl Exchange {
    pub(super) fn status(&self) -> StatusCode {
        // Three digits always are one.
        StatusCode::from_u16(self.head.status).unwrap_or(StatusCode::BAD_GATEWAY)
    }

    /// The whole body. `usual` is how long it probably is.
    pub(super) async fn body(
        &mut self,
        budget: &Budget,
        usual: usize,
        limit: usize,
    ) -> Result<Body, Failure> {
        let mut body = Body::default();
        let told = self.head.body.length();
        if told.is_some_and(|told| told > limit as u64) {
            return Err(too_large(limit));
        }
        // A server may lie about the length of what it sends, but memory is only taken as far as others leave some.
        let usual = told.map_or(usual + usual / 8, |told| told as usize).min(limit);
        budget.reserve(&mut body, usual.min(256 << 10)).await;
        loop {
            let mut used = 0;
            while let Some((piece, length)) = {
                let rest = self.rest.get(used..).unwrap_or_default();
                self.head.body.next(rest).map_err(not_http)?
            } {
                used += length;
                if body.bytes().len() + piece.len() > limit {
                    return Err(too_large(limit));
                }
                budget.reserve(&mut body, piece.len()).await;
                Budget::add(&mut body, piece);
            }
            self.rest.drain(..used.min(self.rest.len()));
            if self.head.body.is_done() {
                return Ok(body);
            }
            if self.wire.read(&mut self.rest).await.map_err(|error| broken(&error))? == 0 {
                return match self.head.body {
                    Framing::UntilClosed => Ok(body),
                    _ => Err(broken(&Broken::Ended)),
                };
            }
        }
    }

    /// The connection for the next question, if the other side keeps it open.
    pub(super) fn wire(mut self) -> Option<Wire> {
        self.wire.rest();
        // Whoever says more than he was asked for is not understood.
        (self.head.is_kept && self.rest.is_empty()).then_some(self.wire)
    }
}

fn too_large(limit: usize) -> Failure {
    let cause = Cause::TooLarge { limit };
    Failure::new(cause.clone(), cause.words())
}

fn not_http(flaw: Flaw) -> Failure {
    let words = format!("the answer is not HTTP: {flaw}");
    Failure::new(Cause::Other(words.clone().into()), words)
}

fn broken(error: &Broken) -> Failure {
    let words = match error {
        Broken::Ended => "the kubelet closed the connection before its answer was complete".to_owned(),
        other => format!("the connection broke: {other}"),
    };
    Failure::new(Cause::Other(words.clone().into()), words)
}
