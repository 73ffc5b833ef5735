//! Request paths and response decoding of the metrics APIs. No IO.

use std::collections::HashSet;

use api::provider::{
    CustomMetric, CustomMetricQuery, CustomMetricSample, ExternalMetricQuery, ExternalMetricSample,
    ObjectReference, ObjectSelection,
};
use api::selector::LabelSelector;
use jiff::Timestamp;
use quantity::Quantity;
use serde::Deserialize;
use serde_json::Value;

use super::error::{UpstreamError, shortened};

/// Limits of announced metrics per upstream and of characters per name; further metrics can still be queried.
const MAX_ANNOUNCED_METRICS: usize = 20_000;
const MAX_METRIC_NAME_CHARS: usize = 512;

/// A version of `custom.metrics.k8s.io`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CustomMetricsVersion {
    V1Beta1,
    V1Beta2,
}

impl CustomMetricsVersion {
    /// Discovery path.
    pub(crate) fn path(self) -> &'static str {
        match self {
            Self::V1Beta1 => "/apis/custom.metrics.k8s.io/v1beta1",
            Self::V1Beta2 => "/apis/custom.metrics.k8s.io/v1beta2",
        }
    }
}

/// Discovery path of external metrics.
pub(crate) const EXTERNAL_METRICS_PATH: &str = "/apis/external.metrics.k8s.io/v1beta1";

/// Path and query of a custom metric query; `None` if it cannot be expressed as a path.
pub(crate) fn custom_path(version: CustomMetricsVersion, query: &CustomMetricQuery) -> Option<String> {
    let (object, labels) = match &query.objects {
        ObjectSelection::One(name) => (segment(name)?, String::new()),
        ObjectSelection::All(selector) => ("*".to_owned(), selector.to_string()),
    };
    let (resource, metric) = (segment(&query.resource)?, segment(&query.metric)?);
    let path = match &query.namespace {
        None if is_namespaces(&query.resource) => format!("/namespaces/{object}/metrics/{metric}"),
        None => format!("/{resource}/{object}/{metric}"),
        Some(namespace) => format!("/namespaces/{}/{resource}/{object}/{metric}", segment(namespace)?),
    };
    let query = [("labelSelector", labels), ("metricLabelSelector", query.series.to_string())];
    Some(format!("{}{path}{}", version.path(), parameters(&query)))
}

/// Path and query of an external metric query; `None` if it cannot be expressed as a path.
pub(crate) fn external_path(query: &ExternalMetricQuery) -> Option<String> {
    let (namespace, metric) = (segment(&query.namespace)?, segment(&query.metric)?);
    let query = [("labelSelector", query.series.to_string())];
    Some(format!("{EXTERNAL_METRICS_PATH}/namespaces/{namespace}/{metric}{}", parameters(&query)))
}

/// Namespace that a query belongs to; for a metric of a namespace object, that namespace.
pub(crate) fn query_namespace(query: &CustomMetricQuery) -> Option<&str> {
    match (&query.namespace, &query.objects) {
        (Some(namespace), _) => Some(namespace),
        (None, ObjectSelection::One(name)) if is_namespaces(&query.resource) => Some(name),
        _ => None,
    }
}

fn is_namespaces(resource: &str) -> bool {
    resource == "namespaces" || resource == "namespace"
}

/// Encodes a path segment; `None` if servers could interpret it as several segments.
fn segment(text: &str) -> Option<String> {
    let possible = !text.is_empty() && text != "." && text != ".." && !text.contains(['/', '\\', '%']);
    possible.then(|| encoded(text))
}

fn parameters(pairs: &[(&str, String)]) -> String {
    let given = pairs.iter().filter(|(_, value)| !value.is_empty());
    let texts: Vec<String> = given.map(|(name, value)| format!("{name}={}", encoded(value))).collect();
    if texts.is_empty() { String::new() } else { format!("?{}", texts.join("&")) }
}

/// Percent-encodes characters with a meaning in URLs.
fn encoded(text: &str) -> String {
    text.bytes().fold(String::with_capacity(text.len()), |mut out, byte| {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' | b':' | b'*' => {
                out.push(byte.into());
            }
            other => out.push_str(&format!("%{other:02X}")),
        }
        out
    })
}

