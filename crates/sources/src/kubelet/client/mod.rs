//! One request to one kubelet, and why it failed.
//!
//! HTTP/1.1 over a connection that is kept. Kubelets are asked thousands of times a minute, always the same, so this is
//! a client that can do no more than that: one for all purposes took half of all processor time of the scraper. Between
//! two requests only the connection itself is kept, and none of its buffers. Nothing is compressed: it would cost both
//! sides more than it saves inside a cluster.
//!
//! ```text
//! connect   a connection, and why there is none
//! wire      bytes over a connection, with or without TLS
//! head      the head of an answer, and how its body is cut
//! exchange  a question and its answer over a connection
//! budget    memory for answers, all together
//! ```

mod budget;
mod connect;
mod exchange;
#[cfg(test)]
pub(crate) mod fake;
mod head;
#[cfg(test)]
mod tests;
mod wire;

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
use wire::Wire;

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
pub struct Peer {
    line: Option<Line>,
    /// How far the request came.
    stage: Stage,
    /// Length of the last answer.
    length: usize,
}

/// An open connection.
struct Line {
    wire: Wire,
    authority: Box<str>,
    plain: bool,
    generation: u64,
}

impl Default for Peer {
    fn default() -> Self {
        Self { line: None, stage: Stage::Connecting, length: 0 }
    }
}

impl Peer {
    /// Whether there is a connection.
    pub(crate) fn is_connected(&self) -> bool {
        self.line.is_some()
    }
}

impl fmt::Debug for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut peer = f.debug_struct("Peer");
        peer.field("connected", &self.is_connected()).field("length", &self.length).finish_non_exhaustive()
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
        let after = self.settings.timeout;
        let deadline = Instant::now() + after;
        // One timer for everything.
        let asked = tokio::time::timeout_at(deadline, self.ask(node, place, peer, deadline)).await;
        asked.unwrap_or_else(|_| Err(Failure::timed_out(peer.stage, after)))
    }

    async fn ask(
        &self,
        node: &str,
        place: &Place,
        peer: &mut Peer,
        deadline: Instant,
    ) -> Result<Answer, Failure> {
        let (mut reconnected, mut renewed) = (false, false);
        loop {
            let (line, fresh) = self.line(node, place, peer).await?;
            let generation = line.generation;
            let token = if place.plain { None } else { self.trust.token() };
            let ended = self.exchange(line, place, peer, token.as_ref(), fresh, deadline).await;
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
    async fn line(&self, node: &str, place: &Place, peer: &mut Peer) -> Result<(Line, bool), Failure> {
        let authority = place.authority();
        if let Some(line) = peer.line.take()
            && *line.authority == *authority
            && line.plain == place.plain
            && (place.plain || line.generation == self.trust.generation())
        {
            return Ok((line, false));
        }
        let (config, generation) = self.trust.greeting(node);
        let wire = connect::connect(place, &authority, config, &mut peer.stage).await?;
        Ok((Line { wire, authority: authority.into(), plain: place.plain, generation }, true))
    }

    async fn exchange(
        &self,
        line: Line,
        place: &Place,
        peer: &mut Peer,
        token: Option<&http::HeaderValue>,
        fresh: bool,
        deadline: Instant,
    ) -> Ended {
        let Line { wire, authority, plain, generation } = line;
        let sent = self.now();
        let request = match exchange::request(place, &authority, &self.settings.user_agent, token) {
            Ok(request) => request,
            Err(failure) => return Ended::Failed(failure),
        };
        peer.stage = Stage::Waiting;
        let mut exchange = match exchange::begin(wire, &request, fresh).await {
            Ok(exchange) => exchange,
            Err((true, failure)) if !fresh => return Ended::Stale(failure),
            Err((_, failure)) => return Ended::Failed(failure),
        };
        peer.stage = Stage::Reading;
        let status = exchange.status();
        let good = status == StatusCode::OK;
        let body = if good {
            exchange.body(&self.budget, peer.length, self.settings.body_limit).await
        } else {
            // Words that do not come in time must not hide the status, which is known.
            let soon = deadline - self.settings.timeout / 16;
            let words = exchange.body(&self.budget, 0, exchange::WORDS);
            tokio::time::timeout_at(soon, words)
                .await
                .unwrap_or_else(|_| Err(Failure::timed_out(Stage::Reading, self.settings.timeout)))
        };
        if body.is_ok() {
            peer.line = exchange.wire().map(|wire| Line { wire, authority, plain, generation });
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
