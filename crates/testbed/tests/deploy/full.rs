//! An Autoscaler in which every field is set. Every struct lists all its fields, so that the test does not compile without a new field, and
//! fails until the field is in the definition.

use api::autoscaling::v2::{
    ContainerResourceMetricStatus, CrossVersionObjectReference, ExternalMetricSource, ExternalMetricStatus,
    HPAScalingPolicy, HPAScalingRules, HorizontalPodAutoscalerBehavior, HorizontalPodAutoscalerCondition,
    HorizontalPodAutoscalerStatus, MetricIdentifier, MetricStatus, MetricTarget, MetricValueStatus,
    ObjectMetricSource, ObjectMetricStatus, PodsMetricSource, PodsMetricStatus, ResourceMetricStatus,
};
use api::plimsoll::{
    API_VERSION, Autoscaler, AutoscalerSpec, ContainerResourceMetricSource, FailurePolicy, KIND,
    MetricOrigin, MetricSource, MetricSpec, ResourceMetricSource, ResourceTarget,
};
use api::selector::{LabelSelector, LabelSelectorRequirement};
use jiff::Timestamp;

fn text(text: &str) -> String {
    text.to_owned()
}

pub(crate) fn autoscaler() -> Autoscaler {
    Autoscaler {
        kind: text(KIND),
        api_version: text(API_VERSION),
        metadata: api::meta::ObjectMeta { name: text("full"), ..Default::default() },
        spec: AutoscalerSpec {
            scale_target_ref: reference("apps/v1", "Deployment"),
            min_replicas: Some(2),
            max_replicas: 9,
            metrics: metrics(),
            behavior: Some(HorizontalPodAutoscalerBehavior {
                scale_up: Some(rules("Max", "Pods")),
                scale_down: Some(rules("Min", "Percent")),
            }),
            replicas_aggregator: Some(text("average")),
            sync_period_seconds: Some(5),
            dry_run: true,
        },
        status: HorizontalPodAutoscalerStatus {
            observed_generation: Some(1),
            last_scale_time: Some(Timestamp::UNIX_EPOCH),
            current_replicas: 3,
            desired_replicas: 4,
            current_metrics: Some(measurements()),
            conditions: vec![HorizontalPodAutoscalerCondition {
                type_: text("AbleToScale"),
                status: text("True"),
                last_transition_time: Some(Timestamp::UNIX_EPOCH),
                reason: text("ReadyForNewScale"),
                message: text("recommended size matches current size"),
                // The CRD of Autoscalers has no generation of conditions: nothing sets one.
                observed_generation: None,
            }],
        },
    }
}

/// The status that is written when no metric could be read.
pub(crate) fn blind() -> HorizontalPodAutoscalerStatus {
    let mut status = autoscaler().status;
    status.current_metrics = None;
    status.conditions.iter_mut().for_each(|condition| condition.last_transition_time = None);
    status
}

fn reference(version: &str, kind: &str) -> CrossVersionObjectReference {
    CrossVersionObjectReference { kind: text(kind), name: text("front"), api_version: text(version) }
}

fn rules(select: &str, kind: &str) -> HPAScalingRules {
    HPAScalingRules {
        stabilization_window_seconds: Some(60),
        select_policy: Some(text(select)),
        policies: Some(vec![HPAScalingPolicy { type_: text(kind), value: 3, period_seconds: 30 }]),
        tolerance: Some("50m".parse().unwrap()),
    }
}

fn identifier() -> MetricIdentifier {
    let values = vec![text("a"), text("b")];
    let condition = LabelSelectorRequirement { key: text("queue"), operator: text("In"), values };
    MetricIdentifier {
        name: text("length"),
        selector: Some(LabelSelector {
            match_labels: api::map::StringMap::from([(text("app"), text("web"))]),
            match_expressions: vec![condition],
        }),
    }
}

fn target(kind: &str) -> MetricTarget {
    MetricTarget {
        type_: text(kind),
        value: Some("1k".parse().unwrap()),
        average_value: Some("1500m".parse().unwrap()),
        average_utilization: Some(70),
    }
}

