//! The provider of the recorded server: a table that is searched by the rules of the vectors' README.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::Context as _;
use api::provider::{
    CustomMetric, CustomMetricQuery, CustomMetricSample, CustomMetricsProvider, ExternalMetricQuery,
    ExternalMetricSample, ExternalMetricsProvider, MetricsError, ObjectReference, ObjectSelection,
    ProviderFuture,
};
use api::selector::Selector;
use serde::Deserialize;
use serde_json::Value;

/// The first record.
#[derive(Deserialize)]
pub(super) struct CustomApiFixture {
    custom: Vec<Entry>,
    external: Vec<Series>,
    errors: BTreeMap<String, Value>,
}

#[derive(Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Entry {
    resource: String,
    namespaced: bool,
    namespace: String,
    name: String,
    labels: BTreeMap<String, String>,
    kind: String,
    api_version: String,
    metric: String,
    metric_labels: BTreeMap<String, String>,
    value: String,
    timestamp: String,
    window_seconds: Option<i64>,
}

#[derive(Clone, Deserialize)]
struct Series {
    metric: String,
    labels: Option<BTreeMap<String, String>>,
    value: String,
    timestamp: String,
    window: Option<i64>,
}

/// The discovery document.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Listed {
    All,
    Nothing,
    Placeholder,
}

pub(super) struct CustomApiProvider {
    custom: Vec<Entry>,
    external: Vec<Series>,
    errors: BTreeMap<String, Value>,
    listed: Listed,
}

impl CustomApiFixture {
    pub(super) fn read(record: &Value) -> anyhow::Result<Self> {
        serde_json::from_value(record.clone()).context("the first record is no fixture")
    }

    /// A provider of these records; without a listing it has no metrics either.
    pub(super) fn provider(&self, listed: Listed) -> CustomApiProvider {
        let (custom, external) = match listed {
            Listed::All => (self.custom.clone(), self.external.clone()),
            Listed::Nothing | Listed::Placeholder => (Vec::new(), Vec::new()),
        };
        CustomApiProvider { custom, external, errors: self.errors.clone(), listed }
    }
}

impl CustomApiProvider {
    /// The recorded error of a request for this metric.
    fn failure(&self, metric: &str) -> Result<(), MetricsError> {
        let Some(error) = self.errors.get(metric) else { return Ok(()) };
        let text = |of: &Value, key: &str| of[key].as_str().unwrap_or_default().to_owned();
        let Some(status) = error.get("status") else { return Err(MetricsError::Plain(text(error, "error"))) };
        let code = status["code"].as_u64().and_then(|code| u16::try_from(code).ok()).unwrap_or(500);
        let (reason, message) = (text(status, "reason"), text(status, "message"));
        Err(match status.get("details") {
            None => MetricsError::Status { code, reason, message },
            Some(details) => {
                MetricsError::Detailed { code, reason, message, details: Box::new(details.clone()) }
            }
        })
    }

    fn custom(&self, question: &CustomMetricQuery) -> Result<Vec<CustomMetricSample>, MetricsError> {
        let CustomMetricQuery { resource, namespace, objects, metric, series, .. } = question;
        self.failure(metric)?;
        let of_metric = |entry: &&Entry| {
            entry.resource == *resource && entry.namespaced == namespace.is_some() && entry.metric == *metric
        };
        let here = |entry: &&Entry| entry.namespace == namespace.as_deref().unwrap_or_default();
        let chosen = |entry: &&Entry| series.matches_map(&entry.metric_labels);
        let mut known = self.custom.iter().filter(of_metric).peekable();
        if known.peek().is_none() {
            return Err(MetricsError::no_metric(metric, resource));
        }
        match objects {
            ObjectSelection::All(labels) => {
                let all = known.filter(here).filter(|entry| labels.matches_map(&entry.labels)).filter(chosen);
                all.map(|entry| value(entry, series)).collect()
            }
            ObjectSelection::One(name) => {
                let own: Vec<&Entry> = known.filter(here).filter(|entry| entry.name == *name).collect();
                if own.is_empty() {
                    return Err(MetricsError::no_value(metric, resource, name));
                }
                let found = own.into_iter().find(|entry| chosen(entry)).ok_or_else(|| {
                    MetricsError::NoMetric(format!(
                        "the server could not find the metric {metric} for {resource} {name} with selector {series}"
                    ))
                });
                Ok(vec![value(found?, series)?])
            }
        }
    }

