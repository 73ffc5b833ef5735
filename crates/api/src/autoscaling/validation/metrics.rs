//! Validation of metrics and their targets.

use super::reference::{ReferenceRules, reference_faults};
use crate::autoscaling::v2::{
    self, ContainerResourceMetricSource, ExternalMetricSource, MetricIdentifier, MetricSpec, MetricTarget,
    ObjectMetricSource, PodsMetricSource, ResourceMetricSource,
};
use crate::field::{AsJson, FieldError};
use crate::names;

const TYPES: [&str; 5] = [v2::CONTAINER_RESOURCE, v2::EXTERNAL, v2::OBJECT, v2::PODS, v2::RESOURCE];

/// Resource names without a prefix that quotas and containers accept.
const STANDARD_RESOURCES: [&str; 20] = [
    "cpu",
    "memory",
    "ephemeral-storage",
    "requests.cpu",
    "requests.memory",
    "requests.ephemeral-storage",
    "limits.cpu",
    "limits.memory",
    "limits.ephemeral-storage",
    "pods",
    "resourcequotas",
    "services",
    "replicationcontrollers",
    "secrets",
    "configmaps",
    "persistentvolumeclaims",
    "storage",
    "requests.storage",
    "services.nodeports",
    "services.loadbalancers",
];

pub(super) fn metrics_faults(
    metrics: &[MetricSpec],
    min_replicas: Option<i32>,
    described_object: ReferenceRules,
) -> Vec<FieldError> {
    let mut faults = Vec::new();
    for (i, metric) in metrics.iter().enumerate() {
        faults.extend(metric_faults(&format!("spec.metrics[{i}]"), metric, described_object));
    }
    let outside = |metric: &MetricSpec| metric.type_ == v2::OBJECT || metric.type_ == v2::EXTERNAL;
    if min_replicas == Some(0) && !metrics.iter().any(outside) {
        let detail =
            "must specify at least one Object or External metric to support scaling to zero replicas";
        faults.push(FieldError::forbidden("spec.metrics", detail));
    }
    faults
}

fn metric_faults(path: &str, metric: &MetricSpec, described_object: ReferenceRules) -> Vec<FieldError> {
    let mut faults = Vec::new();
    let type_ = metric.type_.as_str();
    let unknown = || FieldError::not_supported(format_args!("{path}.type"), AsJson(type_), &TYPES);
    if type_.is_empty() {
        faults.push(FieldError::required(format_args!("{path}.type"), "must specify a metric source type"));
    }
    if !TYPES.contains(&type_) {
        faults.push(unknown());
    }
    // Only the first source in this order is validated.
    if let Some(source) = &metric.object {
        faults.extend(object_faults(&format!("{path}.object"), source, described_object));
    } else if let Some(source) = &metric.external {
        faults.extend(external_faults(&format!("{path}.external"), source));
    } else if let Some(source) = &metric.pods {
        faults.extend(pods_faults(&format!("{path}.pods"), source));
    } else if let Some(source) = &metric.resource {
        faults.extend(resource_faults(&format!("{path}.resource"), source));
    } else if let Some(source) = &metric.container_resource {
        faults.extend(container_resource_faults(&format!("{path}.containerResource"), source));
    }

    // Sorted by field name. Kubernetes iterates over a map here, so its order is random.
    let sources = [
        (v2::CONTAINER_RESOURCE, "containerResource", metric.container_resource.is_some()),
        (v2::EXTERNAL, "external", metric.external.is_some()),
        (v2::OBJECT, "object", metric.object.is_some()),
        (v2::PODS, "pods", metric.pods.is_some()),
        (v2::RESOURCE, "resource", metric.resource.is_some()),
    ];
    match sources.iter().find(|(name, ..)| *name == type_) {
        None => faults.push(unknown()),
        Some((_, field, false)) => {
            let detail = "must populate information for the given metric source";
            faults.push(FieldError::required(format_args!("{path}.{field}"), detail));
        }
        Some(_) => {}
    }
    if sources.iter().filter(|(.., present)| *present).count() > 1 {
        for (_, field, _) in sources.iter().filter(|(name, _, present)| *present && *name != type_) {
            let detail = "must populate the given metric source only";
            faults.push(FieldError::forbidden(format_args!("{path}.{field}"), detail));
        }
    }
    faults
}

pub(crate) fn object_faults(
    path: &str,
    source: &ObjectMetricSource,
    rules: ReferenceRules,
) -> Vec<FieldError> {
    let mut faults = reference_faults(&format!("{path}.describedObject"), &source.described_object, rules);
    faults.extend(identifier_faults(path, &source.metric));
    faults.extend(target_faults(path, &source.target));
    if source.target.value.is_none() && source.target.average_value.is_none() {
        let detail = "must set either a target value or averageValue";
        faults.push(FieldError::required(format_args!("{path}.target.averageValue"), detail));
    }
    faults
}

pub(crate) fn external_faults(path: &str, source: &ExternalMetricSource) -> Vec<FieldError> {
    let mut faults = identifier_faults(path, &source.metric);
    faults.extend(target_faults(path, &source.target));
    match (&source.target.value, &source.target.average_value) {
        (None, None) => {
            let detail = "must set either a target value for metric or a per-pod target";
            faults.push(FieldError::required(format_args!("{path}.target.averageValue"), detail));
        }
        (Some(_), Some(_)) => {
            let detail = "may not set both a target value for metric and a per-pod target";
            faults.push(FieldError::forbidden(format_args!("{path}.target.value"), detail));
        }
        _ => {}
    }
    faults
}