fn resource_target() -> ResourceTarget {
    ResourceTarget {
        type_: text("Utilization"),
        value: Some("2".parse().unwrap()),
        average_value: Some("64Mi".parse().unwrap()),
        average_utilization: Some(60),
        percentage_of: Some(text("limits")),
    }
}

/// A metric without a source.
fn metric(kind: &str) -> MetricSpec {
    MetricSpec {
        type_: text(kind),
        object: None,
        pods: None,
        resource: None,
        container_resource: None,
        external: None,
        metric: None,
        on_failure: None,
        max_age_seconds: None,
        series_aggregator: None,
    }
}

fn anywhere(from: MetricOrigin, target: MetricTarget) -> MetricSpec {
    let source = MetricSource { metric: identifier(), from: Some(from), target };
    MetricSpec { metric: Some(source), ..metric("Metric") }
}

fn metrics() -> Vec<MetricSpec> {
    let policy = |policy: &str, for_seconds, replicas| {
        Some(FailurePolicy { policy: text(policy), for_seconds, replicas })
    };
    let resource = ResourceMetricSource { name: text("cpu"), target: resource_target() };
    let container = ContainerResourceMetricSource {
        name: text("memory"),
        target: resource_target(),
        container: text("app"),
    };
    let object = ObjectMetricSource {
        described_object: reference("v1", "Service"),
        target: target("Value"),
        metric: identifier(),
    };
    let pods = PodsMetricSource { metric: identifier(), target: target("AverageValue") };
    let external = ExternalMetricSource { metric: identifier(), target: target("AverageValue") };
    let total = MetricTarget { average_value: None, average_utilization: None, ..target("Value") };
    let mean = MetricTarget { value: None, average_utilization: None, ..target("AverageValue") };
    let current = MetricOrigin { current: Some(text("namespace")), object: None };
    let other = MetricOrigin { current: None, object: Some(reference("v1", "Service")) };
    vec![
        MetricSpec {
            resource: Some(resource),
            on_failure: policy("lastGood", Some(300), None),
            ..metric("Resource")
        },
        MetricSpec {
            container_resource: Some(container),
            on_failure: policy("static", None, Some(3)),
            ..metric("ContainerResource")
        },
        MetricSpec { object: Some(object), on_failure: policy("hold", None, None), ..metric("Object") },
        MetricSpec { pods: Some(pods), on_failure: policy("ignore", None, None), ..metric("Pods") },
        MetricSpec {
            external: Some(external),
            max_age_seconds: Some(90),
            series_aggregator: Some(text("average")),
            ..metric("External")
        },
        anywhere(current, total),
        anywhere(other, mean),
    ]
}

fn measurements() -> Vec<MetricStatus> {
    let current = || MetricValueStatus {
        value: Some("-5m".parse().unwrap()),
        average_value: Some("1Gi".parse().unwrap()),
        average_utilization: Some(12),
    };
    let unread = || MetricStatus {
        type_: String::new(),
        object: None,
        pods: None,
        resource: None,
        container_resource: None,
        external: None,
    };
    let object = ObjectMetricStatus {
        metric: identifier(),
        current: current(),
        described_object: reference("v1", "Service"),
    };
    let pods = PodsMetricStatus { metric: identifier(), current: current() };
    let resource = ResourceMetricStatus { name: text("cpu"), current: current() };
    let container =
        ContainerResourceMetricStatus { name: text("cpu"), current: current(), container: text("app") };
    let external = ExternalMetricStatus { metric: identifier(), current: current() };
    vec![
        unread(),
        MetricStatus { type_: text("Object"), object: Some(object), ..unread() },
        MetricStatus { type_: text("Pods"), pods: Some(pods), ..unread() },
        MetricStatus { type_: text("Resource"), resource: Some(resource), ..unread() },
        MetricStatus { type_: text("ContainerResource"), container_resource: Some(container), ..unread() },
        MetricStatus { type_: text("External"), external: Some(external), ..unread() },
    ]
}
