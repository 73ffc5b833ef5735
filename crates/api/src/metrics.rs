//! Client side of the three metrics APIs: queries, responses, and their conversion to engine types.

use std::collections::BTreeMap;
use std::sync::Arc;

use engine::observe::NamedSample;
use engine::provenance::SeriesSample;
use engine::spec::{Metric, MetricSource};
use engine::{MetricSamples, PodSamples, Provenance, RecordedError, RequestFailure, Sample};
use jiff::{SignedDuration, Timestamp};
use quantity::Quantity;
use serde::{Deserialize, Serialize};

use crate::time::{GO_ZERO, parse_go_duration};
use crate::wire::nullable;

/// The header in which our servers of metrics APIs state what took the samples: `kubelets`, or `Prometheus: QUERY`.
pub const SOURCE_HEADER: &str = "plimsoll-sample-source";

/// `metrics.k8s.io` list of pods.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodMetricsList {
    /// One per pod.
    #[serde(deserialize_with = "nullable")]
    pub items: Vec<PodMetrics>,
}

/// Usage of one pod.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodMetrics {
    /// Which pod.
    #[serde(deserialize_with = "nullable")]
    pub metadata: crate::pod::PodMeta,
    /// End of the measurement.
    pub timestamp: Option<Timestamp>,
    /// Length of the measurement, as a Go duration.
    #[serde(deserialize_with = "nullable")]
    pub window: String,
    /// Usage by container.
    #[serde(deserialize_with = "nullable")]
    pub containers: Vec<ContainerMetrics>,
}

/// Usage of one container.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ContainerMetrics {
    /// Name.
    #[serde(deserialize_with = "nullable")]
    pub name: String,
    /// Usage by resource.
    #[serde(deserialize_with = "nullable")]
    pub usage: BTreeMap<String, Quantity>,
}

/// `custom.metrics.k8s.io` list, v1beta1 or v1beta2.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MetricValueList {
    /// One per object.
    #[serde(deserialize_with = "nullable")]
    pub items: Vec<MetricValue>,
}

/// Value of a custom metric of one object.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MetricValue {
    /// Which object.
    #[serde(deserialize_with = "nullable")]
    pub described_object: DescribedObject,
    /// End of the measurement.
    pub timestamp: Option<Timestamp>,
    /// Length of the measurement (v1beta1 calls it `window`).
    #[serde(alias = "window")]
    pub window_seconds: Option<i64>,
    /// The value.
    #[serde(deserialize_with = "nullable")]
    pub value: Quantity,
}

/// The object a custom metric describes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DescribedObject {
    /// Name.
    #[serde(deserialize_with = "nullable")]
    pub name: String,
}

/// `external.metrics.k8s.io` list.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ExternalMetricValueList {
    /// One per series.
    #[serde(deserialize_with = "nullable")]
    pub items: Vec<ExternalMetricValue>,
}

/// Value of one series.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ExternalMetricValue {
    /// Labels of the series, ascending by name.
    #[serde(deserialize_with = "nullable")]
    pub metric_labels: BTreeMap<String, String>,
    /// End of the measurement.
    pub timestamp: Option<Timestamp>,
    /// Length of the measurement.
    #[serde(rename = "window")]
    pub window_seconds: Option<i64>,
    /// The value.
    #[serde(deserialize_with = "nullable")]
    pub value: Quantity,
}

/// A request to a metrics API: path, and parameters by name, not yet encoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query {
    /// Path.
    pub path: String,
    /// Parameters in the order of their names.
    pub parameters: Vec<(&'static str, String)>,
}

/// Versions of the metrics APIs that are queried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Versions<'a> {
    /// Of `metrics.k8s.io`.
    pub resource: &'a str,
    /// Of `custom.metrics.k8s.io`.
    pub custom: &'a str,
}

impl Default for Versions<'_> {
    fn default() -> Self {
        Self { resource: "v1beta1", custom: "v1beta2" }
    }
}

impl Query {
    /// The query of `metric` for pods selected by `selector`; absent if the metric cannot be queried.
    /// `object_resource` is the plural resource (with group, if any) of an object metric's kind.
    pub fn of(namespace: &str, selector: &str, metric: &Metric, object_resource: &str) -> Option<Self> {
        Self::in_versions(Versions::default(), namespace, selector, metric, object_resource)
    }

    /// As [`Query::of`], for APIs in these versions.
    pub fn in_versions(
        versions: Versions<'_>,
        namespace: &str,
        selector: &str,
        metric: &Metric,
        object_resource: &str,
    ) -> Option<Self> {
        let custom = format!("/apis/custom.metrics.k8s.io/{}/namespaces/{namespace}", versions.custom);
        let query = |path, parameters: Vec<(&'static str, &str)>| {
            let given = parameters.into_iter().filter(|(_, value)| !value.is_empty());
            Self { path, parameters: given.map(|(name, value)| (name, value.to_owned())).collect() }
        };
        if !metric.is_queryable() {
            return None;
        }
        Some(match &metric.source {
            MetricSource::Resource { .. } | MetricSource::ContainerResource { .. } => query(
                format!("/apis/metrics.k8s.io/{}/namespaces/{namespace}/pods", versions.resource),
                vec![("labelSelector", selector)],
            ),
            MetricSource::Pods(id) => query(
                format!("{custom}/pods/*/{}", id.name),
                vec![("labelSelector", selector), ("metricLabelSelector", id.selector.as_deref().ok()?)],
            ),
            MetricSource::Object { kind, name, metric: id, .. } => {
                // Only the exact kind `Namespace` is special; `namespace` is queried like any other kind.
                let path = if object_resource == "namespaces" && kind == "Namespace" {
                    format!("{custom}/metrics/{}", id.name)
                } else {
                    format!("{custom}/{object_resource}/{name}/{}", id.name)
                };
                query(path, vec![("metricLabelSelector", id.selector.as_deref().ok()?)])
            }
            MetricSource::External(id) => query(
                format!(
                    "/apis/external.metrics.k8s.io/v1beta1/namespaces/{namespace}/{}",
                    id.name.to_lowercase()
                ),
                vec![("labelSelector", id.selector.as_deref().ok()?)],
            ),
            MetricSource::Unknown(_) => return None,
        })
    }
}

