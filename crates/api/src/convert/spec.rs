//! Converts autoscalers of every API to a [`Spec`].

use engine::spec::{
    Aggregator, Behavior, FailurePolicy, Metric, MetricId, MetricSource, MetricTarget, ScalingPolicy,
    ScalingPolicyType, ScalingRules, SelectPolicy, SeriesAggregator, Spec, TargetRef, UtilizationBase,
};
use jiff::SignedDuration;

use crate::autoscaling::v2;
use crate::plimsoll::{self, Autoscaler};
use crate::selector::LabelSelector;

/// Converts an HPA with defaults.
pub fn spec_of_hpa(hpa: &v2::HorizontalPodAutoscaler) -> Spec {
    let spec = &hpa.spec;
    Spec {
        namespace: hpa.metadata.namespace.clone(),
        name: hpa.metadata.name.clone(),
        target: TargetRef {
            kind: spec.scale_target_ref.kind.clone(),
            name: spec.scale_target_ref.name.clone(),
        },
        min: spec.min_replicas.unwrap_or(1).into(),
        max: spec.max_replicas.into(),
        metrics: spec.metrics.iter().map(metric).collect(),
        behavior: spec.behavior.as_ref().map(behavior),
        aggregator: Aggregator::Max,
        zero_without_gate: false,
    }
}

/// Converts an Autoscaler with defaults: first its v2 part, then the fields that v2 does not have.
pub fn spec_of_autoscaler(autoscaler: &Autoscaler) -> Spec {
    let mut spec = spec_of_hpa(&plimsoll::v2_view(autoscaler.clone()));
    spec.zero_without_gate = true;
    spec.aggregator = match autoscaler.spec.replicas_aggregator.as_deref() {
        Some("min") => Aggregator::Min,
        Some("average") => Aggregator::Average,
        _ => Aggregator::Max,
    };
    for (metric, own) in spec.metrics.iter_mut().zip(&autoscaler.spec.metrics) {
        if let MetricSource::Resource { of, .. } | MetricSource::ContainerResource { of, .. } =
            &mut metric.source
        {
            *of = utilization_base(own);
        }
        metric.on_failure = own.on_failure.as_ref().map_or(FailurePolicy::Kubernetes, failure_policy);
        metric.max_age = own.max_age_seconds.map(|seconds| SignedDuration::from_secs(seconds.into()));
        metric.series = match own.series_aggregator.as_deref() {
            Some("max") => SeriesAggregator::Max,
            Some("min") => SeriesAggregator::Min,
            Some("average") => SeriesAggregator::Average,
            _ => SeriesAggregator::Sum,
        };
    }
    spec
}

fn utilization_base(metric: &plimsoll::MetricSpec) -> UtilizationBase {
    let targets =
        [metric.resource.as_ref().map(|r| &r.target), metric.container_resource.as_ref().map(|r| &r.target)];
    let limits = targets.into_iter().flatten().any(|t| t.percentage_of.as_deref() == Some("limits"));
    if limits { UtilizationBase::Limits } else { UtilizationBase::Requests }
}

fn failure_policy(policy: &plimsoll::FailurePolicy) -> FailurePolicy {
    match policy.policy.as_str() {
        "hold" => FailurePolicy::Hold,
        "ignore" => FailurePolicy::Ignore,
        "lastGood" => FailurePolicy::LastGood(SignedDuration::from_secs(i64::from(
            policy.for_seconds.unwrap_or_default(),
        ))),
        "static" => FailurePolicy::Static(policy.replicas.unwrap_or_default().into()),
        _ => FailurePolicy::Kubernetes,
    }
}

