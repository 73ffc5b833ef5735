//! Client of one upstream, with time and size limits, single-flight queries and a circuit breaker.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use api::provider::{
    CustomMetric, CustomMetricQuery, CustomMetricSample, ExternalMetricQuery, ExternalMetricSample,
    MetricsError, ObjectSelection,
};
use bytes::Bytes;
use http::header::ACCEPT;
use http::{HeaderValue, StatusCode};
use locks::MutexExt as _;
use runtime::SingleFlight;
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout_at};

use super::config::UpstreamConfig;
use super::error::{UpstreamError, shortened};
use super::health::UpstreamHealth;
use super::routing::UpstreamScope;
use super::wire::{self, CustomMetricsVersion};
use super::{OwnService, hop};
use crate::http::{Auth, Endpoint, HttpClient, HttpErrorCause, HttpRequest};

/// Concurrent requests to one upstream.
const MAX_CONCURRENT_REQUESTS: usize = 64;
/// Size limits of a response with values, and of a discovery response.
const MAX_VALUES_BYTES: usize = 16 << 20;
const MAX_LIST_BYTES: usize = 8 << 20;
/// Discovery interval while the upstream is healthy, and while discovery fails.
const RELIST_INTERVAL: Duration = Duration::from_secs(30);
const FAILED_RELIST_INTERVAL: Duration = Duration::from_secs(10);

type SharedValues<T> = Result<Arc<Vec<T>>, MetricsError>;

/// An upstream. Cheap to clone; clones share their data.
#[derive(Clone)]
pub(crate) struct Upstream(Arc<UpstreamInner>);

struct UpstreamInner {
    config: UpstreamConfig,
    scope: UpstreamScope,
    endpoint: Endpoint,
    hop: HeaderValue,
    /// Created when the certificate files can be read.
    client: Mutex<Option<HttpClient>>,
    health: Mutex<UpstreamHealth>,
    announced: Mutex<AnnouncedMetrics>,
    version: Mutex<CustomMetricsVersion>,
    permits: Semaphore,
    custom: SingleFlight<String, SharedValues<CustomMetricSample>>,
    external: SingleFlight<String, SharedValues<ExternalMetricSample>>,
}

/// Metrics that the upstream announced.
#[derive(Clone, Default)]
pub(crate) struct AnnouncedMetrics {
    pub(crate) custom: Arc<Vec<CustomMetric>>,
    pub(crate) external: Arc<Vec<String>>,
    custom_names: Arc<HashSet<String>>,
    external_names: Arc<HashSet<String>>,
}

/// The outcome of one discovery of an upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DiscoveryOutcome {
    /// The metrics were listed.
    Listed,
    /// The upstream did not list its metrics.
    Failed,
}

/// Why a fetch returned no body.
enum FetchError {
    /// 404: no such metric, with the message of the server.
    Metric(String),
    /// 404: the API is not served.
    Path,
    /// Another error.
    Failed(UpstreamError),
}

impl From<UpstreamError> for FetchError {
    fn from(cause: UpstreamError) -> Self {
        Self::Failed(cause)
    }
}

impl Upstream {
    pub(crate) fn new(config: UpstreamConfig, own: &OwnService) -> Self {
        let auth = config.auth.token_file.clone().map_or(Auth::None, Auth::TokenFile);
        let endpoint = Endpoint {
            url: config.base_url(),
            ca_file: config.tls.ca_file.clone(),
            ca_bundle: config.tls.ca_bundle.clone(),
            certificate_file: config.auth.client_certificate_file.clone(),
            key_file: config.auth.client_key_file.clone(),
            insecure: config.tls.insecure,
            server_name: config.tls.server_name.clone(),
            auth,
            ..Endpoint::default()
        };
        let scope = UpstreamScope {
            metrics: config.metrics.clone(),
            namespaces: config.namespaces.clone(),
            priority: config.priority,
        };
        Self(Arc::new(UpstreamInner {
            config,
            scope,
            endpoint,
            hop: hop::name(own),
            client: Mutex::default(),
            health: Mutex::new(UpstreamHealth::new()),
            announced: Mutex::default(),
            version: Mutex::new(CustomMetricsVersion::V1Beta2),
            permits: Semaphore::new(MAX_CONCURRENT_REQUESTS),
            custom: SingleFlight::default(),
            external: SingleFlight::default(),
        }))
    }

