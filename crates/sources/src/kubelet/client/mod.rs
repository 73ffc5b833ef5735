//! HTTP/1.1 client for kubelets: one request to one kubelet, and why it failed.
//!
//! The client is hand-written because it sends the same GET request thousands of times a minute over kept-alive
//! connections: with hyper the client took half of the CPU time of the scraper, and its connections kept buffers
//! while idle. This client supports nothing else. Between requests it keeps only the connection and no buffers.
//! Compression is not requested, because inside a cluster it costs both sides more CPU than it saves in bandwidth.
//!
//! ```text
//! connect   opens a connection, and classifies the errors of that
//! stream    bytes over a connection, with or without TLS
//! head      response head and body framing
//! exchange  one request and its response over a connection
//! budget    memory limit of all response bodies together
//! ```

mod budget;
mod connect;
mod exchange;
#[cfg(test)]
pub(crate) mod fake;
mod head;
mod stream;
#[cfg(test)]
mod tests;

use std::fmt;
use std::time::Duration;

use http::StatusCode;
use jiff::Timestamp;
use tokio::time::Instant;

use super::address::KubeletAddress;
use super::report::{RequestStage, ScrapeErrorCause, status_line};
use super::trust::KubeletTrust;
use crate::Clock;
use budget::MemoryBudget;
pub use budget::ScrapeBody;
use exchange::{BeginError, ConnectionOrigin};
use stream::KubeletStream;

/// Settings of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KubeletClientSettings {
    /// Timeout of one request, connecting included.
    pub timeout: Duration,
    /// Size limit of a response body in bytes.
    pub body_limit: usize,
    /// Size limit of all response bodies read at the same time, in bytes, not counting the first 64 KiB of each.
    pub memory: usize,
    /// Value of the `User-Agent` header.
    pub user_agent: String,
}

impl Default for KubeletClientSettings {
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(10),
            body_limit: 16 << 20,
            memory: 64 << 20,
            user_agent: concat!("plimsoll/", env!("CARGO_PKG_VERSION")).to_owned(),
        }
    }
}

/// State kept for a kubelet between requests.
pub struct KubeletConnection {
    open: Option<OpenConnection>,
    /// Stage that the last request reached.
    stage: RequestStage,
    /// Body length of the last response.
    length: usize,
}

/// An open connection.
struct OpenConnection {
    stream: KubeletStream,
    authority: Box<str>,
    plain: bool,
    generation: u64,
}

impl Default for KubeletConnection {
    fn default() -> Self {
        Self { open: None, stage: RequestStage::Connecting, length: 0 }
    }
}

impl KubeletConnection {
    /// Whether a connection is open.
    pub(crate) fn is_connected(&self) -> bool {
        self.open.is_some()
    }
}

impl fmt::Debug for KubeletConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut connection = f.debug_struct("KubeletConnection");
        connection
            .field("connected", &self.is_connected())
            .field("length", &self.length)
            .finish_non_exhaustive()
    }
}

/// Response of a kubelet.
#[derive(Debug)]
pub struct ScrapeResponse {
    /// Time when the request was sent.
    pub sent: Timestamp,
    /// Response body.
    pub body: ScrapeBody,
}

/// A failed scrape.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScrapeError {
    /// Classified cause.
    pub cause: ScrapeErrorCause,
    /// Detailed text.
    pub error: String,
}

impl ScrapeError {
    pub(crate) fn new(cause: ScrapeErrorCause, error: impl fmt::Display) -> Self {
        Self { cause, error: error.to_string() }
    }

    fn timed_out(stage: RequestStage, after: Duration) -> Self {
        let cause = ScrapeErrorCause::TimedOut { stage, after };
        Self { error: cause.message(), cause }
    }
}

impl fmt::Display for ScrapeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.error)
    }
}

impl std::error::Error for ScrapeError {}

/// HTTP client for kubelets.
pub struct KubeletClient {
    settings: KubeletClientSettings,
    trust: KubeletTrust,
    budget: MemoryBudget,
    clock: Clock,
}

impl fmt::Debug for KubeletClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KubeletClient")
            .field("settings", &self.settings)
            .field("trust", &self.trust)
            .finish_non_exhaustive()
    }
}

/// Outcome of a request over an open connection.
enum ExchangeOutcome {
    /// Success.
    Answered(ScrapeResponse),
    /// The kubelet answered 401.
    Refused(ScrapeError),
    /// The connection was closed before the request; the kubelet may still be fine.
    Stale(ScrapeError),
    /// Another failure.
    Failed(ScrapeError),
}

impl KubeletClient {
    /// Creates a client.
    pub fn new(settings: KubeletClientSettings, trust: KubeletTrust, clock: Clock) -> Self {
        let budget = MemoryBudget::new(settings.memory, settings.body_limit);
        Self { settings, trust, budget, clock }
    }

    /// Current time.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Scrapes the kubelet of `node` at `target`. Retries at once if the kept-alive connection was closed, or if the
    /// token was replaced since it was read.
    pub async fn get(
        &self,
        node: &str,
        target: &KubeletAddress,
        connection: &mut KubeletConnection,
    ) -> Result<ScrapeResponse, ScrapeError> {
        let after = self.settings.timeout;
        let deadline = Instant::now() + after;
        // One timer covers all stages.
        let response =
            tokio::time::timeout_at(deadline, self.scrape_with_retries(node, target, connection, deadline))
                .await;
        response.unwrap_or_else(|_| Err(ScrapeError::timed_out(connection.stage, after)))
    }

