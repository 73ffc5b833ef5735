//! A provider with a node, a pod, a custom and an external metric, for clients of the metrics APIs.

use std::sync::Arc;

use api::provider::{
    ContainerUsage, CustomMetric, CustomMetricQuery, CustomMetricSample, CustomMetricsProvider,
    ExternalMetricQuery, ExternalMetricSample, ExternalMetricsProvider, ListFilter, Lookup, NodeUsage,
    ObjectReference, PodUsage, ProviderFuture, ResourceMetricsProvider,
};
use quantity::{Format, Quantity};
use serve::ApiGroupVersion;
use serve::metrics::MetricsApiSettings;

pub const NODES: &str = "/apis/metrics.k8s.io/v1beta1/nodes";

/// All three APIs.
pub fn groups() -> Vec<ApiGroupVersion> {
    let (source, settings) = (Arc::new(Usage), MetricsApiSettings::default());
    let mut groups = serve::metrics::resource(source.clone(), &settings);
    groups.extend(serve::metrics::custom(source.clone(), &settings));
    groups.extend(serve::metrics::external(source, &settings));
    groups
}

pub struct Usage;

fn amounts() -> api::provider::ResourceUsage {
    vec![("cpu".into(), Quantity::from_milli(250, Format::DecimalSi))]
}

impl ResourceMetricsProvider for Usage {
    fn pods<'a>(&'a self, _: &'a ListFilter) -> ProviderFuture<'a, Vec<PodUsage>> {
        let containers = vec![ContainerUsage { name: "web".into(), usage: amounts() }];
        let (namespace, name) = ("default".into(), "web-0".into());
        let pod =
            PodUsage { namespace, name, labels: Arc::default(), timestamp: None, window: 0, containers };
        Box::pin(async { Ok(vec![pod]) })
    }

    fn pod<'a>(&'a self, _: &'a str, _: &'a str) -> ProviderFuture<'a, Lookup<PodUsage>> {
        Box::pin(async { Ok(Lookup::NotFound) })
    }

    fn nodes<'a>(&'a self, _: &'a ListFilter) -> ProviderFuture<'a, Vec<NodeUsage>> {
        let (name, usage) = ("node-a".into(), amounts());
        let node = NodeUsage { name, labels: Arc::default(), timestamp: None, window: 15_000_000_000, usage };
        Box::pin(async { Ok(vec![node]) })
    }

    fn node<'a>(&'a self, _: &'a str) -> ProviderFuture<'a, Lookup<NodeUsage>> {
        Box::pin(async { Ok(Lookup::NoSamples) })
    }
}

impl CustomMetricsProvider for Usage {
    fn values<'a>(&'a self, question: &'a CustomMetricQuery) -> ProviderFuture<'a, Vec<CustomMetricSample>> {
        let value = CustomMetricSample {
            object: ObjectReference {
                kind: "Pod".into(),
                name: "web-0".into(),
                ..ObjectReference::default()
            },
            metric: question.metric.clone(),
            series: None,
            timestamp: None,
            window: None,
            value: Quantity::from_milli(1500, Format::DecimalSi),
        };
        Box::pin(async { Ok(vec![value]) })
    }

    fn known(&self) -> Arc<Vec<CustomMetric>> {
        Arc::default()
    }
}

impl ExternalMetricsProvider for Usage {
    fn values<'a>(
        &'a self,
        question: &'a ExternalMetricQuery,
    ) -> ProviderFuture<'a, Vec<ExternalMetricSample>> {
        let value = ExternalMetricSample {
            metric: question.metric.clone(),
            labels: None,
            timestamp: None,
            window: None,
            value: Quantity::new(7, Format::DecimalSi),
        };
        Box::pin(async { Ok(vec![value]) })
    }

    fn known(&self) -> Arc<Vec<String>> {
        Arc::default()
    }
}
