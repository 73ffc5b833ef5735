//! Validation of an Autoscaler: the rules of v2 for its fields, stricter ones for further fields.

use engine::profile::V1_36;

use super::{Autoscaler, AutoscalerSpec, FailurePolicy, METRIC, MetricSource, MetricSpec, ResourceTarget};
use crate::autoscaling::v2;
use crate::autoscaling::validation::{
    ReferenceRules, Rules, behavior_faults, bound_faults, container_resource_faults, external_faults,
    identifier_faults, object_faults, pods_faults, reference_faults, resource_faults, target_faults,
};
use crate::field::{AsJson, FieldError};
use crate::meta::validation as meta;
use crate::names;

const TYPES: [&str; 6] = [v2::CONTAINER_RESOURCE, v2::EXTERNAL, METRIC, v2::OBJECT, v2::PODS, v2::RESOURCE];

/// Validates a new Autoscaler.
pub fn validate_create(new: &Autoscaler) -> Vec<FieldError> {
    let mut faults = meta::validate_create(&new.metadata, names::subdomain_faults, &V1_36);
    faults.extend(spec_faults(&new.spec));
    faults
}

/// Validates an Autoscaler that replaces `old`.
pub fn validate_update(new: &Autoscaler, old: &Autoscaler) -> Vec<FieldError> {
    let mut faults = meta::validate_update(&new.metadata, &old.metadata, &V1_36);
    faults.extend(spec_faults(&new.spec));
    faults
}

fn spec_faults(spec: &AutoscalerSpec) -> Vec<FieldError> {
    let rules = Rules {
        min_replicas: 0,
        scale_target_ref: ReferenceRules {
            any_api_version: false,
            empty_group: spec.scale_target_ref.kind == "ReplicationController",
        },
        described_object: ReferenceRules { any_api_version: false, empty_group: true },
    };
    let mut faults = bound_faults(spec.min_replicas, spec.max_replicas, rules.min_replicas);
    faults.extend(reference_faults("spec.scaleTargetRef", &spec.scale_target_ref, rules.scale_target_ref));
    for (i, metric) in spec.metrics.iter().enumerate() {
        let path = format!("spec.metrics[{i}]");
        faults.extend(metric_faults(&path, metric, rules.described_object));
        if let Some(policy) = &metric.on_failure {
            faults.extend(failure_faults(&format!("{path}.onFailure"), policy, spec.max_replicas));
        }
        faults.extend(sample_faults(&path, metric));
    }
    if spec.min_replicas == Some(0) && !spec.metrics.iter().any(works_without_pods) {
        let detail = "must specify at least one metric that is not measured on the pods to support scaling to zero \
                      replicas";
        faults.push(FieldError::forbidden("spec.metrics", detail));
    }
    if let Some(behavior) = &spec.behavior {
        faults.extend(behavior_faults(behavior));
    }
    faults.extend(word_fault(
        "spec.replicasAggregator",
        spec.replicas_aggregator.as_deref(),
        &["average", "max", "min"],
    ));
    if let Some(period) = spec.sync_period_seconds.filter(|period| *period < 1) {
        faults.push(FieldError::invalid(
            "spec.syncPeriodSeconds",
            period,
            "must be greater than or equal to 1",
        ));
    }
    faults
}

/// Requires a metric that exists without pods if `minReplicas` is 0. Otherwise the target could never be scaled up again.
fn works_without_pods(metric: &MetricSpec) -> bool {
    let on_pods = |source: &MetricSource| source.origin() == Some("pod");
    match metric.type_.as_str() {
        v2::OBJECT | v2::EXTERNAL => true,
        METRIC => metric.metric.as_ref().is_some_and(|source| !on_pods(source)),
        _ => false,
    }
}

