//! What upstreams are asked, and how their answers are read. No IO.

use std::collections::HashSet;

use api::provider::{
    CustomMetric, CustomMetricQuery, CustomValue, Described, ExternalMetricQuery, ExternalValue, Objects,
};
use api::selector::LabelSelector;
use jiff::Timestamp;
use quantity::Quantity;
use serde::Deserialize;
use serde_json::Value;

use super::cause::{Cause, shortened};

/// Metrics of one upstream that are remembered, and characters of a name; whoever announces more is asked all the same.
const MOST: usize = 20_000;
const LONGEST: usize = 512;

/// A version of `custom.metrics.k8s.io`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Version {
    V1Beta1,
    V1Beta2,
}

impl Version {
    /// The list of all metrics.
    pub(crate) fn path(self) -> &'static str {
        match self {
            Self::V1Beta1 => "/apis/custom.metrics.k8s.io/v1beta1",
            Self::V1Beta2 => "/apis/custom.metrics.k8s.io/v1beta2",
        }
    }
}

/// The list of all external metrics.
pub(crate) const EXTERNAL: &str = "/apis/external.metrics.k8s.io/v1beta1";

/// Path and query of a question about a custom metric; none if it cannot be asked.
pub(crate) fn custom_path(version: Version, question: &CustomMetricQuery) -> Option<String> {
    let (object, labels) = match &question.objects {
        Objects::One(name) => (segment(name)?, String::new()),
        Objects::All(selector) => ("*".to_owned(), selector.to_string()),
    };
    let (resource, metric) = (segment(&question.resource)?, segment(&question.metric)?);
    let path = match &question.namespace {
        None if is_namespaces(&question.resource) => format!("/namespaces/{object}/metrics/{metric}"),
        None => format!("/{resource}/{object}/{metric}"),
        Some(namespace) => format!("/namespaces/{}/{resource}/{object}/{metric}", segment(namespace)?),
    };
    let query = [("labelSelector", labels), ("metricLabelSelector", question.series.to_string())];
    Some(format!("{}{path}{}", version.path(), parameters(&query)))
}

/// Path and query of a question about an external metric; none if it cannot be asked.
pub(crate) fn external_path(question: &ExternalMetricQuery) -> Option<String> {
    let (namespace, metric) = (segment(&question.namespace)?, segment(&question.metric)?);
    let query = [("labelSelector", question.series.to_string())];
    Some(format!("{EXTERNAL}/namespaces/{namespace}/{metric}{}", parameters(&query)))
}

/// The namespace a question belongs to: for a metric of a namespace, that one.
pub(crate) fn place(question: &CustomMetricQuery) -> Option<&str> {
    match (&question.namespace, &question.objects) {
        (Some(namespace), _) => Some(namespace),
        (None, Objects::One(name)) if is_namespaces(&question.resource) => Some(name),
        _ => None,
    }
}

fn is_namespaces(resource: &str) -> bool {
    resource == "namespaces" || resource == "namespace"
}

/// A segment of a path; none if no server could take it for one segment.
fn segment(text: &str) -> Option<String> {
    let possible = !text.is_empty() && text != "." && text != ".." && !text.contains(['/', '\\', '%']);
    possible.then(|| encoded(text))
}

fn parameters(pairs: &[(&str, String)]) -> String {
    let given = pairs.iter().filter(|(_, value)| !value.is_empty());
    let texts: Vec<String> = given.map(|(name, value)| format!("{name}={}", encoded(value))).collect();
    if texts.is_empty() { String::new() } else { format!("?{}", texts.join("&")) }
}