    async fn scrape_with_retries(
        &self,
        node: &str,
        target: &KubeletAddress,
        connection: &mut KubeletConnection,
        deadline: Instant,
    ) -> Result<ScrapeResponse, ScrapeError> {
        let (mut reconnected, mut renewed) = (false, false);
        loop {
            let (open, origin) = self.open_connection(node, target, connection).await?;
            let generation = open.generation;
            let token = if target.plain { None } else { self.trust.token() };
            let ended = self.exchange(open, target, connection, token.as_ref(), origin, deadline).await;
            match ended {
                ExchangeOutcome::Answered(answer) => return Ok(answer),
                ExchangeOutcome::Stale(_) if !reconnected => reconnected = true,
                ExchangeOutcome::Refused(_)
                    if !target.plain
                        && !renewed
                        && self.trust.reload_after_refusal(token.as_ref(), generation) =>
                {
                    renewed = true;
                }
                ExchangeOutcome::Stale(failure)
                | ExchangeOutcome::Refused(failure)
                | ExchangeOutcome::Failed(failure) => {
                    return Err(failure);
                }
            }
        }
    }

    /// Returns the kept connection if it still fits the address and the trust settings, or a new one.
    async fn open_connection(
        &self,
        node: &str,
        target: &KubeletAddress,
        connection: &mut KubeletConnection,
    ) -> Result<(OpenConnection, ConnectionOrigin), ScrapeError> {
        let authority = target.authority();
        if let Some(open) = connection.open.take()
            && *open.authority == *authority
            && open.plain == target.plain
            && (target.plain || open.generation == self.trust.generation())
        {
            return Ok((open, ConnectionOrigin::Kept));
        }
        let (config, generation) = self.trust.tls_config(node);
        let stream = connect::connect(target, &authority, config, &mut connection.stage).await?;
        let open = OpenConnection { stream, authority: authority.into(), plain: target.plain, generation };
        Ok((open, ConnectionOrigin::New))
    }

    async fn exchange(
        &self,
        open: OpenConnection,
        target: &KubeletAddress,
        connection: &mut KubeletConnection,
        token: Option<&http::HeaderValue>,
        origin: ConnectionOrigin,
        deadline: Instant,
    ) -> ExchangeOutcome {
        let OpenConnection { stream, authority, plain, generation } = open;
        let sent = self.now();
        let request = match exchange::request(target, &authority, &self.settings.user_agent, token) {
            Ok(request) => request,
            Err(failure) => return ExchangeOutcome::Failed(failure),
        };
        connection.stage = RequestStage::Waiting;
        let mut exchange = match exchange::begin(stream, &request, origin).await {
            Ok(exchange) => exchange,
            Err(BeginError::Disconnected(failure)) if origin == ConnectionOrigin::Kept => {
                return ExchangeOutcome::Stale(failure);
            }
            Err(BeginError::Disconnected(failure) | BeginError::Invalid(failure)) => {
                return ExchangeOutcome::Failed(failure);
            }
        };
        connection.stage = RequestStage::Reading;
        let status = exchange.status();
        let good = status == StatusCode::OK;
        let body = if good {
            exchange.body(&self.budget, connection.length, self.settings.body_limit).await
        } else {
            // The status is known already, so a slow error body must not turn into a timeout.
            let body_deadline = deadline - self.settings.timeout / 16;
            let words = exchange.body(&self.budget, 0, exchange::MAX_ERROR_BODY_BYTES);
            tokio::time::timeout_at(body_deadline, words)
                .await
                .unwrap_or_else(|_| Err(ScrapeError::timed_out(RequestStage::Reading, self.settings.timeout)))
        };
        if body.is_ok() {
            connection.open =
                exchange.stream().map(|stream| OpenConnection { stream, authority, plain, generation });
        }
        if !good {
            let failure = refused(status, body.as_ref().map_or(&[][..], |body| body.bytes()));
            return if status == StatusCode::UNAUTHORIZED {
                ExchangeOutcome::Refused(failure)
            } else {
                ExchangeOutcome::Failed(failure)
            };
        }
        match body {
            Ok(body) => {
                connection.length = body.bytes().len();
                ExchangeOutcome::Answered(ScrapeResponse { sent, body })
            }
            Err(failure) => ExchangeOutcome::Failed(failure),
        }
    }
}

/// Error of a non-200 response. The body is included because kubelets name the missing permission there.
fn refused(status: StatusCode, body: &[u8]) -> ScrapeError {
    let cause = match status {
        StatusCode::UNAUTHORIZED => ScrapeErrorCause::NotAuthenticated,
        StatusCode::FORBIDDEN => ScrapeErrorCause::NotAuthorized,
        other => ScrapeErrorCause::Status(other.as_u16()),
    };
    let mut error = format!("request failed, status: \"{}\"", status_line(status.as_u16()));
    let words = printable(body);
    if !words.is_empty() {
        error.push_str(": ");
        error.push_str(&words);
    }
    ScrapeError::new(cause, error)
}

/// First line of a text from the kubelet, shortened and without control characters for the log.
fn printable(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    let first = text.trim_start().lines().next().unwrap_or_default();
    first
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .take(200)
        .collect::<String>()
        .trim_end()
        .to_owned()
}
