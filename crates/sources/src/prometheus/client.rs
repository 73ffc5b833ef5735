//! Prometheus HTTP client; identical queries are sent once.
//!
//! ```text
//! json         JSON cursor that borrows from the text
//! number       sample values and times in the syntax of Prometheus
//! reply        decodes query responses
//! series       decodes series responses while they arrive
//! query_cache  single-flight queries and a short-lived cache
//! stats        request counters and latencies
//! ```

pub(crate) mod json;
mod number;
mod query_cache;
mod reply;
mod series;
mod stats;
#[cfg(test)]
pub(crate) mod tests;

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Method};
use jiff::Timestamp;
use tokio::time::Instant;

use crate::http::{self as web, HttpRequest, HttpResponse, StreamedResponse};

pub use reply::{QueryResponse, QueryValue, SampleLabels, VectorSample};
pub use series::{SeriesResult, SeriesShape};
pub use stats::{BackendHealth, LatencyReport, PrometheusReport};

use query_cache::QueryCache;
use stats::RequestStats;

/// HTTP transport to Prometheus.
pub trait Transport: Send + Sync + 'static {
    /// Base URL without secrets, for metrics and errors.
    fn base(&self) -> String;
    /// Sends a request and reads the whole response.
    fn send(&self, request: HttpRequest) -> BoxFuture<'_, Result<HttpResponse, web::HttpError>>;
    /// Sends a request; the body is read in chunks.
    fn stream(&self, request: HttpRequest) -> BoxFuture<'_, Result<StreamedResponse, web::HttpError>>;
}

impl Transport for web::HttpClient {
    fn base(&self) -> String {
        web::HttpClient::base(self)
    }

    fn send(&self, request: HttpRequest) -> BoxFuture<'_, Result<HttpResponse, web::HttpError>> {
        Box::pin(web::HttpClient::send(self, request))
    }

    fn stream(&self, request: HttpRequest) -> BoxFuture<'_, Result<StreamedResponse, web::HttpError>> {
        Box::pin(web::HttpClient::stream(self, request))
    }
}

/// HTTP method of queries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum QueryMethod {
    /// GET, or POST if the query is too long for a URL.
    #[default]
    Auto,
    /// Always GET.
    Get,
    /// Always POST.
    Post,
}

/// Settings of a Prometheus client.
#[derive(Clone, Debug)]
pub struct PrometheusSettings {
    /// HTTP method of queries.
    pub method: QueryMethod,
    /// Timeout of a query.
    pub timeout: Duration,
    /// Timeout of a series request.
    pub series_timeout: Duration,
    /// Cache time of responses; at most 15 seconds.
    pub cache_age: Duration,
    /// Concurrent queries.
    pub max_concurrent_queries: usize,
    /// Size limit of a query response in bytes.
    pub max_response_bytes: usize,
    /// Maximum number of distinct series shapes (metric and label names) per selector.
    pub max_series: usize,
    /// Maximum number of cached responses.
    pub max_cached_responses: usize,
}

impl Default for PrometheusSettings {
    fn default() -> Self {
        Self {
            method: QueryMethod::default(),
            timeout: Duration::from_secs(30),
            series_timeout: Duration::from_mins(2),
            cache_age: Duration::from_secs(10),
            max_concurrent_queries: 32,
            max_response_bytes: 64 << 20,
            max_series: 250_000,
            max_cached_responses: 4096,
        }
    }
}

/// Upper limit of the cache time: the sync period of the HPA.
const MAX_CACHE_AGE: Duration = Duration::from_secs(15);
/// Longer queries are sent as a form.
const MAX_URL_QUERY_BYTES: usize = 1500;

/// Why a request to Prometheus failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PrometheusError {
    /// HTTP error.
    #[error(transparent)]
    Http(#[from] web::HttpError),
    /// The status code is not one of Prometheus, for example from a proxy.
    #[error("bad_response: unknown response code {code}{body}")]
    Code {
        /// Status code.
        code: u16,
        /// Start of the body.
        body: String,
    },
    /// Prometheus returned an error.
    #[error("{kind}: {message}")]
    Prometheus {
        /// Error type: `bad_data`, `timeout`, `execution`.
        kind: String,
        /// Error message.
        message: String,
    },
    /// The response is malformed.
    #[error("bad_response: {reason}{body}")]
    Malformed {
        /// Reason.
        reason: String,
        /// Start of the body.
        body: String,
    },
    /// A limit is exceeded.
    #[error("{0}")]
    TooLarge(String),
    /// No response while the caller waited.
    #[error("no answer within {0:?}")]
    TimedOut(Duration),
}

impl PrometheusError {
    /// What the user can do about it.
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::Http(error) => error.remedy(),
            Self::Code { code: 401 | 403, .. } => "check the token, the user or the client certificate",
            Self::Code { code: 404, .. } => "check the path of the URL: /api/v1/query is added to it",
            Self::Code { .. } | Self::Malformed { .. } => {
                "check that the URL leads to Prometheus and not to a login page or a proxy"
            }
            Self::Prometheus { kind, .. } if kind == "bad_data" => "check the query of the rule",
            Self::Prometheus { .. } => "see the log of Prometheus",
            Self::TooLarge(_) => "make the series query of the rule narrower",
            Self::TimedOut(_) => "check the load of Prometheus, or make the query cheaper",
        }
    }

    /// Whether the error concerns the query, so that other queries may succeed.
    fn concerns_query(&self) -> bool {
        match self {
            Self::Prometheus { kind, .. } => matches!(&**kind, "bad_data" | "execution" | "not_found"),
            Self::TooLarge(_) => true,
            Self::Http(error) => matches!(error.cause, web::HttpErrorCause::TooLarge(_)),
            Self::Code { .. } | Self::Malformed { .. } | Self::TimedOut(_) => false,
        }
    }

    fn malformed(error: &json::JsonError, body: &[u8]) -> Self {
        Self::Malformed { reason: error.to_string(), body: Self::excerpt(body) }
    }

    /// Start of an unexpected body.
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