fn metric_faults(path: &str, metric: &MetricSpec, described_object: ReferenceRules) -> Vec<FieldError> {
    let mut faults = Vec::new();
    let type_ = metric.type_.as_str();
    let sources = [
        (v2::CONTAINER_RESOURCE, "containerResource", metric.container_resource.is_some()),
        (v2::EXTERNAL, "external", metric.external.is_some()),
        (METRIC, "metric", metric.metric.is_some()),
        (v2::OBJECT, "object", metric.object.is_some()),
        (v2::PODS, "pods", metric.pods.is_some()),
        (v2::RESOURCE, "resource", metric.resource.is_some()),
    ];
    let Some((_, field, present)) = sources.iter().find(|(name, ..)| *name == type_) else {
        let path = format!("{path}.type");
        if type_.is_empty() {
            return vec![FieldError::required(path, "must specify a metric source type")];
        }
        return vec![FieldError::not_supported(path, AsJson(type_), &TYPES)];
    };
    if !present {
        let detail = "must populate information for the given metric source";
        faults.push(FieldError::required(format_args!("{path}.{field}"), detail));
    }
    for (_, other, _) in sources.iter().filter(|(name, _, present)| *present && *name != type_) {
        let detail = "must populate the given metric source only";
        faults.push(FieldError::forbidden(format_args!("{path}.{other}"), detail));
    }
    let path = format!("{path}.{field}");
    if let Some(source) = metric.object.as_ref().filter(|_| type_ == v2::OBJECT) {
        faults.extend(object_faults(&path, source, described_object));
    }
    if let Some(source) = metric.external.as_ref().filter(|_| type_ == v2::EXTERNAL) {
        faults.extend(external_faults(&path, source));
    }
    if let Some(source) = metric.pods.as_ref().filter(|_| type_ == v2::PODS) {
        faults.extend(pods_faults(&path, source));
    }
    if let Some(source) = metric.resource.as_ref().filter(|_| type_ == v2::RESOURCE) {
        faults.extend(resource_faults(&path, &source.clone().into()));
        faults.extend(percentage_faults(&path, &source.target));
    }
    if let Some(source) = metric.container_resource.as_ref().filter(|_| type_ == v2::CONTAINER_RESOURCE) {
        faults.extend(container_resource_faults(&path, &source.clone().into()));
        faults.extend(percentage_faults(&path, &source.target));
    }
    if let Some(source) = metric.metric.as_ref().filter(|_| type_ == METRIC) {
        faults.extend(source_faults(&path, source, described_object));
    }
    faults
}

fn percentage_faults(path: &str, target: &ResourceTarget) -> Vec<FieldError> {
    let path = format!("{path}.target.percentageOf");
    let mut faults: Vec<FieldError> =
        word_fault(&path, target.percentage_of.as_deref(), &["limits", "requests"]).into_iter().collect();
    if target.percentage_of.is_some() && target.average_utilization.is_none() {
        faults.push(FieldError::forbidden(path, "may only be set together with averageUtilization"));
    }
    faults
}

