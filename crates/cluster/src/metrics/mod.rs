//! The three metrics APIs.
//!
//! ```text
//! resource   metrics.k8s.io: lists of whole namespaces shared by all who need them, or of selected pods
//! custom     custom.metrics.k8s.io: its version, and the values of pods and objects
//! external   external.metrics.k8s.io
//! usage      what pods use, in little space and found by label
//! wire       what the APIs answer
//! ```
//!
//! An answer that cannot be had or read is an error in the words of Kubernetes, and never a zero.

mod custom;
mod external;
mod resource;
#[cfg(test)]
mod tests;
mod usage;
mod wire;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use api::metrics::{PodMetricsList, Query};
use engine::MetricSamples;
use engine::spec::{Metric, MetricSource};
use kube::Client;
use runtime::single_flight::FlightRole;

use crate::discovery::Discovery;
use crate::request::{path, with_query};

/// How long one request may take.
const DEADLINE: Duration = Duration::from_secs(10);

/// Requests that begin within this time while the same one is under way are the same request.
const TOGETHER: Duration = Duration::from_secs(1);

/// Resource metrics of pods from the same process, instead of over the API.
pub trait LocalPodMetrics: Send + Sync {
    /// All pods of a namespace.
    fn pods(&self, namespace: &str) -> Arc<PodMetricsList>;
}

/// Asks for samples; lists are shared by all who need them at about the same time. Cheap to clone.
#[derive(Clone)]
pub struct MetricsClient(Arc<Inner>);

/// For whom a metric is asked.
#[derive(Clone, Copy, Debug)]
pub struct MetricScope<'a> {
    /// Namespace of the autoscaler.
    pub namespace: &'a str,
    /// The target's pod selector as text.
    pub selector: &'a str,
    /// The pods it selects.
    pub pods: &'a [engine::Pod],
    /// Whether others in the namespace need resource metrics too, so that one list for all is cheaper.
    pub shared: bool,
}

/// How often the APIs were asked, and how often that could be saved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MetricsApiCounts {
    /// `metrics.k8s.io`.
    pub resource: MetricsApiCount,
    /// `custom.metrics.k8s.io`.
    pub custom: MetricsApiCount,
    /// `external.metrics.k8s.io`.
    pub external: MetricsApiCount,
}

/// Questions to one API.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MetricsApiCount {
    /// Requests sent.
    pub sent: u64,
    /// Those of them that failed.
    pub failed: u64,
    /// Questions answered by a request of somebody else, or without one.
    pub saved: u64,
}

#[derive(Default)]
struct Meter {
    sent: AtomicU64,
    failed: AtomicU64,
    saved: AtomicU64,
}

struct Inner {
    resource: resource::Lists,
    custom: custom::Values,
    external: external::Series,
}

impl MetricsClient {
    /// `freshness` is how long a shared list may be used: less than the shortest period.
    pub fn new(client: Client, discovery: Discovery, freshness: Duration) -> Self {
        Self(Arc::new(Inner {
            resource: resource::Lists::new(client.clone(), discovery.clone(), freshness),
            custom: custom::Values::new(client.clone(), discovery, freshness),
            external: external::Series::new(client),
        }))
    }

    /// Takes resource metrics from `store` instead of the API.
    pub fn with_store(self, store: Arc<dyn LocalPodMetrics>) -> Self {
        let Inner { resource, custom, external } = &*self.0;
        Self(Arc::new(Inner {
            resource: resource.with_store(store),
            custom: custom.clone(),
            external: external.clone(),
        }))
    }

    /// What `metric` is for these pods, or why nobody knows, in the words of Kubernetes (docs/spec/hpa.md 4.7 `fetchErr`).
    pub async fn samples(&self, asker: MetricScope<'_>, metric: &Metric) -> Result<MetricSamples, String> {
        if !metric.can_be_asked() {
            return Ok(MetricSamples::NotAsked);
        }
        match &metric.source {
            MetricSource::Resource { name, .. } => self.0.resource.samples(asker, metric, name, None).await,
            MetricSource::ContainerResource { name, container, .. } => {
                self.0.resource.samples(asker, metric, name, Some(container)).await
            }
            MetricSource::Pods(_) | MetricSource::Object { .. } => self.0.custom.samples(asker, metric).await,
            MetricSource::External(id) => self.0.external.samples(asker, metric, id).await,
            MetricSource::Unknown(_) => Ok(MetricSamples::NotAsked),
        }
    }

    /// How often the APIs were asked.
    pub fn traffic(&self) -> MetricsApiCounts {
        MetricsApiCounts {
            resource: self.0.resource.meter.read(),
            custom: self.0.custom.meter.read(),
            external: self.0.external.meter.read(),
        }
    }
}

impl Meter {
    fn note<T, E>(&self, role: FlightRole, result: &Result<T, E>) {
        let count = if role == FlightRole::Started { &self.sent } else { &self.saved };
        count.fetch_add(1, Ordering::Relaxed);
        if role == FlightRole::Started && result.is_err() {
            self.failed.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn read(&self) -> MetricsApiCount {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        MetricsApiCount { sent: read(&self.sent), failed: read(&self.failed), saved: read(&self.saved) }
    }
}

/// A query with everything encoded.
fn uri(query: &Query) -> String {
    let segments = query.path.split('/').skip(1);
    with_query(&path(segments), query.parameters.iter().map(|(name, value)| (*name, value.as_str())))
}