    pub(crate) fn config(&self) -> &UpstreamConfig {
        &self.0.config
    }

    pub(crate) fn scope(&self) -> &UpstreamScope {
        &self.0.scope
    }

    pub(crate) fn health(&self) -> MutexGuard<'_, UpstreamHealth> {
        self.0.health.locked()
    }

    pub(crate) fn announced(&self) -> AnnouncedMetrics {
        self.0.announced.locked().clone()
    }

    pub(crate) fn announced_custom(&self, metric: &str) -> bool {
        self.0.announced.locked().custom_names.contains(metric)
    }

    pub(crate) fn announced_external(&self, metric: &str) -> bool {
        self.0.announced.locked().external_names.contains(metric)
    }

    /// Queries a custom metric.
    pub(crate) async fn custom(&self, query: &CustomMetricQuery) -> SharedValues<CustomMetricSample> {
        let Some(key) = wire::custom_path(CustomMetricsVersion::V1Beta2, query) else {
            return Err(MetricsError::no_metric(&query.metric, &query.resource));
        };
        let fetch = || {
            let (inner, query) = (Arc::clone(&self.0), query.clone());
            async move { inner.query_custom(&query).await.map(Arc::new).map_err(|w| inner.failure(w)) }
        };
        self.0.custom.run(key, fetch).await
    }

    /// Queries an external metric.
    pub(crate) async fn external(&self, query: &ExternalMetricQuery) -> SharedValues<ExternalMetricSample> {
        let Some(path) = wire::external_path(query) else {
            return Err(MetricsError::no_metric(&query.metric, "namespaces"));
        };
        let fetch = || {
            let (inner, query, path) = (Arc::clone(&self.0), query.clone(), path.clone());
            async move { inner.query_external(&path, &query).await.map(Arc::new).map_err(|w| inner.failure(w)) }
        };
        self.0.external.run(path.clone(), fetch).await
    }

    /// Runs discovery now and periodically; never returns.
    pub(crate) async fn keep_listing(&self) {
        // The interval differs per upstream, so that they are not listed at the same moment.
        let spread = self.0.config.name.bytes().fold(0_u64, |sum, byte| (sum * 31 + u64::from(byte)) % 1000);
        loop {
            let pause = match self.relist().await {
                DiscoveryOutcome::Listed => RELIST_INTERVAL,
                DiscoveryOutcome::Failed => FAILED_RELIST_INTERVAL,
            };
            tokio::time::sleep(pause + Duration::from_millis(spread)).await;
        }
    }

    /// Runs discovery once.
    pub(crate) async fn relist(&self) -> DiscoveryOutcome {
        let result = self.0.list().await;
        let now = Instant::now();
        let mut health = self.health();
        match result {
            Ok(found) => {
                health.listed(now);
                drop(health);
                *self.0.announced.locked() = found;
                DiscoveryOutcome::Listed
            }
            Err(cause) => {
                if !matches!(health.state(), super::health::HealthState::Failing(_, known) if *known == cause)
                {
                    tracing::warn!(upstream = %self.0.config.name, %cause, remedy = cause.remedy(), "discovery of an upstream failed");
                }
                health.not_listed(now, cause);
                DiscoveryOutcome::Failed
            }
        }
    }
}

