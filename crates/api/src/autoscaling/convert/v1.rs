//! v1, which has fields for CPU utilization only (docs/spec/hpa.md 1.8).

use super::annotations::{self, CONDITIONS, CURRENT_METRICS, METRICS};
use super::behavior;
use crate::autoscaling::defaults::{CPU_UTILIZATION, cpu_utilization};
use crate::autoscaling::{KIND, v1, v2, v2beta1 as flat};

/// Reads v1 with its annotations.
pub fn v1_to_v2(object: v1::HorizontalPodAutoscaler) -> v2::HorizontalPodAutoscaler {
    let v1::HorizontalPodAutoscaler { mut metadata, spec, status, .. } = object;
    let carried = &metadata.annotations;

    let mut metrics: Vec<v2::MetricSpec> =
        annotations::read::<Option<Vec<flat::MetricSpec>>>(carried, METRICS)
            .flatten()
            .unwrap_or_default()
            .into_iter()
            .map(Into::into)
            .collect();
    metrics.extend(spec.target_cpu_utilization_percentage.map(cpu_utilization));
    // The default waits until the annotation was seen.
    if metrics.is_empty() {
        metrics.push(cpu_utilization(CPU_UTILIZATION));
    }

    let statuses = annotations::read::<Option<Vec<flat::MetricStatus>>>(carried, CURRENT_METRICS);
    let current_metrics = match statuses {
        // The annotation replaces the field, since it also has the raw value.
        Some(statuses) => Some(statuses.unwrap_or_default().into_iter().map(Into::into).collect()),
        None => status.current_cpu_utilization_percentage.map(|percent| vec![cpu_status(percent)]),
    };
    let conditions =
        annotations::read::<Option<Vec<v2::HorizontalPodAutoscalerCondition>>>(carried, CONDITIONS)
            .flatten()
            .unwrap_or_default();
    let behavior = behavior::read(carried);

    annotations::strip(&mut metadata.annotations);
    v2::HorizontalPodAutoscaler {
        kind: KIND.to_owned(),
        api_version: v2::API_VERSION.to_owned(),
        metadata,
        spec: v2::HorizontalPodAutoscalerSpec {
            scale_target_ref: spec.scale_target_ref,
            min_replicas: spec.min_replicas,
            max_replicas: spec.max_replicas,
            metrics,
            behavior,
        },
        status: v2::HorizontalPodAutoscalerStatus {
            observed_generation: status.observed_generation,
            last_scale_time: status.last_scale_time,
            current_replicas: status.current_replicas,
            desired_replicas: status.desired_replicas,
            current_metrics,
            conditions,
        },
    }
}

/// Writes v1; what has no field there goes into annotations. CPU targets beyond the first are lost.
pub fn v2_to_v1(object: v2::HorizontalPodAutoscaler) -> v1::HorizontalPodAutoscaler {
    let v2::HorizontalPodAutoscaler { mut metadata, spec, status, .. } = object;
    let target = spec.metrics.iter().find_map(cpu_target);
    let statuses = status.current_metrics.unwrap_or_default();
    let current = statuses.iter().filter_map(current_cpu).next_back();

    let carried = &mut metadata.annotations;
    annotations::strip(carried);
    let others: Vec<flat::MetricSpec> =
        spec.metrics.into_iter().filter(|metric| cpu_target(metric).is_none()).map(Into::into).collect();
    if !others.is_empty() {
        annotations::write(carried, METRICS, &others);
    }
    let statuses: Vec<flat::MetricStatus> = statuses.into_iter().map(Into::into).collect();
    if !statuses.is_empty() {
        annotations::write(carried, CURRENT_METRICS, &statuses);
    }
    if let Some(behavior) = spec.behavior {
        behavior::write(carried, behavior);
    }
    if !status.conditions.is_empty() {
        annotations::write(carried, CONDITIONS, &status.conditions);
    }

    v1::HorizontalPodAutoscaler {
        kind: KIND.to_owned(),
        api_version: v1::API_VERSION.to_owned(),
        metadata,
        spec: v1::HorizontalPodAutoscalerSpec {
            scale_target_ref: spec.scale_target_ref,
            min_replicas: spec.min_replicas,
            max_replicas: spec.max_replicas,
            target_cpu_utilization_percentage: target,
        },
        status: v1::HorizontalPodAutoscalerStatus {
            observed_generation: status.observed_generation,
            last_scale_time: status.last_scale_time,
            current_replicas: status.current_replicas,
            desired_replicas: status.desired_replicas,
            current_cpu_utilization_percentage: current,
        },
    }
}

/// The percentage of a metric that v1 has a field for.
fn cpu_target(metric: &v2::MetricSpec) -> Option<i32> {
    let source =
        metric.resource.as_ref().filter(|source| metric.type_ == v2::RESOURCE && source.name == "cpu")?;
    source.target.average_utilization
}

fn current_cpu(metric: &v2::MetricStatus) -> Option<i32> {
    let status =
        metric.resource.as_ref().filter(|status| metric.type_ == v2::RESOURCE && status.name == "cpu")?;
    status.current.average_utilization
}

fn cpu_status(percent: i32) -> v2::MetricStatus {
    v2::MetricStatus {
        type_: v2::RESOURCE.to_owned(),
        resource: Some(v2::ResourceMetricStatus {
            name: "cpu".to_owned(),
            current: v2::MetricValueStatus { average_utilization: Some(percent), ..Default::default() },
        }),
        ..Default::default()
    }
}