#[derive(Deserialize)]
struct ItemList<T> {
    items: Option<Vec<T>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CustomItem {
    described_object: DescribedObject,
    /// v1beta2.
    metric: Option<MetricIdentifier>,
    /// v1beta1.
    metric_name: Option<String>,
    selector: Option<LabelSelector>,
    timestamp: Option<Timestamp>,
    #[serde(alias = "window")]
    window_seconds: Option<i64>,
    value: NonNullQuantity,
}

#[derive(Deserialize)]
struct MetricIdentifier {
    name: Option<String>,
    selector: Option<LabelSelector>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct DescribedObject {
    kind: Option<String>,
    namespace: Option<String>,
    name: Option<String>,
    api_version: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ExternalItem {
    metric_name: Option<String>,
    metric_labels: Option<serde_json::Map<String, Value>>,
    timestamp: Option<Timestamp>,
    window: Option<i64>,
    value: NonNullQuantity,
}

/// A quantity that rejects `null`, which would otherwise become zero; unknown is not zero.
struct NonNullQuantity(Quantity);

impl<'de> Deserialize<'de> for NonNullQuantity {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let given = Option::<Quantity>::deserialize(deserializer)?;
        given.map(Self).ok_or_else(|| serde::de::Error::custom("a value is null"))
    }
}

/// Decodes values of a custom metric, in either version.
pub(crate) fn read_custom(
    body: &[u8],
    query: &CustomMetricQuery,
) -> Result<Vec<CustomMetricSample>, UpstreamError> {
    let list: ItemList<CustomItem> = read(body, "MetricValueList")?;
    let items = list.items.unwrap_or_default().into_iter().map(|item| {
        let (name, selector) = match item.metric {
            Some(metric) => (metric.name, metric.selector),
            None => (item.metric_name, item.selector),
        };
        let object = item.described_object;
        CustomMetricSample {
            object: ObjectReference {
                kind: object.kind.unwrap_or_default(),
                namespace: object.namespace.unwrap_or_default(),
                name: object.name.unwrap_or_default(),
                api_version: object.api_version.unwrap_or_default(),
            },
            metric: name.unwrap_or_else(|| query.metric.clone()),
            series: selector,
            timestamp: item.timestamp,
            window: item.window_seconds,
            value: item.value.0,
        }
    });
    Ok(items.collect())
}

/// Decodes values of an external metric.
pub(crate) fn read_external(
    body: &[u8],
    query: &ExternalMetricQuery,
) -> Result<Vec<ExternalMetricSample>, UpstreamError> {
    let list: ItemList<ExternalItem> = read(body, "ExternalMetricValueList")?;
    list.items
        .unwrap_or_default()
        .into_iter()
        .map(|item| {
            let labels = item.metric_labels.map(|labels| {
                let text = |(key, value)| match value {
                    Value::String(value) => Ok((key, value)),
                    _ => Err(UpstreamError::InvalidResponse(format!("the label {key} is not a string"))),
                };
                labels.into_iter().map(text).collect::<Result<Vec<_>, _>>()
            });
            Ok(ExternalMetricSample {
                metric: item.metric_name.unwrap_or_else(|| query.metric.clone()),
                labels: labels.transpose()?,
                timestamp: item.timestamp,
                window: item.window,
                value: item.value.0,
            })
        })
        .collect()
}

/// Decodes a discovery response: sorted, without duplicates, and limited in number.
pub(crate) fn read_announced(body: &[u8]) -> Result<Vec<AnnouncedResource>, UpstreamError> {
    #[derive(Deserialize)]
    struct Resources {
        resources: Option<Vec<AnnouncedResource>>,
    }
    let list: Resources = read(body, "APIResourceList")?;
    let mut all = list.resources.unwrap_or_default();
    // Placeholder entries of servers without metrics.
    all.retain(|one| {
        !matches!(one.name.as_str(), "" | "externalmetrics" | "/custommetrics")
            && one.name.len() <= MAX_METRIC_NAME_CHARS
    });
    all.sort();
    all.dedup();
    all.truncate(MAX_ANNOUNCED_METRICS);
    Ok(all)
}

/// One entry of a discovery response.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
pub(crate) struct AnnouncedResource {
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) namespaced: bool,
}

impl AnnouncedResource {
    /// The custom metric of an entry such as `pods/qps`.
    pub(crate) fn custom(&self) -> Option<CustomMetric> {
        let (resource, metric) = self.name.split_once('/')?;
        let usable = !resource.is_empty() && !metric.is_empty();
        usable.then(|| CustomMetric {
            resource: resource.to_owned(),
            namespaced: self.namespaced,
            metric: metric.to_owned(),
        })
    }
}

/// Names of custom metrics, without their resources.
pub(crate) fn metric_names(metrics: &[CustomMetric]) -> HashSet<String> {
    metrics.iter().map(|one| one.metric.clone()).collect()
}

/// Decodes JSON of this kind. Another kind is an error even if the object has items.
fn read<'a, T: Deserialize<'a>>(body: &'a [u8], kind: &str) -> Result<T, UpstreamError> {
    #[derive(Deserialize)]
    struct Kind {
        kind: Option<String>,
    }
    let invalid = |error: serde_json::Error| UpstreamError::InvalidResponse(shortened(&error.to_string()));
    let found = serde_json::from_slice::<Kind>(body).map_err(invalid)?.kind.unwrap_or_default();
    if found != kind {
        let found = if found.is_empty() { "nothing".to_owned() } else { shortened(&found) };
        return Err(UpstreamError::InvalidResponse(format!("expected kind {kind}, found {found}")));
    }
    serde_json::from_slice(body).map_err(invalid)
}

/// Message of a `Status` body; `None` for other bodies.
pub(crate) fn read_status(body: &[u8]) -> Option<String> {
    #[derive(Deserialize)]
    struct Status {
        kind: String,
        #[serde(default)]
        message: String,
    }
    let status: Status = serde_json::from_slice(body).ok()?;
    (status.kind == "Status").then_some(status.message)
}
