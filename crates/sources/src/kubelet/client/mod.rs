//! One request to one kubelet, and why it failed.
//!
//! HTTP/1.1 over a connection that is kept. Between two requests only the connection itself is kept: hyper's buffers
//! (8 KiB for writing, 16 KiB for reading) are made anew for each request, which costs next to nothing. So an idle
//! connection takes 11 KiB, TLS included, and not 35: with 5,000 nodes a difference of 120 MiB. Nothing is compressed:
//! it would cost both sides more than it saves inside a cluster.
//!
//! ```text
//! connect   a connection, and why there is none
//! exchange  a question and its answer over a connection
//! budget    memory for answers, all together
//! ```

mod budget;
mod connect;
mod exchange;
#[cfg(test)]
pub(crate) mod fake;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use jiff::Timestamp;
use tokio::time::Instant;

use super::address::Place;
use super::report::{Cause, Stage, status_line};
use super::trust::Trust;
pub use budget::Body;
use budget::Budget;
use connect::Stream;

/// What a client is told once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Time for one request, connecting included.
    pub timeout: Duration,
    /// Bytes of an answer that are read at most.
    pub body_limit: usize,
    /// Bytes of all answers that are read at the same time, at most, apart from 64 KiB of each.
    pub memory: usize,
    /// Who we say we are.
    pub user_agent: String,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(10),
            body_limit: 16 << 20,
            memory: 64 << 20,
            user_agent: concat!("plimsoll/", env!("CARGO_PKG_VERSION")).to_owned(),
        }
    }
}

/// What is kept of a kubelet between two requests.
#[derive(Default)]
pub struct Peer {
    line: Option<Line>,
    /// Length of the last answer.
    length: usize,
}

/// An open connection.
struct Line {
    stream: Stream,
    authority: Box<str>,
    plain: bool,
    generation: u64,
}

impl fmt::Debug for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Peer").field("connected", &self.line.is_some()).field("length", &self.length).finish()
    }
}

/// What a kubelet answered.
#[derive(Debug)]
pub struct Answer {
    /// When it was asked.
    pub sent: Timestamp,
    /// What it said.
    pub body: Body,
}

/// Why a kubelet did not answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The cause.
    pub cause: Cause,
    /// What exactly happened.
    pub error: String,
}

impl Failure {
    pub(crate) fn new(cause: Cause, error: impl fmt::Display) -> Self {
        Self { cause, error: error.to_string() }
    }

    fn timed_out(stage: Stage, after: Duration) -> Self {
        let cause = Cause::TimedOut { stage, after };
        Self { error: cause.words(), cause }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.error)
    }
}

impl std::error::Error for Failure {}

/// Tells the time.
pub type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// Asks kubelets.
pub struct Client {
    settings: Settings,
    trust: Trust,
    budget: Budget,
    clock: Clock,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("settings", &self.settings)
            .field("trust", &self.trust)
            .finish_non_exhaustive()
    }
}

/// How a request over an open connection ended.
enum Ended {
    /// With an answer.
    Answered(Answer),
    /// The kubelet does not know us.
    Refused(Failure),
    /// The connection had been closed before: nothing is known yet.
    Stale(Failure),
    /// It failed.
    Failed(Failure),
}

impl Client {
    /// A client that trusts whom `trust` trusts.
    pub fn new(settings: Settings, trust: Trust, clock: Clock) -> Self {
        let budget = Budget::new(settings.memory, settings.body_limit);
        Self { settings, trust, budget, clock }
    }

    /// The time.
    pub fn now(&self) -> Timestamp {
        (self.clock)()
    }