/// Client of one Prometheus server. Cheap to clone; clones share the cache.
#[derive(Clone)]
pub struct PrometheusClient(Arc<PrometheusInner>);

struct PrometheusInner {
    transport: Arc<dyn Transport>,
    base: String,
    settings: PrometheusSettings,
    stats: RequestStats,
    query_cache: QueryCache,
}

impl std::fmt::Debug for PrometheusClient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PrometheusClient")
            .field("base", &self.0.base)
            .field("settings", &self.0.settings)
            .finish_non_exhaustive()
    }
}

impl PrometheusClient {
    /// Creates a client.
    pub fn new(transport: Arc<dyn Transport>, mut settings: PrometheusSettings) -> Self {
        settings.cache_age = settings.cache_age.min(MAX_CACHE_AGE);
        let query_cache = QueryCache::new(&settings);
        let base = transport.base();
        Self(Arc::new(PrometheusInner {
            stats: RequestStats::default(),
            query_cache,
            base,
            transport,
            settings,
        }))
    }

    /// Base URL.
    pub fn base(&self) -> &str {
        &self.0.base
    }

    /// Runs an instant query, unless the same one is in flight or cached; waits at most `within`. `now` is the
    /// evaluation time of a new query.
    pub async fn query(
        &self,
        query: &str,
        now: Timestamp,
        within: Duration,
    ) -> Result<Arc<QueryResponse>, PrometheusError> {
        query_cache::get(&self.0, query, now, within).await
    }

    /// Lists the series that a selector matched since `start`; only metric and label names are kept.
    pub async fn series(
        &self,
        selector: &str,
        start: Timestamp,
        now: Timestamp,
    ) -> Result<SeriesResult, PrometheusError> {
        let fields = [("match[]", selector), ("start", &seconds(start))];
        let backend = &self.0;
        let request = backend
            .request("/api/v1/series", &fields)
            .timeout(backend.settings.series_timeout)
            .unlimited_stream();
        let started = Instant::now();
        let answer = async {
            let mut answer = backend.transport.stream(request).await?;
            backend.stats.record_latency(stats::ApiPath::Series, started.elapsed());
            series::read(&mut answer, backend.settings.max_series).await
        }
        .await;
        backend.stats.record_outcome(answer.as_ref().err(), &backend.base, now);
        answer
    }

    /// Request counters and health.
    pub fn report(&self) -> PrometheusReport {
        self.0.stats.report(self.0.base.clone(), self.0.query_cache.len())
    }
}

impl PrometheusInner {
    /// Sends an instant query.
    async fn fetch(
        &self,
        query: &str,
        now: Timestamp,
        within: Duration,
    ) -> Result<QueryResponse, PrometheusError> {
        let timeout = format!("{}ms", within.as_millis().max(1));
        let fields = [("query", query), ("time", &seconds(now)), ("timeout", &timeout)];
        // Prometheus times out first, so that its own error message is received.
        let query_timeout = within + Duration::from_millis(500);
        let request = self
            .request("/api/v1/query", &fields)
            .timeout(query_timeout)
            .max_bytes(self.settings.max_response_bytes);
        let started = Instant::now();
        let answer = self.transport.send(request).await?;
        self.stats.record_latency(stats::ApiPath::Query, started.elapsed());
        reply::decode(answer.status, &answer.body)
    }

    fn request(&self, path: &str, fields: &[(&str, &str)]) -> HttpRequest {
        let mut form = String::new();
        for (name, value) in fields {
            if !form.is_empty() {
                form.push('&');
            }
            encode(&mut form, name);
            form.push('=');
            encode(&mut form, value);
        }
        let post = match self.settings.method {
            QueryMethod::Get => false,
            QueryMethod::Post => true,
            QueryMethod::Auto => form.len() > MAX_URL_QUERY_BYTES,
        };
        if post {
            let kind = HeaderValue::from_static("application/x-www-form-urlencoded");
            HttpRequest::new(Method::POST, path).header(CONTENT_TYPE, kind).body(form)
        } else {
            HttpRequest::get(format!("{path}?{form}"))
        }
    }
}

/// Seconds since the epoch with millisecond precision.
fn seconds(time: Timestamp) -> String {
    let milliseconds = time.as_millisecond();
    let sign = if milliseconds < 0 { "-" } else { "" };
    let milliseconds = milliseconds.unsigned_abs();
    match milliseconds % 1000 {
        0 => format!("{sign}{}", milliseconds / 1000),
        part => format!("{sign}{}.{part:03}", milliseconds / 1000),
    }
}

/// Appends a percent-encoded form field.
fn encode(out: &mut String, text: &str) {
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~') {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
}
