//! A node, a pod, a custom and an external metric, for visitors of the metrics APIs.

use std::sync::Arc;

use api::provider::{
    Answer, ContainerUsage, CustomMetric, CustomMetricQuery, CustomMetrics, CustomValue, Described,
    ExternalMetricQuery, ExternalMetrics, ExternalValue, Found, Listing, NodeUsage, PodUsage,
    ResourceMetrics,
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

fn amounts() -> api::provider::Usage {
    vec![("cpu".into(), Quantity::from_milli(250, Format::DecimalSi))]
}

impl ResourceMetrics for Usage {
    fn pods<'a>(&'a self, _: &'a Listing) -> Answer<'a, Vec<PodUsage>> {
        let containers = vec![ContainerUsage { name: "web".into(), usage: amounts() }];
        let (namespace, name) = ("default".into(), "web-0".into());
        let pod =
            PodUsage { namespace, name, labels: Arc::default(), timestamp: None, window: 0, containers };
        Box::pin(async { Ok(vec![pod]) })
    }

    fn pod<'a>(&'a self, _: &'a str, _: &'a str) -> Answer<'a, Found<PodUsage>> {
        Box::pin(async { Ok(Found::Unknown) })
    }

    fn nodes<'a>(&'a self, _: &'a Listing) -> Answer<'a, Vec<NodeUsage>> {
        let (name, usage) = ("node-a".into(), amounts());
        let node = NodeUsage { name, labels: Arc::default(), timestamp: None, window: 15_000_000_000, usage };
        Box::pin(async { Ok(vec![node]) })
    }

    fn node<'a>(&'a self, _: &'a str) -> Answer<'a, Found<NodeUsage>> {
        Box::pin(async { Ok(Found::NoSamples) })
    }
}

impl CustomMetrics for Usage {
    fn values<'a>(&'a self, question: &'a CustomMetricQuery) -> Answer<'a, Vec<CustomValue>> {
        let value = CustomValue {
            object: Described { kind: "Pod".into(), name: "web-0".into(), ..Described::default() },
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

impl ExternalMetrics for Usage {
    fn values<'a>(&'a self, question: &'a ExternalMetricQuery) -> Answer<'a, Vec<ExternalValue>> {
        let value = ExternalValue {
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