    /// Asks the kubelet of `node` at `place` once. A connection that the other side has closed meanwhile, and a token
    /// that has been replaced meanwhile, are no failures: it is asked again at once.
    pub async fn get(&self, node: &str, place: &Place, peer: &mut Peer) -> Result<Answer, Failure> {
        let deadline = Deadline { at: Instant::now() + self.settings.timeout, after: self.settings.timeout };
        let (mut reconnected, mut renewed) = (false, false);
        loop {
            let (line, fresh) = self.line(node, place, peer, deadline).await?;
            let generation = line.generation;
            let token = if place.plain { None } else { self.trust.token() };
            let ended = self.exchange(line, place, peer, token.clone(), fresh, deadline).await;
            match ended {
                Ended::Answered(answer) => return Ok(answer),
                Ended::Stale(_) if !reconnected => reconnected = true,
                Ended::Refused(_)
                    if !place.plain && !renewed && self.trust.renewed(token.as_ref(), generation) =>
                {
                    renewed = true;
                }
                Ended::Stale(failure) | Ended::Refused(failure) | Ended::Failed(failure) => {
                    return Err(failure);
                }
            }
        }
    }

    /// The connection that is open, if it is still the right one, or a new one (`true`).
    async fn line(
        &self,
        node: &str,
        place: &Place,
        peer: &mut Peer,
        deadline: Deadline,
    ) -> Result<(Line, bool), Failure> {
        let authority = place.authority();
        if let Some(line) = peer.line.take()
            && *line.authority == *authority
            && line.plain == place.plain
            && (place.plain || line.generation == self.trust.generation())
        {
            return Ok((line, false));
        }
        let (config, generation) = self.trust.greeting(node);
        let stream = connect::connect(place, &authority, config, deadline).await?;
        Ok((Line { stream, authority: authority.into(), plain: place.plain, generation }, true))
    }

    async fn exchange(
        &self,
        line: Line,
        place: &Place,
        peer: &mut Peer,
        token: Option<http::HeaderValue>,
        fresh: bool,
        deadline: Deadline,
    ) -> Ended {
        let Line { stream, authority, plain, generation } = line;
        let sent = self.now();
        let request = match exchange::request(place, &authority, &self.settings.user_agent, token) {
            Ok(request) => request,
            Err(failure) => return Ended::Failed(failure),
        };
        let mut exchange = match exchange::begin(stream, request, deadline).await {
            Ok(exchange) => exchange,
            Err((true, failure)) if !fresh => return Ended::Stale(failure),
            Err((_, failure)) => return Ended::Failed(failure),
        };
        let status = exchange.status();
        let good = status == StatusCode::OK;
        let limit = if good { self.settings.body_limit } else { exchange::WORDS };
        let body = exchange.body(&self.budget, peer.length, limit, deadline).await;
        if body.is_ok() {
            peer.line =
                exchange.stream(deadline).await.map(|stream| Line { stream, authority, plain, generation });
        }
        if !good {
            let failure = refused(status, body.as_ref().map_or(&[][..], |body| body.bytes()));
            return if status == StatusCode::UNAUTHORIZED {
                Ended::Refused(failure)
            } else {
                Ended::Failed(failure)
            };
        }
        match body {
            Ok(body) => {
                peer.length = body.bytes().len();
                Ended::Answered(Answer { sent, body })
            }
            Err(failure) => Ended::Failed(failure),
        }
    }
}

/// An answer that is none. Kubelets say who is forbidden what: that is worth repeating.
fn refused(status: StatusCode, body: &[u8]) -> Failure {
    let cause = match status {
        StatusCode::UNAUTHORIZED => Cause::NotAuthenticated,
        StatusCode::FORBIDDEN => Cause::NotAuthorized,
        other => Cause::Status(other.as_u16()),
    };
    let mut error = format!("request failed, status: \"{}\"", status_line(status.as_u16()));
    let words = printable(body);
    if !words.is_empty() {
        error.push_str(": ");
        error.push_str(&words);
    }
    Failure::new(cause, error)
}

/// The first line of a text of somebody else, short enough for a line of a log.
fn printable(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    let line = text.trim_start().lines().next().unwrap_or_default();
    line.chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .take(200)
        .collect::<String>()
        .trim_end()
        .to_owned()
}

/// Until when, and how long that was.
#[derive(Clone, Copy, Debug)]
struct Deadline {
    at: Instant,
    after: Duration,
}

impl Deadline {
    async fn limit<T>(self, stage: Stage, work: impl Future<Output = T>) -> Result<T, Failure> {
        tokio::time::timeout_at(self.at, work).await.map_err(|_| Failure::timed_out(stage, self.after))
    }
}