/// With `%XX` for all that could mean something else in a URL.
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
struct List<T> {
    items: Option<Vec<T>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CustomItem {
    described_object: Object,
    /// v1beta2.
    metric: Option<Metric>,
    /// v1beta1.
    metric_name: Option<String>,
    selector: Option<LabelSelector>,
    timestamp: Option<Timestamp>,
    #[serde(alias = "window")]
    window_seconds: Option<i64>,
    value: Given,
}

#[derive(Deserialize)]
struct Metric {
    name: Option<String>,
    selector: Option<LabelSelector>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Object {
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
    value: Given,
}

/// A quantity that is there: `null` would otherwise be zero, and what is not known is not zero.
struct Given(Quantity);

impl<'de> Deserialize<'de> for Given {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let given = Option::<Quantity>::deserialize(deserializer)?;
        given.map(Self).ok_or_else(|| serde::de::Error::custom("a value is null"))
    }
}

/// Values of a custom metric, in either version.
pub(crate) fn read_custom(body: &[u8], question: &CustomMetricQuery) -> Result<Vec<CustomValue>, Cause> {
    let list: List<CustomItem> = read(body, "MetricValueList")?;
    let items = list.items.unwrap_or_default().into_iter().map(|item| {
        let (name, selector) = match item.metric {
            Some(metric) => (metric.name, metric.selector),
            None => (item.metric_name, item.selector),
        };
        let object = item.described_object;
        CustomValue {
            object: Described {
                kind: object.kind.unwrap_or_default(),
                namespace: object.namespace.unwrap_or_default(),
                name: object.name.unwrap_or_default(),
                api_version: object.api_version.unwrap_or_default(),
            },
            metric: name.unwrap_or_else(|| question.metric.clone()),
            series: selector,
            timestamp: item.timestamp,
            window: item.window_seconds,
            value: item.value.0,
        }
    });
    Ok(items.collect())
}

/// Values of an external metric.
pub(crate) fn read_external(
    body: &[u8],
    question: &ExternalMetricQuery,
) -> Result<Vec<ExternalValue>, Cause> {
    let list: List<ExternalItem> = read(body, "ExternalMetricValueList")?;
    list.items
        .unwrap_or_default()
        .into_iter()
        .map(|item| {
            let labels = item.metric_labels.map(|labels| {
                let text = |(key, value)| match value {
                    Value::String(value) => Ok((key, value)),
                    _ => Err(Cause::Garbage(format!("the label {key} is not a text"))),
                };
                labels.into_iter().map(text).collect::<Result<Vec<_>, _>>()
            });
            Ok(ExternalValue {
                metric: item.metric_name.unwrap_or_else(|| question.metric.clone()),
                labels: labels.transpose()?,
                timestamp: item.timestamp,
                window: item.window,
                value: item.value.0,
            })
        })
        .collect()
}

/// What is announced, in order, each once, and never more than can be remembered.
pub(crate) fn read_announced(body: &[u8]) -> Result<Vec<Announced>, Cause> {
    #[derive(Deserialize)]
    struct Resources {
        resources: Option<Vec<Announced>>,
    }
    let list: Resources = read(body, "APIResourceList")?;
    let mut all = list.resources.unwrap_or_default();
    // What servers say who know nothing.
    all.retain(|one| {
        !matches!(one.name.as_str(), "" | "externalmetrics" | "/custommetrics") && one.name.len() <= LONGEST
    });
    all.sort();
    all.dedup();
    all.truncate(MOST);
    Ok(all)
}

/// One entry of a list of metrics.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
pub(crate) struct Announced {
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) namespaced: bool,
}

impl Announced {
    /// As a custom metric: `pods/qps`.
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

/// Names of custom metrics, whatever they describe.
pub(crate) fn metric_names(metrics: &[CustomMetric]) -> HashSet<String> {
    metrics.iter().map(|one| one.metric.clone()).collect()
}

/// Reads JSON of this kind. A server that says another kind is not what we took it for, even if it has items.
fn read<'a, T: Deserialize<'a>>(body: &'a [u8], kind: &str) -> Result<T, Cause> {
    #[derive(Deserialize)]
    struct Kind {
        kind: Option<String>,
    }
    let garbage = |error: serde_json::Error| Cause::Garbage(shortened(&error.to_string()));
    let found = serde_json::from_slice::<Kind>(body).map_err(garbage)?.kind.unwrap_or_default();
    if found != kind {
        let found = if found.is_empty() { "nothing".to_owned() } else { shortened(&found) };
        return Err(Cause::Garbage(format!("expected kind {kind}, found {found}")));
    }
    serde_json::from_slice(body).map_err(garbage)
}

/// What the body of an error says; none if it is no `Status`.
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