fn source_faults(path: &str, source: &MetricSource, described_object: ReferenceRules) -> Vec<FieldError> {
    let mut faults = identifier_faults(path, &source.metric);
    let from = source.from.clone().unwrap_or_default();
    match (&from.current, &from.object) {
        (None, None) if source.from.is_some() => {
            faults
                .push(FieldError::required(format_args!("{path}.from"), "must set either current or object"));
        }
        (Some(_), Some(_)) => {
            let detail = "may not set both current and object";
            faults.push(FieldError::forbidden(format_args!("{path}.from.object"), detail));
        }
        _ => {}
    }
    let places = ["namespace", "pod", "target"];
    faults.extend(word_fault(&format!("{path}.from.current"), from.current.as_deref(), &places));
    if let Some(object) = &from.object {
        faults.extend(reference_faults(&format!("{path}.from.object"), object, described_object));
    }

    let target = &source.target;
    let (value, average) = (target.value.is_some(), target.average_value.is_some());
    let at = |field: &str| format!("{path}.target.{field}");
    if !value && !average {
        faults.push(FieldError::required(at("averageValue"), "must set either value or averageValue"));
        return faults;
    }
    if value && average {
        faults.push(FieldError::forbidden(at("value"), "may not set both value and averageValue"));
        return faults;
    }
    faults.extend(target_faults(path, target));
    if target.average_utilization.is_some() {
        let detail = "only resources have requests to be a percentage of";
        faults.push(FieldError::forbidden(at("averageUtilization"), detail));
    }
    if value && source.origin() == Some("pod") {
        let detail = "a metric of each pod has no total; set averageValue";
        faults.push(FieldError::forbidden(at("value"), detail));
    }
    let agrees = target.type_ == if value { v2::VALUE } else { v2::AVERAGE_VALUE };
    if !agrees && matches!(target.type_.as_str(), v2::UTILIZATION | v2::VALUE | v2::AVERAGE_VALUE) {
        let detail = if value {
            "must be Value when value is set"
        } else {
            "must be AverageValue when averageValue is set"
        };
        faults.push(FieldError::invalid(at("type"), AsJson(&target.type_), detail));
    }
    faults
}

fn failure_faults(path: &str, failure: &FailurePolicy, max_replicas: i32) -> Vec<FieldError> {
    let mut faults = Vec::new();
    let policy = failure.policy.as_str();
    if policy.is_empty() {
        faults.push(FieldError::required(format_args!("{path}.policy"), "must specify a failure policy"));
    } else {
        let known = ["hold", "ignore", "lastGood", "static"];
        faults.extend(word_fault(&format!("{path}.policy"), Some(policy), &known));
    }
    let seconds = format!("{path}.forSeconds");
    match failure.for_seconds {
        None if policy == "lastGood" => {
            faults.push(FieldError::required(seconds, "must say how long the last good value counts"));
        }
        Some(_) if policy != "lastGood" => {
            faults.push(FieldError::forbidden(seconds, "may only be set with the policy lastGood"));
        }
        Some(time) if time < 1 => {
            faults.push(FieldError::invalid(seconds, time, "must be greater than or equal to 1"));
        }
        _ => {}
    }
    let replicas = format!("{path}.replicas");
    match failure.replicas {
        None if policy == "static" => {
            faults.push(FieldError::required(replicas, "must say how many replicas"));
        }
        Some(_) if policy != "static" => {
            faults.push(FieldError::forbidden(replicas, "may only be set with the policy static"));
        }
        Some(count) if count < 0 => {
            faults.push(FieldError::invalid(replicas, count, "must be greater than or equal to 0"));
        }
        Some(count) if count > max_replicas => {
            faults.push(FieldError::invalid(replicas, count, "must be less than or equal to `maxReplicas`"));
        }
        _ => {}
    }
    faults
}

/// Validates how samples are read: their age, and how series are combined.
fn sample_faults(path: &str, metric: &MetricSpec) -> Vec<FieldError> {
    let mut faults = Vec::new();
    if let Some(seconds) = metric.max_age_seconds.filter(|seconds| *seconds < 1) {
        let path = format!("{path}.maxAgeSeconds");
        faults.push(FieldError::invalid(path, seconds, "must be greater than or equal to 1"));
    }
    let path = format!("{path}.seriesAggregator");
    let known = ["average", "max", "min", "sum"];
    faults.extend(word_fault(&path, metric.series_aggregator.as_deref(), &known));
    if metric.series_aggregator.is_some() && metric.type_ != v2::EXTERNAL {
        faults.push(FieldError::forbidden(path, "may only be set with the type External"));
    }
    faults
}

fn word_fault(path: &str, word: Option<&str>, known: &[&str]) -> Option<FieldError> {
    let word = word.filter(|word| !known.contains(word))?;
    Some(FieldError::not_supported(path, AsJson(word), known))
}
