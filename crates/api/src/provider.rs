//! Who answers the metrics APIs: what is asked of providers, and what they say.
//!
//! The server of the APIs (`serve`) knows nothing of where numbers come from, and those who have numbers (`sources`) know
//! nothing of HTTP. This is what they agree upon.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use jiff::Timestamp;
use quantity::Quantity;

use crate::selector::{FieldSelector, LabelSelector, Selector};

/// An answer that may take a while.
pub type ProviderFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, MetricsError>> + Send + 'a>>;

/// Some objects, made when they are wanted: several can make different ones at the same time.
pub type ObjectChunk<T> = Box<dyn FnOnce() -> Vec<T> + Send>;

/// Objects, some at a time.
pub type ObjectChunks<T> = Box<dyn Iterator<Item = ObjectChunk<T>> + Send>;

/// Objects that are all there, as one part.
pub fn single_chunk<T: Send + 'static>(all: Vec<T>) -> ObjectChunks<T> {
    let part: ObjectChunk<T> = Box::new(move || all);
    Box::new(std::iter::once(part))
}

/// How exactly the servers that are replaced are imitated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compat {
    /// Better where they are poor; every difference is listed in `docs/compatibility.md`.
    #[default]
    Better,
    /// As they are (`--compat=strict`).
    Strict,
}

impl Compat {
    /// Whether they are imitated in their faults too.
    pub fn is_strict(self) -> bool {
        self == Self::Strict
    }
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MetricsError {
    /// 404 without details: there is no such metric, in these words.
    #[error("{0}")]
    NoMetric(String),
    /// 400: the question makes no sense.
    #[error("{0}")]
    BadRequest(String),
    /// 500 `Internal error occurred: …`.
    #[error("{0}")]
    Internal(String),
    /// 500 in these words alone, without a reason.
    #[error("{0}")]
    Plain(String),
    /// 503: whoever would know does not answer.
    #[error("{0}")]
    Unavailable(String),
    /// Any other status, as somebody else answered it.
    #[error("{message}")]
    Status {
        /// HTTP code.
        code: u16,
        /// One word for programs; may be empty.
        reason: String,
        /// A sentence for people.
        message: String,
    },
    /// The same with its `details`, which may say when to ask again (`retryAfterSeconds`).
    #[error("{message}")]
    Detailed {
        /// HTTP code.
        code: u16,
        /// One word for programs; may be empty.
        reason: String,
        /// A sentence for people.
        message: String,
        /// `details` of the `Status` object.
        details: Box<serde_json::Value>,
    },
}

impl MetricsError {
    /// Nobody knows this metric for this resource (`resource.group`).
    pub fn no_metric(metric: &str, resource: &str) -> Self {
        Self::NoMetric(format!("the server could not find the metric {metric} for {resource}"))
    }

    /// Nobody knows this metric for this object.
    pub fn no_value(metric: &str, resource: &str, name: &str) -> Self {
        Self::NoMetric(format!("the server could not find the metric {metric} for {resource} {name}"))
    }
}

/// Labels of an object, ascending by key and shared by all objects that have the same.
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

    /// Whether there are none.
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

/// What is used, by resource name in ascending order: `cpu`, `memory`.
pub type ResourceUsage = Vec<(Arc<str>, Quantity)>;

/// What a node uses.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeUsage {
    /// Name.
    pub name: Arc<str>,
    /// Labels as they are now.
    pub labels: Arc<Labels>,
    /// End of the measurement.
    pub timestamp: Option<Timestamp>,
    /// Length of the measurement in nanoseconds.
    pub window: i64,
    /// What it uses.
    pub usage: ResourceUsage,
}

/// What a pod uses.
#[derive(Clone, Debug, PartialEq)]
pub struct PodUsage {
    /// Namespace.
    pub namespace: Arc<str>,
    /// Name.
    pub name: Arc<str>,
    /// Labels as they are now.
    pub labels: Arc<Labels>,
    /// End of the measurement: the earliest of its containers.
    pub timestamp: Option<Timestamp>,
    /// Length of the measurement in nanoseconds.
    pub window: i64,
    /// What its containers use.
    pub containers: Vec<ContainerUsage>,
}

