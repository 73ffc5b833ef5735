//! Providers of the metrics APIs: their queries and responses.
//!
//! The server of the APIs (`serve`) does not know the source of values, and the sources (`sources`) do not know HTTP. These
//! traits connect them.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

use jiff::Timestamp;
use quantity::Quantity;

use crate::selector::{FieldSelector, LabelSelector, Selector};

/// Future of a response.
pub type ProviderFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, MetricsError>> + Send + 'a>>;

/// A function that creates a part of a list. Several threads can create different parts at the same time.
pub type ObjectChunk<T> = Box<dyn FnOnce() -> Vec<T> + Send>;

/// A list in parts.
pub type ObjectChunks<T> = Box<dyn Iterator<Item = ObjectChunk<T>> + Send>;

/// A complete list as one part.
pub fn single_chunk<T: Send + 'static>(all: Vec<T>) -> ObjectChunks<T> {
    let part: ObjectChunk<T> = Box::new(move || all);
    Box::new(std::iter::once(part))
}

/// How exactly the replaced servers are imitated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compat {
    /// With improvements; every difference is listed in `docs/compatibility.md`.
    #[default]
    Better,
    /// Exactly (`--compat=strict`).
    Strict,
}

impl Compat {
    /// Whether their defects are imitated too.
    pub fn is_strict(self) -> bool {
        self == Self::Strict
    }
}

/// Why a query failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MetricsError {
    /// 404 without details: the metric does not exist.
    #[error("{0}")]
    NoMetric(String),
    /// 400: the query is invalid.
    #[error("{0}")]
    BadRequest(String),
    /// 500 `Internal error occurred: …`.
    #[error("{0}")]
    Internal(String),
    /// 500 with this message only, without a reason.
    #[error("{0}")]
    Plain(String),
    /// 503: the backend does not respond.
    #[error("{0}")]
    Unavailable(String),
    /// Any other status, as returned by another server.
    #[error("{message}")]
    Status {
        /// HTTP code.
        code: u16,
        /// Reason in CamelCase; may be empty.
        reason: String,
        /// Message for people.
        message: String,
    },
    /// Any other status with `details`, which can contain `retryAfterSeconds`.
    #[error("{message}")]
    Detailed {
        /// HTTP code.
        code: u16,
        /// Reason in CamelCase; may be empty.
        reason: String,
        /// Message for people.
        message: String,
        /// `details` of the `Status` object.
        details: Box<serde_json::Value>,
    },
}

impl MetricsError {
    /// The metric does not exist for this resource (`resource.group`).
    pub fn no_metric(metric: &str, resource: &str) -> Self {
        Self::NoMetric(format!("the server could not find the metric {metric} for {resource}"))
    }

    /// The metric does not exist for this object.
    pub fn no_value(metric: &str, resource: &str, name: &str) -> Self {
        Self::NoMetric(format!("the server could not find the metric {metric} for {resource} {name}"))
    }
}

/// Labels of an object in ascending order of keys. Equal labels share their texts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Labels(Box<[(Arc<str>, Arc<str>)]>);

impl Labels {
    /// The value of a label.
    pub fn get(&self, key: &str) -> Option<&str> {
        let at = self.0.binary_search_by(|(own, _)| (**own).cmp(key)).ok()?;
        self.0.get(at).map(|(_, value)| &**value)
    }

    /// All labels, ascending by key.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &str)> {
        self.0.iter().map(|(key, value)| (&**key, &**value))
    }

    /// Whether there are no labels.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a selector selects an object with these labels.
    pub fn are_selected(&self, by: &Selector) -> bool {
        by.is_everything() || by.matches(|key| self.get(key))
    }
}

