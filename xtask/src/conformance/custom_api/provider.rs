//! The provider behind the recorded answers: a table, searched by the rules of the vectors' README.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::Context as _;
use api::provider::{
    Answer, CustomMetric, CustomMetricQuery, CustomMetrics, CustomValue, Described, ExternalMetricQuery,
    ExternalMetrics, ExternalValue, Failure, Objects,
};
use api::selector::Selector;
use serde::Deserialize;
use serde_json::Value;

/// The first record.
#[derive(Deserialize)]
pub(super) struct Fixture {
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

/// What discovery says.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Listed {
    All,
    Nothing,
    Placeholder,
}

pub(super) struct Provider {
    custom: Vec<Entry>,
    external: Vec<Series>,
    errors: BTreeMap<String, Value>,
    listed: Listed,
}

impl Fixture {
    pub(super) fn read(record: &Value) -> anyhow::Result<Self> {
        serde_json::from_value(record.clone()).context("the first record is no fixture")
    }

    /// A provider that knows this; without a listing it has no metrics either.
    pub(super) fn provider(&self, listed: Listed) -> Provider {
        let (custom, external) = match listed {
            Listed::All => (self.custom.clone(), self.external.clone()),
            Listed::Nothing | Listed::Placeholder => (Vec::new(), Vec::new()),
        };
        Provider { custom, external, errors: self.errors.clone(), listed }
    }
}

impl Provider {
    /// The error that asking for this metric is recorded to give.
    fn failure(&self, metric: &str) -> Result<(), Failure> {
        let Some(error) = self.errors.get(metric) else { return Ok(()) };
        let text = |of: &Value, key: &str| of[key].as_str().unwrap_or_default().to_owned();
        let Some(status) = error.get("status") else { return Err(Failure::Plain(text(error, "error"))) };
        let code = status["code"].as_u64().and_then(|code| u16::try_from(code).ok()).unwrap_or(500);
        let (reason, message) = (text(status, "reason"), text(status, "message"));
        Err(match status.get("details") {
            None => Failure::Status { code, reason, message },
            Some(details) => Failure::Detailed { code, reason, message, details: Box::new(details.clone()) },
        })
    }

    fn custom(&self, question: &CustomMetricQuery) -> Result<Vec<CustomValue>, Failure> {
        let CustomMetricQuery { resource, namespace, objects, metric, series } = question;
        self.failure(metric)?;
        let of_metric = |entry: &&Entry| {
            entry.resource == *resource && entry.namespaced == namespace.is_some() && entry.metric == *metric
        };
        let here = |entry: &&Entry| entry.namespace == namespace.as_deref().unwrap_or_default();
        let chosen = |entry: &&Entry| series.matches_map(&entry.metric_labels);
        let mut known = self.custom.iter().filter(of_metric).peekable();
        if known.peek().is_none() {
            return Err(Failure::no_metric(metric, resource));
        }
        match objects {
            Objects::All(labels) => {
                let all = known.filter(here).filter(|entry| labels.matches_map(&entry.labels)).filter(chosen);
                all.map(|entry| value(entry, series)).collect()
            }
            Objects::One(name) => {
                let own: Vec<&Entry> = known.filter(here).filter(|entry| entry.name == *name).collect();
                if own.is_empty() {
                    return Err(Failure::no_value(metric, resource, name));
                }
                let found = own.into_iter().find(|entry| chosen(entry)).ok_or_else(|| {
                    Failure::NoMetric(format!(
                        "the server could not find the metric {metric} for {resource} {name} with selector {series}"
                    ))
                });
                Ok(vec![value(found?, series)?])
            }
        }
    }

    fn external(&self, question: &ExternalMetricQuery) -> Result<Vec<ExternalValue>, Failure> {
        let ExternalMetricQuery { metric, series, .. } = question;
        self.failure(metric)?;
        let mut known = self.external.iter().filter(|one| one.metric == *metric).peekable();
        if known.peek().is_none() {
            return Err(Failure::no_metric(metric, "namespaces"));
        }
        let none = BTreeMap::new();
        let found = known.filter(|one| series.matches_map(one.labels.as_ref().unwrap_or(&none)));
        found
            .map(|one| {
                Ok(ExternalValue {
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

fn value(entry: &Entry, series: &Selector) -> Result<CustomValue, Failure> {
    let echoed = || series.to_label_selector().map_err(|error| Failure::Plain(error.to_string()));
    let series = if series.is_everything() { None } else { Some(echoed()?) };
    let Entry { kind, namespace, name, api_version, .. } = entry.clone();
    Ok(CustomValue {
        object: Described { kind, namespace, name, api_version },
        metric: entry.metric.clone(),
        series,
        timestamp: time(&entry.timestamp)?,
        window: entry.window_seconds,
        value: quantity(&entry.value)?,
    })
}

fn time(text: &str) -> Result<Option<jiff::Timestamp>, Failure> {
    if text.is_empty() {
        return Ok(None);
    }
    text.parse().map(Some).map_err(|_| Failure::Plain(format!("{text} in the fixture is no time")))
}

fn quantity(text: &str) -> Result<quantity::Quantity, Failure> {
    quantity::Quantity::parse(text)
        .map_err(|_| Failure::Plain(format!("{text} in the fixture is no quantity")))
}

impl CustomMetrics for Provider {
    fn values<'a>(&'a self, question: &'a CustomMetricQuery) -> Answer<'a, Vec<CustomValue>> {
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

impl ExternalMetrics for Provider {
    fn values<'a>(&'a self, question: &'a ExternalMetricQuery) -> Answer<'a, Vec<ExternalValue>> {
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