/// What a container uses.
#[derive(Clone, Debug, PartialEq)]
pub struct ContainerUsage {
    /// Name.
    pub name: Arc<str>,
    /// What it uses.
    pub usage: ResourceUsage,
}

/// What is known about one object.
#[derive(Clone, Debug, PartialEq)]
pub enum Lookup<T> {
    /// What it uses.
    Found(T),
    /// The object is known, what it uses is not.
    NoSamples,
    /// There is no such object.
    NotFound,
}

/// Which objects are listed.
#[derive(Clone, Debug)]
pub struct ListFilter {
    /// Only this namespace.
    pub namespace: Option<String>,
    /// Only objects with such labels.
    pub labels: Selector,
    /// Only objects with such a `metadata.name` and `metadata.namespace`; other fields were refused before.
    pub fields: FieldSelector,
}

/// Who answers `metrics.k8s.io`.
pub trait ResourceMetricsProvider: Send + Sync {
    /// Pods in ascending order of namespace and name.
    fn pods<'a>(&'a self, which: &'a ListFilter) -> ProviderFuture<'a, Vec<PodUsage>>;
    /// The same pods, some at a time: whoever can find them while they are sent need not keep them all.
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

/// What is asked of `custom.metrics.k8s.io`.
#[derive(Clone, Debug)]
pub struct CustomMetricQuery {
    /// `resource.group` as the client wrote it: singular or plural, with or without group.
    pub resource: String,
    /// Namespace; none for a metric of an object without one.
    pub namespace: Option<String>,
    /// Of which objects. A metric of a namespace itself is a question for one object of the resource `namespaces`.
    pub objects: ObjectSelection,
    /// Name of the metric.
    pub metric: String,
    /// Which series count.
    pub series: Selector,
}

/// Of which objects a metric is asked.
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
    /// Whose.
    pub object: ObjectReference,
    /// Name of the metric.
    pub metric: String,
    /// Which series were asked for, if that was said.
    pub series: Option<LabelSelector>,
    /// When it was measured.
    pub timestamp: Option<Timestamp>,
    /// Over how many seconds, if that is known.
    pub window: Option<i64>,
    /// The value.
    pub value: Quantity,
}

/// A custom metric that can be asked for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CustomMetric {
    /// `resource.group`.
    pub resource: String,
    /// Whether it is asked for in a namespace.
    pub namespaced: bool,
    /// Name of the metric.
    pub metric: String,
}

/// Who answers `custom.metrics.k8s.io`.
pub trait CustomMetricsProvider: Send + Sync {
    /// Values: exactly one for a question about one object.
    fn values<'a>(&'a self, question: &'a CustomMetricQuery) -> ProviderFuture<'a, Vec<CustomMetricSample>>;
    /// All metrics that are known, in the order of discovery.
    fn known(&self) -> Arc<Vec<CustomMetric>>;
}

/// What is asked of `external.metrics.k8s.io`.
#[derive(Clone, Debug)]
pub struct ExternalMetricQuery {
    /// Namespace.
    pub namespace: String,
    /// Name of the metric.
    pub metric: String,
    /// Which series count.
    pub series: Selector,
}

/// Value of one series of an external metric.
#[derive(Clone, Debug, PartialEq)]
pub struct ExternalMetricSample {
    /// Name of the metric.
    pub metric: String,
    /// Labels of the series; none: not said at all (`null`).
    pub labels: Option<Vec<(String, String)>>,
    /// When it was measured.
    pub timestamp: Option<Timestamp>,
    /// Over how many seconds, if that is known.
    pub window: Option<i64>,
    /// The value.
    pub value: Quantity,
}

/// Who answers `external.metrics.k8s.io`.
pub trait ExternalMetricsProvider: Send + Sync {
    /// Values, one per series.
    fn values<'a>(
        &'a self,
        question: &'a ExternalMetricQuery,
    ) -> ProviderFuture<'a, Vec<ExternalMetricSample>>;
    /// All metrics that are known, in the order of discovery.
    fn known(&self) -> Arc<Vec<String>>;
}
