//! One request and its response over a connection.

use http::uri::PathAndQuery;
use http::{HeaderValue, StatusCode};

use super::ScrapeError;
use super::budget::{MemoryBudget, ScrapeBody};
use super::head::{BodyFraming, HttpSyntaxError, ResponseHead};
use super::stream::{KubeletStream, StreamError};
use crate::kubelet::address::KubeletAddress;
use crate::kubelet::report::ScrapeErrorCause;

/// Size limit of the body of an error response.
pub(super) const MAX_ERROR_BODY_BYTES: usize = 4 << 10;

/// A connection with a response in progress.
pub(super) struct PendingExchange {
    stream: KubeletStream,
    head: ResponseHead,
    /// Received bytes that are not consumed yet.
    rest: Vec<u8>,
}

/// Formats the request.
pub(super) fn request(
    target: &KubeletAddress,
    authority: &str,
    agent: &str,
    token: Option<&HeaderValue>,
) -> Result<Vec<u8>, ScrapeError> {
    let invalid = |error: &dyn std::fmt::Display| {
        let words = format!("{target} cannot be requested: {error}");
        ScrapeError::new(ScrapeErrorCause::Other(words.clone().into()), words)
    };
    // Node names and paths come from the API server; validation prevents header injection.
    PathAndQuery::try_from(&*target.path).map_err(|error| invalid(&error))?;
    for value in [authority, agent] {
        HeaderValue::from_str(value).map_err(|error| invalid(&error))?;
    }
    let mut request = Vec::with_capacity(128 + target.path.len() + token.map_or(0, HeaderValue::len));
    for part in ["GET ", &*target.path, " HTTP/1.1\r\nHost: ", authority, "\r\nUser-Agent: ", agent] {
        request.extend_from_slice(part.as_bytes());
    }
    if let Some(token) = token {
        request.extend_from_slice(b"\r\nAuthorization: ");
        request.extend_from_slice(token.as_bytes());
    }
    request.extend_from_slice(b"\r\n\r\n");
    Ok(request)
}

/// Where the connection of a request comes from.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ConnectionOrigin {
    /// It was kept after an earlier request; the kubelet may have closed it since.
    Kept,
    /// It was opened for this request.
    New,
}

/// Why there is no response head.
pub(super) enum BeginError {
    /// The connection was closed or broken before the response head.
    Disconnected(ScrapeError),
    /// The response is not valid.
    Invalid(ScrapeError),
}

/// Sends the request and waits for the response head.
pub(super) async fn begin(
    mut stream: KubeletStream,
    request: &[u8],
    origin: ConnectionOrigin,
) -> Result<PendingExchange, BeginError> {
    let disconnected = |error: StreamError| BeginError::Disconnected(broken(&error));
    if origin == ConnectionOrigin::Kept && !stream.is_idle() {
        return Err(disconnected(StreamError::Ended));
    }
    stream.write(request).await.map_err(disconnected)?;
    let (mut rest, mut seen) = (Vec::new(), 0);
    loop {
        match stream.read(&mut rest).await {
            Ok(0) => return Err(disconnected(StreamError::Ended)),
            Ok(_) => {}
            Err(error) => return Err(disconnected(error)),
        }
        loop {
            let read = ResponseHead::read(&rest, seen).map_err(|flaw| BeginError::Invalid(not_http(flaw)))?;
            let Some((head, length)) = read else { break };
            rest.drain(..length);
            match head.status {
                101 => return Err(BeginError::Invalid(not_http("it switches to another protocol"))),
                // An informational response precedes the final one.
                100..200 => {}
                _ => return Ok(PendingExchange { stream, head, rest }),
            }
        }
        seen = rest.len();
    }
}

impl PendingExchange {
    pub(super) fn status(&self) -> StatusCode {
        // A three-digit number is always a valid status code.
        StatusCode::from_u16(self.head.status).unwrap_or(StatusCode::BAD_GATEWAY)
    }

    /// Reads the whole body. `usual` is the expected length.
    pub(super) async fn body(
        &mut self,
        budget: &MemoryBudget,
        usual: usize,
        limit: usize,
    ) -> Result<ScrapeBody, ScrapeError> {
        let mut body = ScrapeBody::default();
        let announced = self.head.body.length();
        if announced.is_some_and(|announced| announced > limit as u64) {
            return Err(too_large(limit));
        }
        // The announced length may be wrong, so only a bounded part is reserved in advance.
        let usual = announced.map_or(usual + usual / 8, |announced| announced as usize).min(limit);
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
                MemoryBudget::add(&mut body, piece);
            }
            self.rest.drain(..used.min(self.rest.len()));
            if self.head.body.is_done() {
                return Ok(body);
            }
            if self.stream.read(&mut self.rest).await.map_err(|error| broken(&error))? == 0 {
                return match self.head.body {
                    BodyFraming::UntilClosed => Ok(body),
                    _ => Err(broken(&StreamError::Ended)),
                };
            }
        }
    }

    /// Returns the connection for the next request, if the server keeps it open.
    pub(super) fn stream(mut self) -> Option<KubeletStream> {
        self.stream.release_buffers();
        // Unexpected extra bytes make the connection unusable.
        (self.head.is_kept && self.rest.is_empty()).then_some(self.stream)
    }
}

fn too_large(limit: usize) -> ScrapeError {
    let cause = ScrapeErrorCause::TooLarge { limit };
    ScrapeError::new(cause.clone(), cause.message())
}

fn not_http(flaw: HttpSyntaxError) -> ScrapeError {
    let words = format!("the response is not HTTP: {flaw}");
    ScrapeError::new(ScrapeErrorCause::Other(words.clone().into()), words)
}

fn broken(error: &StreamError) -> ScrapeError {
    let words = match error {
        StreamError::Ended => "the kubelet closed the connection before its response was complete".to_owned(),
        other => format!("the connection broke: {other}"),
    };
    ScrapeError::new(ScrapeErrorCause::Other(words.clone().into()), words)
}
