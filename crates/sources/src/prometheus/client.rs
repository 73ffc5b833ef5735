//! Asks Prometheus; identical questions are asked once.
//!
//! ```text
//! json      reads JSON without copying
//! number    values and times as Prometheus writes them
//! reply     answers to queries
//! series    answers about series, read while they come
//! queries   identical queries of concurrent requests, and a short memory
//! counts    how often, how long, how many failed
//! ```

mod counts;
pub(crate) mod json;
mod number;
mod queries;
mod reply;
mod series;
#[cfg(test)]
pub(crate) mod tests;

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Method};
use jiff::Timestamp;
use tokio::time::Instant;

use crate::http::{self as web, Ask, Response, Streamed};

pub use counts::{BackendReport, Health, Latency};
pub use reply::{Outcome, Reply, Sample, SampleLabels};
pub use series::{Found, Shape};

use counts::Counts;
use queries::Queries;

/// Where queries are sent, and where their answers come from.
pub trait Transport: Send + Sync + 'static {
    /// The base URL, for metrics and complaints; without secrets.
    fn base(&self) -> String;
    /// Asks, and reads the whole answer.
    fn send(&self, ask: Ask) -> BoxFuture<'_, Result<Response, web::Error>>;
    /// Asks, and leaves the body to be read piece by piece.
    fn stream(&self, ask: Ask) -> BoxFuture<'_, Result<Streamed, web::Error>>;
}

impl Transport for web::Client {
    fn base(&self) -> String {
        web::Client::base(self)
    }

    fn send(&self, ask: Ask) -> BoxFuture<'_, Result<Response, web::Error>> {
        Box::pin(web::Client::send(self, ask))
    }

    fn stream(&self, ask: Ask) -> BoxFuture<'_, Result<Streamed, web::Error>> {
        Box::pin(web::Client::stream(self, ask))
    }
}

/// How queries are sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Verb {
    /// In the URL, or as a form if they are too long for it.
    #[default]
    Short,
    /// Always in the URL.
    Get,
    /// Always as a form.
    Post,
}

/// How Prometheus is asked.
#[derive(Clone, Debug)]
pub struct Manner {
    /// How queries are sent.
    pub verb: Verb,
    /// How long a query may take.
    pub timeout: Duration,
    /// How long a request for series may take.
    pub series_timeout: Duration,
    /// How long answers are used again; never more than 15 seconds.
    pub memory: Duration,
    /// How many queries may be on their way at once.
    pub parallel: usize,
    /// How large the answer to a query may be.
    pub largest: usize,
    /// How many different series (name and label names) may be found by one selector.
    pub most_series: usize,
    /// How many answers are remembered.
    pub most_remembered: usize,
}

impl Default for Manner {
    fn default() -> Self {
        Self {
            verb: Verb::default(),
            timeout: Duration::from_secs(30),
            series_timeout: Duration::from_mins(2),
            memory: Duration::from_secs(10),
            parallel: 32,
            largest: 64 << 20,
            most_series: 250_000,
            most_remembered: 4096,
        }
    }
}

/// Answers are never used longer than this: the period of the HPA.
const LONGEST_MEMORY: Duration = Duration::from_secs(15);
/// Queries up to this length go into the URL.
const LONG_QUERY: usize = 1500;

/// Why Prometheus did not answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// It was not reached, or did not finish.
    #[error(transparent)]
    Http(#[from] web::Error),
    /// Somebody else answered, such as a proxy.
    #[error("bad_response: unknown response code {code}{body}")]
    Code {
        /// HTTP code.
        code: u16,
        /// The beginning of what was said.
        body: String,
    },
    /// It said no.
    #[error("{kind}: {message}")]
    Prometheus {
        /// One word: `bad_data`, `timeout`, `execution`.
        kind: String,
        /// A sentence.
        message: String,
    },
    /// What it said is not what Prometheus says.
    #[error("bad_response: {reason}{body}")]
    Garbled {
        /// Why.
        reason: String,
        /// The beginning of what was said.
        body: String,
    },
    /// There is too much.
    #[error("{0}")]
    TooMuch(String),
    /// It was not answered while somebody waited.
    #[error("no answer within {0:?}")]
    Late(Duration),
}

impl Error {
    /// What to do about it.
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::Http(error) => error.remedy(),
            Self::Code { code: 401 | 403, .. } => "check the token, the user or the client certificate",
            Self::Code { code: 404, .. } => "check the path of the URL: /api/v1/query is added to it",
            Self::Code { .. } | Self::Garbled { .. } => {
                "check that the URL leads to Prometheus and not to a login page or a proxy"
            }
            Self::Prometheus { kind, .. } if kind == "bad_data" => "check the query of the rule",
            Self::Prometheus { .. } => "see the log of Prometheus",
            Self::TooMuch(_) => "make the series query of the rule narrower",
            Self::Late(_) => "check the load of Prometheus, or make the query cheaper",
        }
    }

    /// Whether another question may well be answered.
    fn is_about_the_question(&self) -> bool {
        match self {
            Self::Prometheus { kind, .. } => matches!(&**kind, "bad_data" | "execution" | "not_found"),
            Self::TooMuch(_) => true,
            Self::Http(error) => matches!(error.cause, web::Cause::TooLarge(_)),
            Self::Code { .. } | Self::Garbled { .. } | Self::Late(_) => false,
        }
    }

    fn garbled(error: &json::Malformed, body: &[u8]) -> Self {
        Self::Garbled { reason: error.to_string(), body: Self::excerpt(body) }
    }

    /// The beginning of a text that should not have come.
    fn excerpt(body: &[u8]) -> String {
        let start = body.get(..body.len().min(96)).unwrap_or_default();
        let text = String::from_utf8_lossy(start);
        let text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        let text = text.trim();
        let lower = text.to_ascii_lowercase();
        if text.is_empty() {
            ", and nothing else".to_owned()
        } else if lower.starts_with("<!doctype html") || lower.starts_with("<html") {
            format!(", an HTML page ({text}…)")
        } else {
            format!(" ({text}{})", if body.len() > 96 { "…" } else { "" })
        }
    }
}

