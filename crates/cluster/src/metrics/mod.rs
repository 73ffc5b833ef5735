//! The client of the three metrics APIs.
//!
//! ```text
//! resource   metrics.k8s.io: lists of whole namespaces, shared by autoscalers, or of selected pods
//! custom     custom.metrics.k8s.io: its version, and the values of pods and objects
//! external   external.metrics.k8s.io
//! local      providers in the same process, asked first
//! usage      the usage of pods, compact and indexed by label
//! wire       decoding of responses
//! ```
//!
//! A request that fails or cannot be decoded is an error in the words of Kubernetes, never a zero.

mod custom;
mod external;
mod local;
mod resource;
#[cfg(test)]
mod tests;
mod usage;
mod wire;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use api::metrics::Query;
use engine::provenance::ResponseSharing;
use engine::spec::{Metric, MetricSource};
use engine::{MetricSamples, Provenance, RecordedError, RequestFailure};
use kube::Client;
use runtime::single_flight::FlightRole;

use crate::discovery::Discovery;
use crate::request::{ApiError, path, with_query};
pub use local::LocalMetrics;

/// The deadline of one request.
const REQUEST_DEADLINE: Duration = Duration::from_secs(10);

/// A request joins an identical one under way that started no longer ago than this.
const MAX_JOIN_AGE: Duration = Duration::from_secs(1);

/// Fetches samples; concurrent callers share lists. Cheap to clone.
#[derive(Clone)]
pub struct MetricsClient(Arc<MetricsClientState>);

/// Why a metric has no samples, in the words of Kubernetes (docs/spec/hpa.md 4.7 `fetchErr`).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct SampleError {
    text: String,
    /// The request that failed; none if the response has no samples.
    source: Option<ApiError>,
    /// What failed, if it was no request.
    failure: Option<Box<RequestFailure>>,
}

impl SampleError {
    fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), source: None, failure: None }
    }

    /// An error that is not that of a request.
    fn with(text: impl Into<String>, failure: RequestFailure) -> Self {
        Self { failure: Some(Box::new(failure)), ..Self::new(text) }
    }

    /// The error of a response, with the request if that failed.
    fn of_response(error: &RecordedError, source: Option<ApiError>) -> Self {
        Self { text: error.text().to_owned(), source, failure: error.failure().cloned().map(Box::new) }
    }

    /// An error whose text is that of the request.
    fn request(error: ApiError) -> Self {
        Self { text: error.message.clone(), source: Some(error), failure: None }
    }
}

impl From<SampleError> for RecordedError {
    fn from(error: SampleError) -> Self {
        let own = error.failure.map(|failure| *failure);
        let failure = own.or_else(|| error.source.as_ref().map(ApiError::failure));
        Self::new(error.text, failure)
    }
}

/// The target of a metric query.
#[derive(Clone, Copy, Debug)]
pub struct MetricScope<'a> {
    /// Namespace of the autoscaler.
    pub namespace: &'a str,
    /// The target's pod selector as text.
    pub selector: &'a str,
    /// The pods it selects.
    pub pods: &'a [engine::Pod],
    /// Whether other autoscalers of the namespace need resource metrics too, so that one list for all is cheaper.
    pub shared: bool,
}

/// Counts of queries by API.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MetricsApiCounts {
    /// `metrics.k8s.io`.
    pub resource: MetricsApiCount,
    /// `custom.metrics.k8s.io`.
    pub custom: MetricsApiCount,
    /// `external.metrics.k8s.io`.
    pub external: MetricsApiCount,
}

/// Counts of queries to one API.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MetricsApiCount {
    /// Requests sent.
    pub sent: u64,
    /// Requests that failed, and queries that failed in this process.
    pub failed: u64,
    /// Queries answered by a shared request, or without one.
    pub saved: u64,
}

#[derive(Default)]
struct QueryMeter {
    sent: AtomicU64,
    failed: AtomicU64,
    saved: AtomicU64,
}

struct MetricsClientState {
    resource: resource::ResourceMetricsClient,
    custom: custom::CustomMetricsClient,
    external: external::ExternalMetricsClient,
}