impl<K: Into<Arc<str>>, V: Into<Arc<str>>> FromIterator<(K, V)> for Labels {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(pairs: I) -> Self {
        let mut all: Vec<(Arc<str>, Arc<str>)> =
            pairs.into_iter().map(|(key, value)| (key.into(), value.into())).collect();
        all.sort_by(|a, b| a.0.cmp(&b.0));
        all.dedup_by(|later, first| later.0 == first.0);
        Self(all.into_boxed_slice())
    }
}

/// Usage by resource name in ascending order: `cpu`, `memory`.
pub type ResourceUsage = Vec<(Arc<str>, Quantity)>;

/// Usage of a node.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeUsage {
    /// Name.
    pub name: Arc<str>,
    /// Current labels.
    pub labels: Arc<Labels>,
    /// End of the measurement.
    pub timestamp: Option<Timestamp>,
    /// Length of the measurement in nanoseconds.
    pub window: i64,
    /// Usage.
    pub usage: ResourceUsage,
}

/// Usage of a pod.
#[derive(Clone, Debug, PartialEq)]
pub struct PodUsage {
    /// Namespace.
    pub namespace: Arc<str>,
    /// Name.
    pub name: Arc<str>,
    /// Current labels.
    pub labels: Arc<Labels>,
    /// End of the measurement: the earliest of its containers.
    pub timestamp: Option<Timestamp>,
    /// Length of the measurement in nanoseconds.
    pub window: i64,
    /// Usage of its containers.
    pub containers: Vec<ContainerUsage>,
}

/// Usage of a container.
#[derive(Clone, Debug, PartialEq)]
pub struct ContainerUsage {
    /// Name.
    pub name: Arc<str>,
    /// Usage.
    pub usage: ResourceUsage,
}

/// Result of a lookup of one object.
#[derive(Clone, Debug, PartialEq)]
pub enum Lookup<T> {
    /// Usage.
    Found(T),
    /// The object exists, but has no samples.
    NoSamples,
    /// The object does not exist.
    NotFound,
}

/// Filter of a list.
#[derive(Clone, Debug)]
pub struct ListFilter {
    /// Only this namespace.
    pub namespace: Option<String>,
    /// Only objects with such labels.
    pub labels: Selector,
    /// Only objects with such a `metadata.name` and `metadata.namespace`; other fields were rejected before.
    pub fields: FieldSelector,
}

/// What took the samples of a response: the provider that answers a query states it. Clones share the statement.
#[derive(Clone, Debug, Default)]
pub struct SampleSource(Arc<Mutex<Option<String>>>);

impl SampleSource {
    /// States the source: `Prometheus: QUERY`, `upstream NAME`. The last statement counts.
    pub fn state(&self, source: impl Into<String>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(source.into());
    }

    /// The statement, if there is one.
    pub fn stated(&self) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Provider of `metrics.k8s.io`.
pub trait ResourceMetricsProvider: Send + Sync {
    /// What takes the samples of pods: `kubelets`, `Prometheus`.
    fn source(&self) -> Option<&'static str> {
        None
    }
    /// Pods in ascending order of namespace and name.
    fn pods<'a>(&'a self, which: &'a ListFilter) -> ProviderFuture<'a, Vec<PodUsage>>;
    /// The same pods in parts. A provider that creates parts while they are sent does not hold all pods in memory.
    fn pods_in_parts<'a>(&'a self, which: &'a ListFilter) -> ProviderFuture<'a, ObjectChunks<PodUsage>> {
        Box::pin(async move {
            let all = single_chunk(self.pods(which).await?);
            Ok(all)
        })
    }
    /// One pod.
    fn pod<'a>(&'a self, namespace: &'a str, name: &'a str) -> ProviderFuture<'a, Lookup<PodUsage>>;
    /// Nodes in ascending order of name.
    fn nodes<'a>(&'a self, which: &'a ListFilter) -> ProviderFuture<'a, Vec<NodeUsage>>;
    /// One node.
    fn node<'a>(&'a self, name: &'a str) -> ProviderFuture<'a, Lookup<NodeUsage>>;
}