pub(crate) fn pods_faults(path: &str, source: &PodsMetricSource) -> Vec<FieldError> {
    let mut faults = identifier_faults(path, &source.metric);
    faults.extend(target_faults(path, &source.target));
    if source.target.average_value.is_none() {
        let detail = "must specify a positive target averageValue";
        faults.push(FieldError::required(format_args!("{path}.target.averageValue"), detail));
    }
    faults
}

pub(crate) fn resource_faults(path: &str, source: &ResourceMetricSource) -> Vec<FieldError> {
    let mut faults = Vec::new();
    if source.name.is_empty() {
        faults.push(FieldError::required(format_args!("{path}.name"), "must specify a resource name"));
    }
    faults.extend(resource_target_faults(path, &source.target));
    faults
}

pub(crate) fn container_resource_faults(
    path: &str,
    source: &ContainerResourceMetricSource,
) -> Vec<FieldError> {
    let mut faults = Vec::new();
    if source.name.is_empty() {
        faults.push(FieldError::required(format_args!("{path}.name"), "must specify a resource name"));
    } else {
        faults.extend(container_resource_name_faults(&format!("{path}.name"), &source.name));
    }
    if source.container.is_empty() {
        faults.push(FieldError::required(format_args!("{path}.container"), "must specify a container"));
    } else {
        for wrong in names::dns_label_faults(&source.container) {
            faults.push(FieldError::invalid(format_args!("{path}.container"), &source.container, wrong));
        }
    }
    faults.extend(resource_target_faults(path, &source.target));
    faults
}

fn container_resource_name_faults(path: &str, name: &str) -> Vec<FieldError> {
    let invalid = |detail: &str| FieldError::invalid(path, AsJson(name), detail);
    let mut faults: Vec<FieldError> = names::label_key_faults(name)
        .into_iter()
        .map(|wrong| FieldError::invalid(path, name, wrong))
        .collect();
    if name.contains('/') {
        // Names under kubernetes.io are native; all others must also be valid quota names.
        let extended =
            !name.starts_with("requests.") && names::label_key_faults(&format!("requests.{name}")).is_empty();
        if !name.contains("kubernetes.io/") && !extended {
            faults.push(invalid("doesn't follow extended resource name standard"));
        }
        return faults;
    }
    let huge_pages = name.starts_with("hugepages-");
    let standard =
        STANDARD_RESOURCES.contains(&name) || huge_pages || name.starts_with("requests.hugepages-");
    if faults.is_empty() && !standard {
        faults.push(invalid("must be a standard resource type or fully qualified"));
    }
    if !huge_pages && !matches!(name, "cpu" | "memory" | "ephemeral-storage") {
        faults.push(invalid("must be a standard resource for containers"));
    }
    faults
}

fn resource_target_faults(path: &str, target: &MetricTarget) -> Vec<FieldError> {
    let mut faults = target_faults(path, target);
    match (target.average_utilization, &target.average_value) {
        (None, None) => {
            let detail = "must set either a target raw value or a target utilization";
            faults.push(FieldError::required(format_args!("{path}.target.averageUtilization"), detail));
        }
        (Some(_), Some(_)) => {
            let detail = "may not set both a target raw value and a target utilization";
            faults.push(FieldError::forbidden(format_args!("{path}.target.averageValue"), detail));
        }
        _ => {}
    }
    faults
}

/// The errors of `{path}.target` that apply to all sources.
pub(crate) fn target_faults(path: &str, target: &MetricTarget) -> Vec<FieldError> {
    let mut faults = Vec::new();
    if target.type_.is_empty() {
        faults.push(FieldError::required(
            format_args!("{path}.target.type"),
            "must specify a metric target type",
        ));
    }
    if !matches!(target.type_.as_str(), v2::UTILIZATION | v2::VALUE | v2::AVERAGE_VALUE) {
        let detail = "must be either Utilization, Value, or AverageValue";
        faults.push(FieldError::invalid(format_args!("{path}.target.type"), AsJson(&target.type_), detail));
    }
    for (field, value) in [("value", &target.value), ("averageValue", &target.average_value)] {
        if let Some(value) = value.as_ref().filter(|value| value.sign() <= 0) {
            faults.push(FieldError::invalid(
                format_args!("{path}.target.{field}"),
                AsJson(value),
                "must be positive",
            ));
        }
    }
    if let Some(utilization) = target.average_utilization.filter(|utilization| *utilization < 1) {
        let path = format!("{path}.target.averageUtilization");
        faults.push(FieldError::invalid(path, utilization, "must be greater than 0"));
    }
    faults
}

/// The errors of `{path}.metric`.
pub(crate) fn identifier_faults(path: &str, metric: &MetricIdentifier) -> Vec<FieldError> {
    if metric.name.is_empty() {
        return vec![FieldError::required(format_args!("{path}.metric.name"), "must specify a metric name")];
    }
    names::path_segment_faults(&metric.name)
        .into_iter()
        .map(|wrong| FieldError::invalid(format_args!("{path}.metric.name"), &metric.name, wrong))
        .collect()
}
