//! To and from `autoscaling/v2`.

use super::{
    API_VERSION, Autoscaler, AutoscalerSpec, ContainerResourceMetricSource, KIND, METRIC, MetricSource,
    MetricSpec, ResourceMetricSource, ResourceTarget,
};
use crate::autoscaling;
use crate::autoscaling::v2::{self, CrossVersionObjectReference, HorizontalPodAutoscaler};

/// The fields of an Autoscaler that v2 does not have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("autoscaling/v2 has no place for {}", .fields.join(", "))]
pub struct NotExpressible {
    /// Each field with its value, e.g. `spec.replicasAggregator: average`.
    pub fields: Vec<String>,
}

/// Converts a v2 object without loss.
pub fn from_v2(object: HorizontalPodAutoscaler) -> Autoscaler {
    let HorizontalPodAutoscaler { metadata, spec, status, .. } = object;
    Autoscaler {
        kind: KIND.to_owned(),
        api_version: API_VERSION.to_owned(),
        metadata,
        spec: AutoscalerSpec {
            scale_target_ref: spec.scale_target_ref,
            min_replicas: spec.min_replicas,
            max_replicas: spec.max_replicas,
            metrics: spec.metrics.into_iter().map(Into::into).collect(),
            behavior: spec.behavior,
            ..Default::default()
        },
        status,
    }
}

/// Converts to v2, if v2 has all fields that are set.
///
/// A metric of type `Metric` becomes one of type `Pods` or `Object`: measured on each pod, on the namespace, on the
/// scale target or on the object named.
pub fn to_v2(object: Autoscaler) -> Result<HorizontalPodAutoscaler, NotExpressible> {
    let fields = foreign_fields(&object.spec);
    if fields.is_empty() { Ok(v2_view(object)) } else { Err(NotExpressible { fields }) }
}

/// The v2 part of an Autoscaler, for tables and statuses in the form of v2. Metrics keep their index.
pub fn v2_view(object: Autoscaler) -> HorizontalPodAutoscaler {
    let Autoscaler { metadata, spec, status, .. } = object;
    let places = Places { namespace: &metadata.namespace, target: spec.scale_target_ref.clone() };
    let metrics = spec.metrics.into_iter().map(|metric| places.metric(metric)).collect();
    HorizontalPodAutoscaler {
        kind: autoscaling::KIND.to_owned(),
        api_version: v2::API_VERSION.to_owned(),
        spec: v2::HorizontalPodAutoscalerSpec {
            scale_target_ref: spec.scale_target_ref,
            min_replicas: spec.min_replicas,
            max_replicas: spec.max_replicas,
            metrics,
            behavior: spec.behavior,
        },
        metadata,
        status,
    }
}

fn foreign_fields(spec: &AutoscalerSpec) -> Vec<String> {
    let mut fields = Vec::new();
    if let Some(aggregator) = spec.replicas_aggregator.as_deref().filter(|aggregator| *aggregator != "max") {
        fields.push(format!("spec.replicasAggregator: {aggregator}"));
    }
    if let Some(period) = spec.sync_period_seconds {
        fields.push(format!("spec.syncPeriodSeconds: {period}"));
    }
    if spec.dry_run {
        fields.push("spec.dryRun: true".to_owned());
    }
    for (i, metric) in spec.metrics.iter().enumerate() {
        let resource = metric.resource.as_ref().map(|source| ("resource", &source.target));
        let container =
            metric.container_resource.as_ref().map(|source| ("containerResource", &source.target));
        for (name, target) in resource.into_iter().chain(container) {
            if let Some(of) = target.percentage_of.as_deref().filter(|of| *of != "requests") {
                fields.push(format!("spec.metrics[{i}].{name}.target.percentageOf: {of}"));
            }
        }
        if let Some(failure) = &metric.on_failure {
            fields.push(format!("spec.metrics[{i}].onFailure.policy: {}", failure.policy));
        }
        if let Some(seconds) = metric.max_age_seconds {
            fields.push(format!("spec.metrics[{i}].maxAgeSeconds: {seconds}"));
        }
        if let Some(rule) = metric.series_aggregator.as_deref().filter(|rule| *rule != "sum") {
            fields.push(format!("spec.metrics[{i}].seriesAggregator: {rule}"));
        }
    }
    fields
}

