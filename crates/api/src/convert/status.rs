//! Converts the stored status to the engine's and back.

use engine::report::{Condition, CurrentMetricValue};
use engine::{Course, Decision, Status};

use crate::autoscaling::v2;

/// Converts a stored status. Current metrics are left out, since no decision reads them.
pub fn engine_status(status: &v2::HorizontalPodAutoscalerStatus) -> Status {
    Status {
        current_replicas: status.current_replicas.into(),
        desired_replicas: status.desired_replicas.into(),
        last_scale_time: status.last_scale_time,
        metrics: None,
        conditions: status.conditions.iter().map(condition_in).collect(),
    }
}

/// The values of the metrics in a stored status, in the order of the spec; `None` where a metric could not be read.
pub fn current_values(status: &v2::HorizontalPodAutoscalerStatus) -> Vec<Option<CurrentMetricValue>> {
    let value = |metric: &v2::MetricStatus| {
        let current = None
            .or(metric.resource.as_ref().map(|of| &of.current))
            .or(metric.container_resource.as_ref().map(|of| &of.current))
            .or(metric.pods.as_ref().map(|of| &of.current))
            .or(metric.object.as_ref().map(|of| &of.current))
            .or(metric.external.as_ref().map(|of| &of.current))?;
        Some(CurrentMetricValue {
            value: current.value.clone(),
            average_value: current.average_value.clone(),
            average_utilization: current.average_utilization,
        })
    };
    status.current_metrics.as_deref().unwrap_or_default().iter().map(value).collect()
}

/// The status to store after `decision` for an HPA with this spec and, if generations are observed (gate `HPAGeneration`),
/// this generation. A step that could not read the scale leaves generation and metrics as they were.
pub fn stored_status(
    spec: &v2::HorizontalPodAutoscalerSpec,
    generation: Option<i64>,
    decision: &Decision,
    old: &v2::HorizontalPodAutoscalerStatus,
) -> v2::HorizontalPodAutoscalerStatus {
    let mut new = hpa_status(spec, &decision.status);
    new.observed_generation = generation;
    if matches!(decision.course, Course::NoScale(_)) {
        new.observed_generation = old.observed_generation;
        new.current_metrics.clone_from(&old.current_metrics);
    }
    new
}

/// The status in the form of the API for an HPA with this spec.
pub fn hpa_status(
    spec: &v2::HorizontalPodAutoscalerSpec,
    status: &Status,
) -> v2::HorizontalPodAutoscalerStatus {
    v2::HorizontalPodAutoscalerStatus {
        observed_generation: None,
        last_scale_time: status.last_scale_time,
        current_replicas: status.current_replicas.get(),
        desired_replicas: status.desired_replicas.get(),
        current_metrics: status.metrics.as_ref().map(|slots| metrics_out(spec, slots)),
        conditions: status.conditions.iter().map(condition_out).collect(),
    }
}

/// Whether two statuses are equal, so that no write is needed (docs/spec/hpa.md 3.0). Quantities are compared by value;
/// null equals empty.
pub fn same_status<'a>(
    old: &'a v2::HorizontalPodAutoscalerStatus,
    new: &'a v2::HorizontalPodAutoscalerStatus,
) -> bool {
    let list =
        |status: &'a v2::HorizontalPodAutoscalerStatus| status.current_metrics.as_deref().unwrap_or_default();
    old.observed_generation == new.observed_generation
        && old.last_scale_time == new.last_scale_time
        && old.current_replicas == new.current_replicas
        && old.desired_replicas == new.desired_replicas
        && list(old) == list(new)
        && old.conditions == new.conditions
}

fn metrics_out(
    spec: &v2::HorizontalPodAutoscalerSpec,
    slots: &[Option<CurrentMetricValue>],
) -> Vec<v2::MetricStatus> {
    let none = v2::MetricSpec::default();
    slots
        .iter()
        .enumerate()
        .map(|(index, slot)| match slot {
            Some(reading) => metric_out(spec.metrics.get(index).unwrap_or(&none), reading),
            None => v2::MetricStatus::default(),
        })
        .collect()
}

fn metric_out(spec: &v2::MetricSpec, reading: &CurrentMetricValue) -> v2::MetricStatus {
    let current = v2::MetricValueStatus {
        value: reading.value.clone(),
        average_value: reading.average_value.clone(),
        average_utilization: reading.average_utilization,
    };
    let mut out = v2::MetricStatus { type_: spec.type_.clone(), ..v2::MetricStatus::default() };
    if let (v2::RESOURCE, Some(resource)) = (spec.type_.as_str(), &spec.resource) {
        out.resource = Some(v2::ResourceMetricStatus { name: resource.name.clone(), current });
    } else if let (v2::CONTAINER_RESOURCE, Some(resource)) = (spec.type_.as_str(), &spec.container_resource) {
        let (name, container) = (resource.name.clone(), resource.container.clone());
        out.container_resource = Some(v2::ContainerResourceMetricStatus { name, current, container });
    } else if let (v2::PODS, Some(pods)) = (spec.type_.as_str(), &spec.pods) {
        out.pods = Some(v2::PodsMetricStatus { metric: pods.metric.clone(), current });
    } else if let (v2::OBJECT, Some(object)) = (spec.type_.as_str(), &spec.object) {
        let (metric, described_object) = (object.metric.clone(), object.described_object.clone());
        out.object = Some(v2::ObjectMetricStatus { metric, current, described_object });
    } else if let (v2::EXTERNAL, Some(external)) = (spec.type_.as_str(), &spec.external) {
        out.external = Some(v2::ExternalMetricStatus { metric: external.metric.clone(), current });
    }
    out
}

fn condition_in(condition: &v2::HorizontalPodAutoscalerCondition) -> Condition {
    Condition {
        kind: condition.type_.clone().into(),
        status: condition.status.clone().into(),
        since: condition.last_transition_time,
        reason: condition.reason.clone().into(),
        message: condition.message.clone().into(),
        observed_generation: condition.observed_generation,
    }
}

fn condition_out(condition: &Condition) -> v2::HorizontalPodAutoscalerCondition {
    v2::HorizontalPodAutoscalerCondition {
        type_: condition.kind.clone().into_owned(),
        status: condition.status.clone().into_owned(),
        last_transition_time: condition.since,
        reason: condition.reason.clone().into_owned(),
        message: condition.message.clone().into_owned(),
        observed_generation: condition.observed_generation,
    }
}