/// A query of `custom.metrics.k8s.io`.
#[derive(Clone, Debug)]
pub struct CustomMetricQuery {
    /// `resource.group` as the client wrote it: singular or plural, with or without group.
    pub resource: String,
    /// Namespace; none for a metric of an object without one.
    pub namespace: Option<String>,
    /// The objects. A metric of a namespace itself is a query for one object of the resource `namespaces`.
    pub objects: ObjectSelection,
    /// Name of the metric.
    pub metric: String,
    /// Selector of series.
    pub series: Selector,
    /// Where the provider that answers states what took the samples.
    pub source: SampleSource,
}

/// The objects of a query.
#[derive(Clone, Debug)]
pub enum ObjectSelection {
    /// One, by name.
    One(String),
    /// All with such labels.
    All(Selector),
}

/// An object, as values refer to it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ObjectReference {
    /// Kind.
    pub kind: String,
    /// Namespace; empty for objects without one.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// `group/version`, with the slash even for the core group.
    pub api_version: String,
}

/// Value of a custom metric.
#[derive(Clone, Debug, PartialEq)]
pub struct CustomMetricSample {
    /// The object.
    pub object: ObjectReference,
    /// Name of the metric.
    pub metric: String,
    /// Selector of series of the query, if it had one.
    pub series: Option<LabelSelector>,
    /// Time of the sample.
    pub timestamp: Option<Timestamp>,
    /// Window in seconds, if it is known.
    pub window: Option<i64>,
    /// The value.
    pub value: Quantity,
}

/// A custom metric that can be queried.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CustomMetric {
    /// `resource.group`.
    pub resource: String,
    /// Whether its resource is namespaced.
    pub namespaced: bool,
    /// Name of the metric.
    pub metric: String,
}

/// Provider of `custom.metrics.k8s.io`.
pub trait CustomMetricsProvider: Send + Sync {
    /// Values; exactly one for a query of one object.
    fn values<'a>(&'a self, query: &'a CustomMetricQuery) -> ProviderFuture<'a, Vec<CustomMetricSample>>;
    /// All metrics that are known, in the order of discovery.
    fn known(&self) -> Arc<Vec<CustomMetric>>;
}

/// A query of `external.metrics.k8s.io`.
#[derive(Clone, Debug)]
pub struct ExternalMetricQuery {
    /// Namespace.
    pub namespace: String,
    /// Name of the metric.
    pub metric: String,
    /// Selector of series.
    pub series: Selector,
    /// Where the provider that answers states what took the samples.
    pub source: SampleSource,
}

/// Value of one series of an external metric.
#[derive(Clone, Debug, PartialEq)]
pub struct ExternalMetricSample {
    /// Name of the metric.
    pub metric: String,
    /// Labels of the series; absent means `null`.
    pub labels: Option<Vec<(String, String)>>,
    /// Time of the sample.
    pub timestamp: Option<Timestamp>,
    /// Window in seconds, if it is known.
    pub window: Option<i64>,
    /// The value.
    pub value: Quantity,
}

/// Provider of `external.metrics.k8s.io`.
pub trait ExternalMetricsProvider: Send + Sync {
    /// Values, one per series.
    fn values<'a>(&'a self, query: &'a ExternalMetricQuery) -> ProviderFuture<'a, Vec<ExternalMetricSample>>;
    /// All metrics that are known, in the order of discovery.
    fn known(&self) -> Arc<Vec<String>>;
}

/// The providers of the metrics APIs that a process serves.
#[derive(Clone, Default)]
pub struct Providers {
    /// `metrics.k8s.io`.
    pub resource: Option<Arc<dyn ResourceMetricsProvider>>,
    /// `custom.metrics.k8s.io`.
    pub custom: Option<Arc<dyn CustomMetricsProvider>>,
    /// `external.metrics.k8s.io`.
    pub external: Option<Arc<dyn ExternalMetricsProvider>>,
}