/// One metric. Which target field counts depends on the source (docs/spec/hpa.md 4.1 – 4.5).
pub(super) fn metric(spec: &v2::MetricSpec) -> Metric {
    let (source, target) = match spec.type_.as_str() {
        v2::RESOURCE => {
            let resource = spec.resource.clone().unwrap_or_default();
            (
                MetricSource::Resource { name: resource.name, of: UtilizationBase::Requests },
                per_pod_target(&resource.target),
            )
        }
        v2::CONTAINER_RESOURCE => {
            let v2::ContainerResourceMetricSource { name, target, container } =
                spec.container_resource.clone().unwrap_or_default();
            (
                MetricSource::ContainerResource { name, container, of: UtilizationBase::Requests },
                per_pod_target(&target),
            )
        }
        v2::PODS => {
            let pods = spec.pods.clone().unwrap_or_default();
            let target = pods
                .target
                .average_value
                .as_ref()
                .map_or(MetricTarget::Missing, |v| MetricTarget::AverageValue(v.into()));
            (MetricSource::Pods(metric_id(&pods.metric)), target)
        }
        v2::OBJECT => {
            let object = spec.object.clone().unwrap_or_default();
            let described = object.described_object;
            let source = MetricSource::Object {
                kind: described.kind,
                name: described.name,
                api_version: Some(described.api_version).filter(|v| !v.is_empty()),
                metric: metric_id(&object.metric),
            };
            (source, object_target(&object.target))
        }
        v2::EXTERNAL => {
            let external = spec.external.clone().unwrap_or_default();
            (MetricSource::External(metric_id(&external.metric)), external_target(&external.target))
        }
        other => (MetricSource::Unknown(other.to_owned()), MetricTarget::Missing),
    };
    Metric::new(source, target)
}

/// A metric name with its selector.
pub(super) fn metric_id(id: &v2::MetricIdentifier) -> MetricId {
    MetricId {
        name: id.name.clone(),
        shown_selector: id.selector.as_ref().map_or_else(|| "nil".to_owned(), LabelSelector::go_string),
        selector: LabelSelector::to_selector_or_nothing(id.selector.as_ref())
            .map(|selector| selector.to_string())
            .map_err(|error| error.to_string().into()),
    }
}

/// The target of a Resource metric. Its type is ignored; the field that is set counts.
fn per_pod_target(target: &v2::MetricTarget) -> MetricTarget {
    match (&target.average_value, target.average_utilization) {
        (Some(value), _) => MetricTarget::AverageValue(value.into()),
        (None, Some(percent)) => MetricTarget::Utilization(percent),
        (None, None) => MetricTarget::Missing,
    }
}

/// The target of an Object metric. Type and field must agree (T24).
fn object_target(target: &v2::MetricTarget) -> MetricTarget {
    match (target.type_.as_str(), &target.value, &target.average_value) {
        (v2::VALUE, Some(value), _) => MetricTarget::Value(value.into()),
        (v2::AVERAGE_VALUE, _, Some(value)) => MetricTarget::AverageValue(value.into()),
        _ => MetricTarget::Missing,
    }
}

/// The target of an External metric. The average takes precedence.
fn external_target(target: &v2::MetricTarget) -> MetricTarget {
    match (&target.average_value, &target.value) {
        (Some(value), _) => MetricTarget::AverageValue(value.into()),
        (None, Some(value)) => MetricTarget::Value(value.into()),
        (None, None) => MetricTarget::Missing,
    }
}

/// Scaling rules. A direction is absent only in objects that were stored without defaults; it allows no change.
pub(super) fn behavior(behavior: &v2::HorizontalPodAutoscalerBehavior) -> Behavior {
    let direction = |rules: Option<&v2::HPAScalingRules>| rules.map_or_else(no_rules, self::rules);
    Behavior { up: direction(behavior.scale_up.as_ref()), down: direction(behavior.scale_down.as_ref()) }
}

fn no_rules() -> ScalingRules {
    ScalingRules { window: None, select: SelectPolicy::Max, policies: Vec::new(), tolerance: None }
}

fn rules(rules: &v2::HPAScalingRules) -> ScalingRules {
    ScalingRules {
        window: rules.stabilization_window_seconds.map(|s| SignedDuration::from_secs(i64::from(s))),
        select: match rules.select_policy.as_deref() {
            Some("Min") => SelectPolicy::Min,
            Some("Disabled") => SelectPolicy::Disabled,
            _ => SelectPolicy::Max,
        },
        policies: rules.policies.iter().flatten().map(policy).collect(),
        tolerance: rules.tolerance.as_ref().map(quantity::Quantity::as_f64),
    }
}

fn policy(policy: &v2::HPAScalingPolicy) -> ScalingPolicy {
    ScalingPolicy {
        kind: if policy.type_ == "Pods" { ScalingPolicyType::Pods } else { ScalingPolicyType::Percent },
        value: policy.value,
        period: SignedDuration::from_secs(i64::from(policy.period_seconds)),
    }
}
