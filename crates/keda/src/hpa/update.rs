//! Whether an existing HPA must be updated.

use api::autoscaling::defaults::Defaults as _;
use api::autoscaling::v2::{
    CrossVersionObjectReference, ExternalMetricSource, HorizontalPodAutoscaler,
    HorizontalPodAutoscalerBehavior, HorizontalPodAutoscalerSpec, MetricSpec, MetricTarget,
};
use api::map::StringMap;
use api::meta::ObjectMeta;
use api::provider::Compat;

/// Whether the existing HPA differs from the desired one. Additions by others are kept as long as
/// nothing else differs.
pub fn needs_update(
    found: &HorizontalPodAutoscaler,
    wanted: &HorizontalPodAutoscaler,
    compat: Compat,
) -> bool {
    found.spec.metrics.len() != wanted.spec.metrics.len()
        || behavior(found, compat) != behavior(wanted, compat)
        || !spec_follows(&wanted.spec, &found.spec)
        || !metadata_follows(&wanted.metadata, &found.metadata)
}

fn metadata_follows(wanted: &ObjectMeta, found: &ObjectMeta) -> bool {
    contains(&found.labels, &wanted.labels)
        && contains(&found.annotations, &wanted.annotations)
        && (!wanted.annotations.is_empty() || found.annotations.is_empty())
}

/// The behavior with defaults, as the API server stores it. KEDA compares it without defaults, so it updates repeatedly.
fn behavior(hpa: &HorizontalPodAutoscaler, compat: Compat) -> Option<HorizontalPodAutoscalerBehavior> {
    let mut behavior = hpa.spec.behavior.clone();
    if let Some(behavior) = &mut behavior
        && !compat.is_strict()
    {
        behavior.set_defaults();
    }
    behavior
}

fn contains(all: &StringMap, some: &StringMap) -> bool {
    some.iter().all(|(key, value)| all.get(key) == Some(value))
}

/// Whether all desired fields are equal; unset fields match anything.
fn spec_follows(wanted: &HorizontalPodAutoscalerSpec, found: &HorizontalPodAutoscalerSpec) -> bool {
    let metrics = wanted.metrics.iter().zip(&found.metrics);
    reference_follows(&wanted.scale_target_ref, &found.scale_target_ref)
        && wanted.min_replicas.is_none_or(|min| min == 0 || found.min_replicas == Some(min))
        && (wanted.max_replicas == 0 || wanted.max_replicas == found.max_replicas)
        && metrics.into_iter().all(|(wanted, found)| metric_follows(wanted, found))
}

fn reference_follows(wanted: &CrossVersionObjectReference, found: &CrossVersionObjectReference) -> bool {
    text_follows(&wanted.kind, &found.kind)
        && text_follows(&wanted.name, &found.name)
        && text_follows(&wanted.api_version, &found.api_version)
}

fn text_follows(wanted: &str, found: &str) -> bool {
    wanted.is_empty() || wanted == found
}

fn metric_follows(wanted: &MetricSpec, found: &MetricSpec) -> bool {
    let resource = part_follows(wanted.resource.as_ref(), found.resource.as_ref(), |wanted, found| {
        text_follows(&wanted.name, &found.name) && target_follows(&wanted.target, &found.target)
    });
    let container = part_follows(
        wanted.container_resource.as_ref(),
        found.container_resource.as_ref(),
        |wanted, found| {
            text_follows(&wanted.name, &found.name)
                && text_follows(&wanted.container, &found.container)
                && target_follows(&wanted.target, &found.target)
        },
    );
    text_follows(&wanted.type_, &found.type_)
        && resource
        && container
        && part_follows(wanted.external.as_ref(), found.external.as_ref(), external_follows)
}

fn external_follows(wanted: &ExternalMetricSource, found: &ExternalMetricSource) -> bool {
    let (one, other) = (wanted.metric.selector.as_ref(), found.metric.selector.as_ref());
    text_follows(&wanted.metric.name, &found.metric.name)
        && part_follows(one, other, |wanted, found| contains(&found.match_labels, &wanted.match_labels))
        && target_follows(&wanted.target, &found.target)
}

fn target_follows(wanted: &MetricTarget, found: &MetricTarget) -> bool {
    let utilization = wanted.average_utilization;
    text_follows(&wanted.type_, &found.type_)
        && part_follows(wanted.value.as_ref(), found.value.as_ref(), PartialEq::eq)
        && part_follows(wanted.average_value.as_ref(), found.average_value.as_ref(), PartialEq::eq)
        && utilization.is_none_or(|percent| percent == 0 || found.average_utilization == Some(percent))
}

fn part_follows<T>(wanted: Option<&T>, found: Option<&T>, follows: impl Fn(&T, &T) -> bool) -> bool {
    match (wanted, found) {
        (None, _) => true,
        (Some(_), None) => false,
        (Some(wanted), Some(found)) => follows(wanted, found),
    }
}
