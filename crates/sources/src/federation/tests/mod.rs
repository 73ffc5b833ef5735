#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

mod circle;
mod docs;
mod follow;
mod routing;
pub(crate) mod server;
mod sick;
mod wire;

use std::sync::Arc;

use api::provider::{
    CustomMetric, CustomMetricQuery, CustomMetricSample, CustomMetricsProvider, ExternalMetricQuery,
    ExternalMetricSample, ExternalMetricsProvider, MetricsError, ObjectSelection, ProviderFuture,
    SampleSource,
};
use api::selector::Selector;
use api::yaml::SourceFile;

use super::*;

pub(crate) fn external(metric: &str) -> ExternalMetricQuery {
    ExternalMetricQuery {
        namespace: "default".into(),
        metric: metric.into(),
        series: Selector::everything(),
        source: SampleSource::default(),
    }
}

pub(crate) fn custom(metric: &str, objects: ObjectSelection) -> CustomMetricQuery {
    CustomMetricQuery {
        resource: "pods".into(),
        namespace: Some("default".into()),
        objects,
        metric: metric.into(),
        series: Selector::everything(),
        source: SampleSource::default(),
    }
}

pub(crate) fn one(name: &str) -> ObjectSelection {
    ObjectSelection::One(name.into())
}

pub(crate) fn all() -> ObjectSelection {
    ObjectSelection::All(Selector::everything())
}

pub(crate) fn config(text: &str) -> FederationConfig {
    FederationConfig::read(&SourceFile::new("test", text), &OwnService::default()).unwrap()
}

/// A local provider with one external metric.
pub(crate) struct Known(pub(crate) &'static str, pub(crate) Result<i64, MetricsError>);

impl ExternalMetricsProvider for Known {
    fn values<'a>(&'a self, query: &'a ExternalMetricQuery) -> ProviderFuture<'a, Vec<ExternalMetricSample>> {
        Box::pin(async move {
            if query.metric != self.0 {
                return Err(MetricsError::no_metric(&query.metric, "own"));
            }
            let value = self.1.clone()?;
            Ok(vec![ExternalMetricSample {
                metric: self.0.into(),
                labels: None,
                timestamp: None,
                window: None,
                value: value.to_string().parse().unwrap(),
            }])
        })
    }

    fn known(&self) -> Arc<Vec<String>> {
        Arc::new(vec![self.0.to_owned()])
    }
}

impl CustomMetricsProvider for Known {
    fn values<'a>(&'a self, query: &'a CustomMetricQuery) -> ProviderFuture<'a, Vec<CustomMetricSample>> {
        Box::pin(async move { Err(MetricsError::no_metric(&query.metric, &query.resource)) })
    }

    fn known(&self) -> Arc<Vec<CustomMetric>> {
        Arc::new(vec![CustomMetric { resource: "pods".into(), namespaced: true, metric: self.0.to_owned() }])
    }
}

/// Local provider of an external metric.
pub(crate) fn own(metric: &'static str, value: Result<i64, MetricsError>) -> LocalProviders {
    LocalProviders { custom: vec![], external: vec![("own".into(), Arc::new(Known(metric, value)))] }
}

/// The values of an external metric as texts.
pub(crate) async fn query_metric(router: &Router, metric: &str) -> Result<Vec<String>, MetricsError> {
    let values = ExternalMetricsProvider::values(router, &external(metric)).await?;
    Ok(values.iter().map(|value| value.value.to_string()).collect())
}