impl UpstreamInner {
    async fn query_custom(&self, query: &CustomMetricQuery) -> Result<Vec<CustomMetricSample>, FetchError> {
        let first = *self.version.locked();
        let values = match self.query_custom_version(first, query).await {
            Err(FetchError::Path) => {
                let other = match first {
                    CustomMetricsVersion::V1Beta1 => CustomMetricsVersion::V1Beta2,
                    CustomMetricsVersion::V1Beta2 => CustomMetricsVersion::V1Beta1,
                };
                let answer = self.query_custom_version(other, query).await;
                if !matches!(answer, Err(FetchError::Path | FetchError::Failed(_))) {
                    *self.version.locked() = other;
                }
                answer?
            }
            answer => answer?,
        };
        match (&query.objects, values.len()) {
            (ObjectSelection::All(_), _) | (ObjectSelection::One(_), 1) => Ok(values),
            (ObjectSelection::One(name), 0) => {
                let missing = MetricsError::no_value(&query.metric, &query.resource, name);
                Err(FetchError::Metric(missing.to_string()))
            }
            (ObjectSelection::One(_), count) => {
                Err(UpstreamError::InvalidResponse(format!("{count} values for one object")).into())
            }
        }
    }

    async fn query_custom_version(
        &self,
        version: CustomMetricsVersion,
        query: &CustomMetricQuery,
    ) -> Result<Vec<CustomMetricSample>, FetchError> {
        let path =
            wire::custom_path(version, query).ok_or_else(|| FetchError::Metric(query.metric.clone()))?;
        self.fetch(&path, |body| wire::read_custom(body, query)).await
    }

    async fn query_external(
        &self,
        path: &str,
        query: &ExternalMetricQuery,
    ) -> Result<Vec<ExternalMetricSample>, FetchError> {
        self.fetch(path, |body| wire::read_external(body, query)).await
    }

    /// Sends a request if the circuit breaker allows it, and records the outcome.
    async fn fetch<T>(
        &self,
        path: &str,
        read: impl FnOnce(&[u8]) -> Result<T, UpstreamError>,
    ) -> Result<T, FetchError> {
        let start = Instant::now();
        if let Err((wait, cause)) = self.health.locked().admit(start) {
            let wait = wait.as_secs() + 1;
            tracing::debug!(upstream = %self.config.name, %cause, wait, "request skipped: the circuit breaker of the upstream is open");
            return Err(cause.into());
        }
        let answer = self.get(path, MAX_VALUES_BYTES, start).await.and_then(|body| Ok(read(&body)?));
        let (now, took) = (Instant::now(), start.elapsed());
        let mut health = self.health.locked();
        match &answer {
            Ok(_) | Err(FetchError::Metric(_) | FetchError::Path) => health.answered(now, took),
            Err(FetchError::Failed(cause)) => {
                let was_open = health.is_open();
                health.failed(now, took, cause.clone());
                if health.is_open() && !was_open {
                    let remedy = cause.remedy();
                    tracing::warn!(upstream = %self.config.name, %cause, remedy, "circuit breaker of an upstream opened");
                }
            }
        }
        answer
    }

    async fn get(&self, path: &str, limit: usize, start: Instant) -> Result<Bytes, FetchError> {
        let deadline = start + self.config.timeout.0;
        let client = self.client()?;
        let permit = timeout_at(deadline, self.permits.acquire()).await;
        let Ok(Ok(_permit)) = permit else { return Err(UpstreamError::Busy.into()) };
        let request = HttpRequest::get(path)
            .header(ACCEPT, HeaderValue::from_static("application/json"))
            .header(hop::HOP_HEADER, self.hop.clone())
            .timeout(deadline.saturating_duration_since(Instant::now()))
            .max_bytes(limit);
        let answer = client.send(request).await.map_err(|error| match error.cause {
            // Waiting for a permit counts as well.
            HttpErrorCause::TimedOut(_) => {
                UpstreamError::NoAnswer(HttpErrorCause::TimedOut(self.config.timeout.0))
            }
            cause => UpstreamError::NoAnswer(cause),
        })?;
        match answer.status {
            StatusCode::OK => Ok(answer.body),
            StatusCode::LOOP_DETECTED if answer.headers.get(hop::HOP_HEADER) == Some(&self.hop) => {
                Err(UpstreamError::Ourselves.into())
            }
            status => Err(Self::refused(status.as_u16(), &answer.body)),
        }
    }