/// One Prometheus. Cheap to clone; all clones share what is remembered.
#[derive(Clone)]
pub struct Prometheus(Arc<Backend>);

struct Backend {
    transport: Arc<dyn Transport>,
    base: String,
    manner: Manner,
    counts: Counts,
    queries: Queries,
}

impl std::fmt::Debug for Prometheus {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Prometheus")
            .field("base", &self.0.base)
            .field("manner", &self.0.manner)
            .finish_non_exhaustive()
    }
}

impl Prometheus {
    /// Prometheus behind `transport`.
    pub fn new(transport: Arc<dyn Transport>, mut manner: Manner) -> Self {
        manner.memory = manner.memory.min(LONGEST_MEMORY);
        let queries = Queries::new(&manner);
        let base = transport.base();
        Self(Arc::new(Backend { counts: Counts::default(), queries, base, transport, manner }))
    }

    /// Its base URL.
    pub fn base(&self) -> &str {
        &self.0.base
    }

    /// Asks a query, unless the same one is being asked or was just answered; waits at most `within`. `now` is when
    /// the query is evaluated, if it is asked at all.
    pub async fn query(&self, query: &str, now: Timestamp, within: Duration) -> Result<Arc<Reply>, Error> {
        queries::ask(&self.0, query, now, within).await
    }

    /// Asks which series a selector has selected since `start`; only names of metrics and labels are kept.
    pub async fn series(&self, selector: &str, start: Timestamp, now: Timestamp) -> Result<Found, Error> {
        let fields = [("match[]", selector), ("start", &seconds(start))];
        let backend = &self.0;
        let ask =
            backend.ask("/api/v1/series", &fields).within(backend.manner.series_timeout).at_most(usize::MAX);
        let started = Instant::now();
        let answer = async {
            let mut answer = backend.transport.stream(ask).await?;
            backend.counts.answered(counts::Path::Series, started.elapsed());
            series::read(&mut answer, backend.manner.most_series).await
        }
        .await;
        backend.counts.judged(answer.as_ref().err(), &backend.base, now);
        answer
    }

    /// How often it was asked, and how that went.
    pub fn report(&self) -> BackendReport {
        self.0.counts.report(self.0.base.clone(), self.0.queries.len())
    }
}

impl Backend {
    /// Sends a query.
    async fn fetch(&self, query: &str, now: Timestamp, within: Duration) -> Result<Reply, Error> {
        let timeout = format!("{}ms", within.as_millis().max(1));
        let fields = [("query", query), ("time", &seconds(now)), ("timeout", &timeout)];
        // Whoever is asked gives up first, and says so in its own words.
        let patience = within + Duration::from_millis(500);
        let ask = self.ask("/api/v1/query", &fields).within(patience).at_most(self.manner.largest);
        let started = Instant::now();
        let answer = self.transport.send(ask).await?;
        self.counts.answered(counts::Path::Query, started.elapsed());
        reply::decode(answer.status, &answer.body)
    }

    fn ask(&self, path: &str, fields: &[(&str, &str)]) -> Ask {
        let mut form = String::new();
        for (name, value) in fields {
            if !form.is_empty() {
                form.push('&');
            }
            encode(&mut form, name);
            form.push('=');
            encode(&mut form, value);
        }
        let post = match self.manner.verb {
            Verb::Get => false,
            Verb::Post => true,
            Verb::Short => form.len() > LONG_QUERY,
        };
        if post {
            let kind = HeaderValue::from_static("application/x-www-form-urlencoded");
            Ask::new(Method::POST, path).header(CONTENT_TYPE, kind).body(form)
        } else {
            Ask::get(format!("{path}?{form}"))
        }
    }
}

/// Seconds since the epoch, with milliseconds.
fn seconds(time: Timestamp) -> String {
    let milliseconds = time.as_millisecond();
    let sign = if milliseconds < 0 { "-" } else { "" };
    let milliseconds = milliseconds.unsigned_abs();
    match milliseconds % 1000 {
        0 => format!("{sign}{}", milliseconds / 1000),
        part => format!("{sign}{}.{part:03}", milliseconds / 1000),
    }
}

/// Adds a text as a part of a form or of a URL's query.
fn encode(out: &mut String, text: &str) {
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~') {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
}