/// Usage of `resource` by pod (or by `container` in each), or the error text of Kubernetes.
pub fn resource_samples(
    answer: Result<&PodMetricsList, &str>,
    resource: &str,
    container: Option<&str>,
) -> Result<Vec<NamedSample>, RecordedError> {
    let list = answer.map_err(|e| format!("unable to fetch metrics from resource metrics API: {e}"))?;
    if list.items.is_empty() {
        return Err(RecordedError::new(
            "no metrics returned from resource metrics API",
            Some(RequestFailure::NoItems),
        ));
    }
    Ok(list
        .items
        .iter()
        .filter_map(|item| Some((name_of(&item.metadata.name), item.sample(resource, container)?)))
        .collect())
}

/// A custom metric by pod, or the error text of Kubernetes.
pub fn pods_samples(answer: Result<&MetricValueList, &str>) -> Result<Vec<NamedSample>, RecordedError> {
    let list = answer.map_err(custom_failure)?;
    if list.items.is_empty() {
        return Err(RecordedError::new(
            "no metrics returned from custom metrics API",
            Some(RequestFailure::NoItems),
        ));
    }
    let sample = |value: &MetricValue| Sample {
        at: value.timestamp.unwrap_or(GO_ZERO),
        window: SignedDuration::from_secs(value.window_seconds.unwrap_or(60)),
        milli: (&value.value).into(),
    };
    Ok(list.items.iter().map(|item| (name_of(&item.described_object.name), sample(item))).collect())
}

/// The one value of an object, or the error text of Kubernetes.
pub fn object_total(answer: Result<&MetricValueList, &str>) -> Result<MetricSamples, RecordedError> {
    match answer.map_err(custom_failure)?.items.as_slice() {
        [only] => Ok(MetricSamples::Totals(vec![(&only.value).into()])),
        other => {
            let count = other.len();
            let text = format!(
                "the custom metrics API server returned {count} results when we asked for exactly one"
            );
            Err(custom_failure(&text).into())
        }
    }
}

/// The values of an external metric's series, or the error text of Kubernetes.
pub fn external_totals(
    answer: Result<&ExternalMetricValueList, &str>,
) -> Result<MetricSamples, RecordedError> {
    let list = answer.map_err(|e| format!("unable to fetch metrics from external metrics API: {e}"))?;
    if list.items.is_empty() {
        return Err(RecordedError::new(
            "no metrics returned from external metrics API",
            Some(RequestFailure::NoItems),
        ));
    }
    Ok(MetricSamples::Totals(list.items.iter().map(|item| (&item.value).into()).collect()))
}

/// Records where the series of an external metric came from.
pub fn record_series(from: &mut Provenance, list: &ExternalMetricValueList) {
    from.record_series(list.items.iter().map(|item| SeriesSample {
        at: item.timestamp,
        window: item.window_seconds.map(SignedDuration::from_secs),
        milli: (&item.value).into(),
        labels: &item.metric_labels,
    }));
}

/// Records where the value of an object came from.
pub fn record_values(from: &mut Provenance, list: &MetricValueList) {
    let labels = BTreeMap::new();
    from.record_series(list.items.iter().map(|item| SeriesSample {
        at: item.timestamp,
        window: item.window_seconds.map(SignedDuration::from_secs),
        milli: (&item.value).into(),
        labels: &labels,
    }));
}

/// Joins samples with the pods of an observation.
pub fn join_samples(pods: &[engine::Pod], samples: Vec<NamedSample>) -> MetricSamples {
    MetricSamples::PerPod(PodSamples::join(pods, samples))
}

impl PodMetrics {
    /// The sample of a pod; absent if a container lacks the resource (docs/spec/hpa.md 5.1).
    fn sample(&self, resource: &str, container: Option<&str>) -> Option<Sample> {
        let usage = |c: &ContainerMetrics| c.usage.get(resource).map(Quantity::milli_value);
        let milli = match container {
            Some(name) => usage(self.containers.iter().find(|c| c.name == name)?)?,
            None if self.containers.is_empty() => return None,
            None => self.containers.iter().try_fold(0_i64, |sum, c| Some(sum.saturating_add(usage(c)?)))?,
        };
        Some(Sample {
            at: self.timestamp.unwrap_or(GO_ZERO),
            window: parse_go_duration(&self.window).unwrap_or(SignedDuration::ZERO),
            milli: milli.into(),
        })
    }
}

fn custom_failure(error: &str) -> String {
    format!("unable to fetch metrics from custom metrics API: {error}")
}

fn name_of(name: &str) -> Arc<str> {
    name.into()
}
