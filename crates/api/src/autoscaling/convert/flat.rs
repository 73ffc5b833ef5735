//! The flat shapes of metrics: v2beta1 has them as fields, v1 in annotations.
//!
//! Their targets have no type; it is inferred from what is set. Quantities that cannot be left out are written as
//! zero and come back as zero.

use quantity::Quantity;

use crate::autoscaling::v2::{self, MetricIdentifier, MetricTarget, MetricValueStatus};
use crate::autoscaling::v2beta1 as flat;

impl From<v2::MetricSpec> for flat::MetricSpec {
    fn from(metric: v2::MetricSpec) -> Self {
        Self {
            type_: metric.type_,
            object: metric.object.map(|source| flat::ObjectMetricSource {
                target: source.described_object,
                metric_name: source.metric.name,
                target_value: source.target.value.unwrap_or_default(),
                selector: source.metric.selector,
                average_value: source.target.average_value,
            }),
            pods: metric.pods.map(|source| flat::PodsMetricSource {
                metric_name: source.metric.name,
                target_average_value: source.target.average_value.unwrap_or_default(),
                selector: source.metric.selector,
            }),
            resource: metric.resource.map(|source| flat::ResourceMetricSource {
                name: source.name,
                target_average_utilization: source.target.average_utilization,
                target_average_value: source.target.average_value,
            }),
            container_resource: metric.container_resource.map(|source| flat::ContainerResourceMetricSource {
                name: source.name,
                target_average_utilization: source.target.average_utilization,
                target_average_value: source.target.average_value,
                container: source.container,
            }),
            external: metric.external.map(|source| flat::ExternalMetricSource {
                metric_name: source.metric.name,
                metric_selector: source.metric.selector,
                target_value: source.target.value,
                target_average_value: source.target.average_value,
            }),
        }
    }
}

impl From<flat::MetricSpec> for v2::MetricSpec {
    fn from(metric: flat::MetricSpec) -> Self {
        Self {
            type_: metric.type_,
            object: metric.object.map(|source| v2::ObjectMetricSource {
                described_object: source.target,
                target: object_target(source.target_value, source.average_value),
                metric: MetricIdentifier { name: source.metric_name, selector: source.selector },
            }),
            pods: metric.pods.map(|source| v2::PodsMetricSource {
                metric: MetricIdentifier { name: source.metric_name, selector: source.selector },
                target: MetricTarget {
                    type_: v2::AVERAGE_VALUE.to_owned(),
                    average_value: Some(source.target_average_value),
                    ..Default::default()
                },
            }),
            resource: metric.resource.map(|source| v2::ResourceMetricSource {
                name: source.name,
                target: resource_target(source.target_average_utilization, source.target_average_value),
            }),
            container_resource: metric.container_resource.map(|source| v2::ContainerResourceMetricSource {
                name: source.name,
                target: resource_target(source.target_average_utilization, source.target_average_value),
                container: source.container,
            }),
            external: metric.external.map(|source| v2::ExternalMetricSource {
                metric: MetricIdentifier { name: source.metric_name, selector: source.metric_selector },
                target: MetricTarget {
                    type_: if source.target_value.is_some() { v2::VALUE } else { v2::AVERAGE_VALUE }
                        .to_owned(),
                    value: source.target_value,
                    average_value: source.target_average_value,
                    average_utilization: None,
                },
            }),
        }
    }
}

/// If there is an average, a zero total means that no total was set; a total alone counts even when zero.
fn object_target(value: Quantity, average_value: Option<Quantity>) -> MetricTarget {
    let type_ = if average_value.is_some() { v2::AVERAGE_VALUE } else { v2::VALUE };
    let unset = average_value.is_some() && value.is_zero();
    MetricTarget {
        type_: type_.to_owned(),
        value: (!unset).then_some(value),
        average_value,
        average_utilization: None,
    }
}

fn resource_target(utilization: Option<i32>, average_value: Option<Quantity>) -> MetricTarget {
    MetricTarget {
        type_: if utilization.is_some() { v2::UTILIZATION } else { v2::AVERAGE_VALUE }.to_owned(),
        value: None,
        average_value,
        average_utilization: utilization,
    }
}

impl From<v2::MetricStatus> for flat::MetricStatus {
    fn from(metric: v2::MetricStatus) -> Self {
        Self {
            type_: metric.type_,
            object: metric.object.map(|status| flat::ObjectMetricStatus {
                target: status.described_object,
                metric_name: status.metric.name,
                current_value: status.current.value.unwrap_or_default(),
                selector: status.metric.selector,
                average_value: status.current.average_value,
            }),
            pods: metric.pods.map(|status| flat::PodsMetricStatus {
                metric_name: status.metric.name,
                current_average_value: status.current.average_value.unwrap_or_default(),
                selector: status.metric.selector,
            }),
            resource: metric.resource.map(|status| flat::ResourceMetricStatus {
                name: status.name,
                current_average_utilization: status.current.average_utilization,
                current_average_value: status.current.average_value.unwrap_or_default(),
            }),
            container_resource: metric.container_resource.map(|status| flat::ContainerResourceMetricStatus {
                name: status.name,
                current_average_utilization: status.current.average_utilization,
                current_average_value: status.current.average_value.unwrap_or_default(),
                container: status.container,
            }),
            external: metric.external.map(|status| flat::ExternalMetricStatus {
                metric_name: status.metric.name,
                metric_selector: status.metric.selector,
                current_value: status.current.value.unwrap_or_default(),
                current_average_value: status.current.average_value,
            }),
        }
    }
}

impl From<flat::MetricStatus> for v2::MetricStatus {
    fn from(metric: flat::MetricStatus) -> Self {
        let resource_value = |value, utilization| MetricValueStatus {
            value: None,
            average_value: Some(value),
            average_utilization: utilization,
        };
        let total_value = |value, average_value| MetricValueStatus {
            value: Some(value),
            average_value,
            average_utilization: None,
        };
        Self {
            type_: metric.type_,
            object: metric.object.map(|status| v2::ObjectMetricStatus {
                metric: MetricIdentifier { name: status.metric_name, selector: status.selector },
                current: total_value(status.current_value, status.average_value),
                described_object: status.target,
            }),
            pods: metric.pods.map(|status| v2::PodsMetricStatus {
                metric: MetricIdentifier { name: status.metric_name, selector: status.selector },
                current: resource_value(status.current_average_value, None),
            }),
            resource: metric.resource.map(|status| v2::ResourceMetricStatus {
                name: status.name,
                current: resource_value(status.current_average_value, status.current_average_utilization),
            }),
            container_resource: metric.container_resource.map(|status| v2::ContainerResourceMetricStatus {
                name: status.name,
                current: resource_value(status.current_average_value, status.current_average_utilization),
                container: status.container,
            }),
            external: metric.external.map(|status| v2::ExternalMetricStatus {
                metric: MetricIdentifier { name: status.metric_name, selector: status.metric_selector },
                current: total_value(status.current_value, status.current_average_value),
            }),
        }
    }
}