    fn external(&self, question: &ExternalMetricQuery) -> Result<Vec<ExternalMetricSample>, MetricsError> {
        let ExternalMetricQuery { metric, series, .. } = question;
        self.failure(metric)?;
        let mut known = self.external.iter().filter(|one| one.metric == *metric).peekable();
        if known.peek().is_none() {
            return Err(MetricsError::no_metric(metric, "namespaces"));
        }
        let none = BTreeMap::new();
        let found = known.filter(|one| series.matches_map(one.labels.as_ref().unwrap_or(&none)));
        found
            .map(|one| {
                Ok(ExternalMetricSample {
                    metric: one.metric.clone(),
                    labels: one.labels.clone().map(|labels| labels.into_iter().collect()),
                    timestamp: time(&one.timestamp)?,
                    window: one.window,
                    value: quantity(&one.value)?,
                })
            })
            .collect()
    }
}

fn value(entry: &Entry, series: &Selector) -> Result<CustomMetricSample, MetricsError> {
    let echoed = || series.to_label_selector().map_err(|error| MetricsError::Plain(error.to_string()));
    let series = if series.is_everything() { None } else { Some(echoed()?) };
    let Entry { kind, namespace, name, api_version, .. } = entry.clone();
    Ok(CustomMetricSample {
        object: ObjectReference { kind, namespace, name, api_version },
        metric: entry.metric.clone(),
        series,
        timestamp: time(&entry.timestamp)?,
        window: entry.window_seconds,
        value: quantity(&entry.value)?,
    })
}

fn time(text: &str) -> Result<Option<jiff::Timestamp>, MetricsError> {
    if text.is_empty() {
        return Ok(None);
    }
    text.parse().map(Some).map_err(|_| MetricsError::Plain(format!("{text} in the fixture is no time")))
}

fn quantity(text: &str) -> Result<quantity::Quantity, MetricsError> {
    quantity::Quantity::parse(text)
        .map_err(|_| MetricsError::Plain(format!("{text} in the fixture is no quantity")))
}

impl CustomMetricsProvider for CustomApiProvider {
    fn values<'a>(&'a self, question: &'a CustomMetricQuery) -> ProviderFuture<'a, Vec<CustomMetricSample>> {
        Box::pin(async move { self.custom(question) })
    }

    fn known(&self) -> Arc<Vec<CustomMetric>> {
        let mut known: Vec<CustomMetric> = Vec::new();
        if self.listed == Listed::Placeholder {
            known.push(CustomMetric {
                resource: String::new(),
                namespaced: false,
                metric: "custommetrics".to_owned(),
            });
        }
        for Entry { resource, namespaced, metric, .. } in self.custom.clone() {
            let one = CustomMetric { resource, namespaced, metric };
            if !known.contains(&one) {
                known.push(one);
            }
        }
        Arc::new(known)
    }
}

impl ExternalMetricsProvider for CustomApiProvider {
    fn values<'a>(
        &'a self,
        question: &'a ExternalMetricQuery,
    ) -> ProviderFuture<'a, Vec<ExternalMetricSample>> {
        Box::pin(async move { self.external(question) })
    }

    fn known(&self) -> Arc<Vec<String>> {
        let mut known: Vec<String> = Vec::new();
        if self.listed == Listed::Placeholder {
            known.push("externalmetrics".to_owned());
        }
        for Series { metric, .. } in self.external.clone() {
            if !known.contains(&metric) {
                known.push(metric);
            }
        }
        Arc::new(known)
    }
}
