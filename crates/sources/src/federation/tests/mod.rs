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
    Answer, CustomMetric, CustomMetricQuery, CustomMetrics, CustomValue, ExternalMetricQuery,
    ExternalMetrics, ExternalValue, Failure, Objects,
};
use api::selector::Selector;
use api::text::Source;

use super::*;

pub(crate) fn external(metric: &str) -> ExternalMetricQuery {
    ExternalMetricQuery { namespace: "default".into(), metric: metric.into(), series: Selector::everything() }
}

pub(crate) fn custom(metric: &str, objects: Objects) -> CustomMetricQuery {
    CustomMetricQuery {
        resource: "pods".into(),
        namespace: Some("default".into()),
        objects,
        metric: metric.into(),
        series: Selector::everything(),
    }
}

pub(crate) fn one(name: &str) -> Objects {
    Objects::One(name.into())
}

pub(crate) fn all() -> Objects {
    Objects::All(Selector::everything())
}

pub(crate) fn config(text: &str) -> FederationConfig {
    FederationConfig::read(&Source::new("test", text), &OwnService::default()).unwrap()
}

/// A local provider with one external metric.
pub(crate) struct Known(pub(crate) &'static str, pub(crate) Result<i64, Failure>);

impl ExternalMetrics for Known {
    fn values<'a>(&'a self, question: &'a ExternalMetricQuery) -> Answer<'a, Vec<ExternalValue>> {
        Box::pin(async move {
            if question.metric != self.0 {
                return Err(Failure::no_metric(&question.metric, "own"));
            }
            let value = self.1.clone()?;
            Ok(vec![ExternalValue {
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

impl CustomMetrics for Known {
    fn values<'a>(&'a self, question: &'a CustomMetricQuery) -> Answer<'a, Vec<CustomValue>> {
        Box::pin(async move { Err(Failure::no_metric(&question.metric, &question.resource)) })
    }

    fn known(&self) -> Arc<Vec<CustomMetric>> {
        Arc::new(vec![CustomMetric { resource: "pods".into(), namespaced: true, metric: self.0.to_owned() }])
    }
}

/// Local provider of an external metric.
pub(crate) fn own(metric: &'static str, value: Result<i64, Failure>) -> LocalProviders {
    LocalProviders { custom: vec![], external: vec![("own".into(), Arc::new(Known(metric, value)))] }
}

/// The values of an external metric as texts.
pub(crate) async fn ask(router: &Router, metric: &str) -> Result<Vec<String>, Failure> {
    let values = ExternalMetrics::values(router, &external(metric)).await?;
    Ok(values.iter().map(|value| value.value.to_string()).collect())
}