    /// Interprets an error response.
    fn refused(code: u16, body: &[u8]) -> FetchError {
        const NO_PATH: &str = "the server could not find the requested resource";
        let status_message = wire::read_status(body);
        let message = || match &status_message {
            Some(message) => shortened(message),
            None => shortened(&String::from_utf8_lossy(body.get(..body.len().min(2048)).unwrap_or_default())),
        };
        match (code, &status_message) {
            (404, Some(message)) if message != NO_PATH => FetchError::Metric(shortened(message)),
            (404, _) => FetchError::Path,
            (401 | 403, _) => FetchError::Failed(UpstreamError::Denied { code, message: message() }),
            (400..=599, _) => FetchError::Failed(UpstreamError::Status { code, message: message() }),
            _ => FetchError::Failed(UpstreamError::InvalidResponse(format!("unexpected status {code}"))),
        }
    }

    /// Discovery: announced metrics within the scope.
    async fn list(&self) -> Result<AnnouncedMetrics, UpstreamError> {
        let mut found = AnnouncedMetrics::default();
        if self.config.group.custom() {
            let mut body =
                self.get(CustomMetricsVersion::V1Beta2.path(), MAX_LIST_BYTES, Instant::now()).await;
            let mut version = CustomMetricsVersion::V1Beta2;
            if matches!(body, Err(FetchError::Path | FetchError::Metric(_))) {
                version = CustomMetricsVersion::V1Beta1;
                body = self.get(version.path(), MAX_LIST_BYTES, Instant::now()).await;
            }
            let all = wire::read_announced(&body.map_err(|w| no_list(w, "custom.metrics.k8s.io"))?)?;
            *self.version.locked() = version;
            let mut all: Vec<CustomMetric> = all.iter().filter_map(wire::AnnouncedResource::custom).collect();
            all.retain(|one| self.scope.admits(&one.metric));
            found.custom_names = Arc::new(wire::metric_names(&all));
            found.custom = Arc::new(all);
        }
        if self.config.group.external() {
            let body = self.get(wire::EXTERNAL_METRICS_PATH, MAX_LIST_BYTES, Instant::now()).await;
            let all = wire::read_announced(&body.map_err(|w| no_list(w, "external.metrics.k8s.io"))?)?;
            let names = all.into_iter().map(|one| one.name);
            let names: Vec<String> =
                names.filter(|name| !name.contains('/') && self.scope.admits(name)).collect();
            found.external_names = Arc::new(names.iter().cloned().collect());
            found.external = Arc::new(names);
        }
        Ok(found)
    }

    fn client(&self) -> Result<HttpClient, UpstreamError> {
        let mut client = self.client.locked();
        if let Some(client) = &*client {
            return Ok(client.clone());
        }
        let made =
            HttpClient::new(self.endpoint.clone()).map_err(|error| UpstreamError::NoAnswer(error.cause))?;
        Ok(client.insert(made).clone())
    }

    fn failure(&self, error: FetchError) -> MetricsError {
        match error {
            FetchError::Metric(message) => MetricsError::NoMetric(message),
            FetchError::Path => {
                let cause = not_served("this API");
                // The server answered, but does not serve this API.
                self.health.locked().not_listed(Instant::now(), cause.clone());
                cause.failure(&self.config.name)
            }
            FetchError::Failed(cause) => cause.failure(&self.config.name),
        }
    }
}

fn no_list(error: FetchError, api: &str) -> UpstreamError {
    match error {
        FetchError::Path | FetchError::Metric(_) => not_served(api),
        FetchError::Failed(cause) => cause,
    }
}

fn not_served(api: &str) -> UpstreamError {
    UpstreamError::InvalidResponse(format!("it does not serve {api}"))
}