impl MetricsClient {
    /// `freshness` is how long a shared list is used: less than the shortest period.
    pub fn new(client: Client, discovery: Discovery, freshness: Duration) -> Self {
        Self::local_first(client, discovery, freshness, &LocalMetrics::default())
    }

    /// As [`MetricsClient::new`]; asks the providers of this process first.
    pub fn local_first(
        client: Client,
        discovery: Discovery,
        freshness: Duration,
        local: &LocalMetrics,
    ) -> Self {
        let (one, other) = (client.clone(), discovery.clone());
        Self(Arc::new(MetricsClientState {
            resource: resource::ResourceMetricsClient::new(one, other, freshness, local.clone()),
            custom: custom::CustomMetricsClient::new(client.clone(), discovery, freshness, local.clone()),
            external: external::ExternalMetricsClient::new(client, local.clone()),
        }))
    }

    /// The samples of `metric`, or an error in the words of Kubernetes (docs/spec/hpa.md 4.7 `fetchErr`).
    pub async fn samples(
        &self,
        scope: MetricScope<'_>,
        metric: &Metric,
    ) -> Result<MetricSamples, SampleError> {
        self.samples_from(scope, metric, &mut Provenance::default()).await
    }

    /// As [`MetricsClient::samples`]; records in `from` where they came from, as far as it is known if they cannot be read.
    pub async fn samples_from(
        &self,
        scope: MetricScope<'_>,
        metric: &Metric,
        from: &mut Provenance,
    ) -> Result<MetricSamples, SampleError> {
        if !metric.is_queryable() {
            return Ok(MetricSamples::NotQueried);
        }
        let samples = match &metric.source {
            MetricSource::Resource { name, .. } => {
                self.0.resource.samples(scope, metric, name, None, from).await
            }
            MetricSource::ContainerResource { name, container, .. } => {
                self.0.resource.samples(scope, metric, name, Some(container), from).await
            }
            MetricSource::Pods(_) | MetricSource::Object { .. } => {
                self.0.custom.samples(scope, metric, from).await
            }
            MetricSource::External(id) => self.0.external.samples(scope, metric, id, from).await,
            MetricSource::Unknown(_) => Ok(MetricSamples::NotQueried),
        };
        if let Ok(MetricSamples::PerPod(samples)) = &samples {
            from.record_pods(scope.pods, samples);
        }
        samples
    }

    /// The counts so far.
    pub fn traffic(&self) -> MetricsApiCounts {
        MetricsApiCounts {
            resource: self.0.resource.meter.read(),
            custom: self.0.custom.meter.read(),
            external: self.0.external.meter.read(),
        }
    }
}

impl QueryMeter {
    fn note<T, E>(&self, role: FlightRole, result: &Result<T, E>) {
        let count = if role == FlightRole::Started { &self.sent } else { &self.saved };
        count.fetch_add(1, Ordering::Relaxed);
        if role == FlightRole::Started && result.is_err() {
            self.failed.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Counts a query that a provider of this process answered: it saves a request, and fails like one.
    fn note_local<T, E>(&self, role: FlightRole, result: &Result<T, E>) {
        self.saved.fetch_add(1, Ordering::Relaxed);
        if role == FlightRole::Started && result.is_err() {
            self.failed.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn read(&self) -> MetricsApiCount {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        MetricsApiCount { sent: read(&self.sent), failed: read(&self.failed), saved: read(&self.saved) }
    }
}

/// A decoded response and what its server states about its source.
#[derive(Clone, Debug)]
struct ResponseWithSource<T> {
    values: Arc<T>,
    source: Option<Arc<str>>,
}

/// How a response came about, for the record.
fn sharing(role: FlightRole) -> ResponseSharing {
    match role {
        FlightRole::Started => ResponseSharing::Own,
        FlightRole::Joined => ResponseSharing::Joined,
    }
}

/// The encoded URI of a query.
fn uri(query: &Query) -> String {
    let segments = query.path.split('/').skip(1);
    with_query(&path(segments), query.parameters.iter().map(|(name, value)| (*name, value.as_str())))
}