/// The objects that relative origins refer to.
struct Places<'a> {
    namespace: &'a str,
    target: CrossVersionObjectReference,
}

impl Places<'_> {
    fn metric(&self, metric: MetricSpec) -> v2::MetricSpec {
        let MetricSpec {
            mut type_,
            mut object,
            mut pods,
            resource,
            container_resource,
            external,
            metric: source,
            ..
        } = metric;
        if let Some(source) = source {
            let described = self.described(&source);
            let (metric, target) = (source.metric, source.target);
            let becomes = if described.is_some() { v2::OBJECT } else { v2::PODS };
            match described {
                None => pods = Some(v2::PodsMetricSource { metric, target }),
                Some(described_object) => {
                    object = Some(v2::ObjectMetricSource { described_object, target, metric });
                }
            }
            if type_ == METRIC {
                becomes.clone_into(&mut type_);
            }
        }
        v2::MetricSpec {
            type_,
            object,
            pods,
            resource: resource.map(Into::into),
            container_resource: container_resource.map(Into::into),
            external,
        }
    }

    /// The object that a metric describes; absent if it describes each pod.
    fn described(&self, source: &MetricSource) -> Option<CrossVersionObjectReference> {
        match source.origin() {
            Some("namespace") => Some(CrossVersionObjectReference {
                kind: "Namespace".to_owned(),
                name: self.namespace.to_owned(),
                api_version: "v1".to_owned(),
            }),
            Some("target") => Some(self.target.clone()),
            Some(_) => None,
            None => source.from.as_ref().and_then(|from| from.object.clone()),
        }
    }
}

impl MetricSource {
    /// The role of the object that the metric describes; absent if `from` names an object.
    pub fn origin(&self) -> Option<&str> {
        match &self.from {
            None => Some("pod"),
            Some(from) if from.object.is_some() => None,
            Some(from) => Some(from.current.as_deref().unwrap_or("pod")),
        }
    }
}

impl From<v2::MetricSpec> for MetricSpec {
    fn from(metric: v2::MetricSpec) -> Self {
        Self {
            type_: metric.type_,
            object: metric.object,
            pods: metric.pods,
            resource: metric
                .resource
                .map(|source| ResourceMetricSource { name: source.name, target: source.target.into() }),
            container_resource: metric.container_resource.map(|source| ContainerResourceMetricSource {
                name: source.name,
                target: source.target.into(),
                container: source.container,
            }),
            external: metric.external,
            metric: None,
            on_failure: None,
            max_age_seconds: None,
            series_aggregator: None,
        }
    }
}

impl From<v2::MetricTarget> for ResourceTarget {
    fn from(target: v2::MetricTarget) -> Self {
        Self {
            type_: target.type_,
            value: target.value,
            average_value: target.average_value,
            average_utilization: target.average_utilization,
            percentage_of: None,
        }
    }
}

impl From<ResourceTarget> for v2::MetricTarget {
    fn from(target: ResourceTarget) -> Self {
        Self {
            type_: target.type_,
            value: target.value,
            average_value: target.average_value,
            average_utilization: target.average_utilization,
        }
    }
}

impl From<ResourceMetricSource> for v2::ResourceMetricSource {
    fn from(source: ResourceMetricSource) -> Self {
        Self { name: source.name, target: source.target.into() }
    }
}

impl From<ContainerResourceMetricSource> for v2::ContainerResourceMetricSource {
    fn from(source: ContainerResourceMetricSource) -> Self {
        Self { name: source.name, target: source.target.into(), container: source.container }
    }
}
