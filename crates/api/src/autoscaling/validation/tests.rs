use engine::KubernetesVersion::{V1_36, V1_37};
use serde_json::{Value, json};

use super::*;
use crate::autoscaling::{Defaults as _, Version, Versioned, strategy};

fn object(spec: &Value) -> HorizontalPodAutoscaler {
    let mut spec = spec.clone();
    let defaults = json!({
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}, "maxReplicas": 10
    });
    for (key, value) in defaults.as_object().unwrap() {
        spec.as_object_mut().unwrap().entry(key).or_insert(value.clone());
    }
    let metadata = json!({"name": "web", "namespace": "shop", "resourceVersion": "1"});
    let mut object = Versioned::decode_as(&json!({"metadata": metadata, "spec": spec}), Version::V2).unwrap();
    object.set_defaults();
    object.into_v2().unwrap()
}

fn faults(spec: &Value) -> Vec<String> {
    texts(&validate_create(&object(spec), FeatureGates::default()))
}

fn texts(faults: &[FieldError]) -> Vec<String> {
    faults.iter().map(ToString::to_string).collect()
}

/// The faults of one metric, without the path to it.
fn metric(metric: &Value) -> Vec<String> {
    faults(&json!({"metrics": [metric]})).iter().map(|text| text.replace("spec.metrics[0].", "")).collect()
}

#[test]
fn replica_bounds_are_validated() {
    assert!(faults(&json!({})).is_empty());
    assert_eq!(
        faults(&json!({"maxReplicas": 0})),
        [
            "spec.maxReplicas: Required value: must be set and greater than 0",
            "spec.maxReplicas: Invalid value: 0: must be greater than or equal to `minReplicas`",
        ]
    );
    assert_eq!(
        faults(&json!({"minReplicas": -1, "maxReplicas": -2})),
        [
            "spec.minReplicas: Invalid value: -1: must be greater than or equal to 1",
            "spec.maxReplicas: Invalid value: -2: must be greater than or equal to 1",
            "spec.maxReplicas: Invalid value: -2: must be greater than or equal to `minReplicas`",
        ]
    );
}

#[test]
fn zero_replicas() {
    let spec = json!({"minReplicas": 0});
    let need = "spec.metrics: Forbidden: must specify at least one Object or External metric to support scaling to zero \
                replicas";
    assert_eq!(
        faults(&spec),
        ["spec.minReplicas: Invalid value: 0: must be greater than or equal to 1", need]
    );
    let gates = FeatureGates { scale_to_zero: true, ..Default::default() };
    assert_eq!(texts(&validate_create(&object(&spec), gates)), [need]);
    // What is stored stays allowed.
    let old = object(&spec);
    assert_eq!(texts(&validate_update(&object(&spec), &old, FeatureGates::default())), [need]);
}

#[test]
fn scale_target_references_are_validated() {
    let reference = |api_version: &str, kind: &str, name: &str| {
        faults(&json!({"scaleTargetRef": {"apiVersion": api_version, "kind": kind, "name": name}}))
    };
    assert!(reference("v1", "ReplicationController", "rc").is_empty());
    assert!(reference("example.com/", "Widget", "w").is_empty());
    assert_eq!(
        reference("v1", "..", ""),
        [
            "spec.scaleTargetRef.kind: Invalid value: \"..\": may not be '..'",
            "spec.scaleTargetRef.name: Required value",
            "spec.scaleTargetRef.apiVersion: Invalid value: \"v1\": apiVersion must specify API group",
        ]
    );
    assert_eq!(
        reference("a/b/c", "Deployment", "a/b%"),
        [
            "spec.scaleTargetRef.name: Invalid value: \"a/b%\": may not contain '/'",
            "spec.scaleTargetRef.name: Invalid value: \"a/b%\": may not contain '%'",
            "spec.scaleTargetRef.apiVersion: Invalid value: \"a/b/c\": unexpected GroupVersion string: a/b/c",
        ]
    );
    // An unchanged reference is not validated again.
    let odd = object(&json!({"scaleTargetRef": {"apiVersion": "v1", "kind": "Deployment", "name": "web"}}));
    assert!(validate_update(&odd, &odd, FeatureGates::default()).is_empty());
}

#[test]
fn invalid_described_objects_stay_allowed_on_update() {
    let spec = json!({"metrics": [{"type": "Object", "object": {
        "describedObject": {"apiVersion": "a/b/c", "kind": "Service", "name": "s"},
        "metric": {"name": "m"}, "target": {"type": "Value", "value": "1"}}}]});
    assert_eq!(faults(&spec).len(), 1);
    let broken = object(&spec);
    assert!(validate_update(&broken, &broken, FeatureGates::default()).is_empty());
    assert_eq!(validate_update(&broken, &object(&json!({})), FeatureGates::default()).len(), 1);
}

#[test]
fn metrics_have_only_the_source_of_their_type() {
    assert_eq!(
        metric(&json!({})),
        [
            "type: Required value: must specify a metric source type",
            "type: Unsupported value: \"\": supported values: \"ContainerResource\", \"External\", \"Object\", \
             \"Pods\", \"Resource\"",
            "type: Unsupported value: \"\": supported values: \"ContainerResource\", \"External\", \"Object\", \
             \"Pods\", \"Resource\"",
        ]
    );
    let pods = json!({"metric": {"name": "m"}, "target": {"type": "AverageValue", "averageValue": "1"}});
    assert!(metric(&json!({"type": "Pods", "pods": pods})).is_empty());
    assert_eq!(
        metric(&json!({"type": "External", "pods": pods})),
        ["external: Required value: must populate information for the given metric source"]
    );
    let cpu = json!({"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 5}});
    assert_eq!(
        metric(&json!({"type": "Pods", "pods": pods, "resource": cpu, "containerResource": {}})),
        [
            "containerResource: Forbidden: must populate the given metric source only",
            "resource: Forbidden: must populate the given metric source only",
        ]
    );
}

#[test]
fn targets_are_validated_by_type_of_metric() {
    let target = |type_: &str, source: &str, target: &Value| {
        let body = json!({"metric": {"name": "m"}, "name": "cpu", "container": "app", "target": target,
                          "describedObject": {"kind": "Service", "name": "s"}});
        metric(&json!({"type": type_, source: body}))
    };
    let none = json!({"type": "Value"});
    let both = json!({"type": "Value", "value": "1", "averageValue": "2"});
    let cases = [
        (
            "Object",
            "object",
            &none,
            "object.target.averageValue: Required value: must set either a target value or averageValue",
        ),
        (
            "External",
            "external",
            &none,
            "external.target.averageValue: Required value: must set either a target value for metric or a per-pod target",
        ),
        (
            "External",
            "external",
            &both,
            "external.target.value: Forbidden: may not set both a target value for metric and a per-pod target",
        ),
        (
            "Pods",
            "pods",
            &none,
            "pods.target.averageValue: Required value: must specify a positive target averageValue",
        ),
        (
            "Resource",
            "resource",
            &none,
            "resource.target.averageUtilization: Required value: must set either a target raw value or a target utilization",
        ),
        (
            "ContainerResource",
            "containerResource",
            &none,
            "containerResource.target.averageUtilization: Required value: must set either a target raw value or a target utilization",
        ),
    ];
    for (type_, source, value, expected) in cases {
        assert_eq!(target(type_, source, value), [expected]);
    }
    assert!(target("Object", "object", &both).is_empty());
    assert_eq!(
        target(
            "Resource",
            "resource",
            &json!({"type": "<", "value": "0", "averageValue": "-1m", "averageUtilization": 0})
        ),
        [
            "resource.target.type: Invalid value: \"\\u003c\": must be either Utilization, Value, or AverageValue",
            "resource.target.value: Invalid value: \"0\": must be positive",
            "resource.target.averageValue: Invalid value: \"-1m\": must be positive",
            "resource.target.averageUtilization: Invalid value: 0: must be greater than 0",
            "resource.target.averageValue: Forbidden: may not set both a target raw value and a target utilization",
        ]
    );
}

#[test]
fn container_resource_names() {
    let name = |name: &str| {
        let source = json!({"name": name, "container": "a.b", "target": {"type": "Utilization", "averageUtilization": 5}});
        let mut texts = metric(&json!({"type": "ContainerResource", "containerResource": source}));
        assert_eq!(
            texts.pop().unwrap(),
            "containerResource.container: Invalid value: \"a.b\": must not contain dots"
        );
        texts
    };
    for good in ["cpu", "memory", "ephemeral-storage", "hugepages-2Mi", "nvidia.com/gpu", "x.kubernetes.io/y"]
    {
        assert!(name(good).is_empty(), "{good}");
    }
    assert_eq!(name("pods").len(), 1);
    assert_eq!(
        name("foo"),
        [
            "containerResource.name: Invalid value: \"foo\": must be a standard resource type or fully qualified",
            "containerResource.name: Invalid value: \"foo\": must be a standard resource for containers",
        ]
    );
    assert_eq!(
        name("requests.example.com/x"),
        [
            "containerResource.name: Invalid value: \"requests.example.com/x\": doesn't follow extended resource name standard"
        ]
    );
}

#[test]
fn behavior_rules_are_validated() {
    let rules = json!({"stabilizationWindowSeconds": 3601, "selectPolicy": "max", "tolerance": "-1",
                       "policies": [{"type": "pods", "value": 0, "periodSeconds": 1801}]});
    assert_eq!(
        faults(&json!({"behavior": {"scaleDown": rules}})),
        [
            "spec.behavior.scaleDown.stabilizationWindowSeconds: Invalid value: 3601: must be less than or equal to 3600",
            "spec.behavior.scaleDown.selectPolicy: Unsupported value: \"max\": supported values: \"Disabled\", \"Max\", \
             \"Min\"",
            "spec.behavior.scaleDown.policies[0].type: Unsupported value: \"pods\": supported values: \"Percent\", \
             \"Pods\"",
            "spec.behavior.scaleDown.policies[0].value: Invalid value: 0: must be greater than zero",
            "spec.behavior.scaleDown.policies[0].periodSeconds: Invalid value: 1801: must be less than or equal to 1800",
            "spec.behavior.scaleDown.tolerance: Invalid value: \"-1\": must be greater than or equal to 0",
        ]
    );
    assert_eq!(
        faults(&json!({"behavior": {"scaleUp": {"policies": [], "stabilizationWindowSeconds": -1}}})),
        [
            "spec.behavior.scaleUp.stabilizationWindowSeconds: Invalid value: -1: must be greater than or equal to zero",
            "spec.behavior.scaleUp.policies: Required value: must specify at least one Policy",
        ]
    );
}

#[test]
fn status_updates() {
    let old = object(&json!({}));
    let mut new = old.clone();
    new.status.current_replicas = -1;
    assert_eq!(
        texts(&validate_status_update(&new, &old, FeatureGates::default())),
        ["status.currentReplicas: Invalid value: -1: must be greater than or equal to 0"]
    );
}

#[test]
fn generations_of_conditions_are_checked_since_1_37() {
    let old = object(&json!({}));
    let mut new = old.clone();
    new.status.conditions.resize(2, v2::HorizontalPodAutoscalerCondition::default());
    new.status.conditions[0].observed_generation = Some(0);
    new.status.conditions[1].observed_generation = Some(-1);
    new.status.desired_replicas = -2;
    let desired = "status.desiredReplicas: Invalid value: -2: must be greater than or equal to 0";
    let update = |version| texts(&validate_status_update(&new, &old, FeatureGates::of(version)));
    assert_eq!(update(V1_36), [desired]);
    assert_eq!(
        update(V1_37),
        [
            "status.conditions[1].observedGeneration: Invalid value: -1: must be greater than or equal to 0",
            desired
        ]
    );
}

#[test]
fn declarative_rules_of_bounds_report_last_since_1_37() {
    let new = FeatureGates::of(V1_37);
    let create = |spec: &Value, gates| texts(&validate_create(&object(spec), gates));
    let broken = json!({"minReplicas": -1, "maxReplicas": 0, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "", "name": "web"}});
    assert_eq!(
        create(&broken, new),
        [
            "spec.scaleTargetRef.kind: Required value",
            "spec.minReplicas: Invalid value: -1: must be greater than or equal to 0",
            "spec.maxReplicas: Required value",
        ]
    );
    let negative = json!({"minReplicas": 1, "maxReplicas": -5});
    let bound = "spec.maxReplicas: Invalid value: -5: must be greater than or equal to 1";
    let order = "spec.maxReplicas: Invalid value: -5: must be greater than or equal to `minReplicas`";
    assert_eq!(create(&negative, FeatureGates::of(V1_36)), [bound, order]);
    assert_eq!(create(&negative, new), [order, bound]);
    let off = FeatureGates { declarative_validation: false, ..new };
    assert_eq!(create(&negative, off), [bound, order]);
}

#[test]
fn declarative_rules_leave_stored_values_to_written_ones() {
    let stored = object(&json!({"maxReplicas": 0}));
    assert_eq!(
        texts(&validate_update(&stored, &stored, FeatureGates::of(V1_37)))[0],
        "spec.maxReplicas: Required value: must be set and greater than 0"
    );
}

#[test]
fn zero_replicas_are_valid_by_default_since_1_37() {
    let queue = json!({"type": "External", "external": {
        "metric": {"name": "q"}, "target": {"type": "AverageValue", "averageValue": "1"}}});
    let spec = json!({"minReplicas": 0, "metrics": [queue]});
    let create = |gates| texts(&validate_create(&object(&spec), gates));
    let below_one = ["spec.minReplicas: Invalid value: 0: must be greater than or equal to 1"];
    assert_eq!(create(FeatureGates::of(V1_36)), below_one);
    let new = FeatureGates::of(V1_37);
    assert!(create(new).is_empty());
    assert_eq!(create(FeatureGates { scale_to_zero: false, ..new }), below_one);
    let need = texts(&validate_create(&object(&json!({"minReplicas": 0})), new));
    assert!(need[0].starts_with("spec.metrics: Forbidden: must specify at least one Object or External"));
}

#[test]
fn gated_tolerance_is_dropped_unless_in_use() {
    let off = FeatureGates { configurable_tolerance: false, ..Default::default() };
    let with = object(&json!({"behavior": {"scaleUp": {"tolerance": "0.1"}}}));
    let without = object(&json!({"behavior": {}}));
    let tolerance = |object: &HorizontalPodAutoscaler| {
        object.spec.behavior.as_ref().and_then(|b| b.scale_up.as_ref()).and_then(|up| up.tolerance.clone())
    };
    let mut new = with.clone();
    strategy::prepare_create(&mut new, off);
    assert_eq!(tolerance(&new), None);
    let mut new = with.clone();
    strategy::prepare_update(&mut new, &without, off);
    assert_eq!(tolerance(&new), None);
    let mut new = with.clone();
    strategy::prepare_update(&mut new, &with, off);
    assert!(tolerance(&new).is_some());
}

#[test]
fn api_error_text() {
    let object = object(&json!({"metrics": [{}]}));
    let faults = validate_create(&object, FeatureGates::default());
    let text = crate::field::invalid_object("HorizontalPodAutoscaler", "autoscaling", "web", &faults);
    assert!(text.starts_with(
        "HorizontalPodAutoscaler.autoscaling \"web\" is invalid: [spec.metrics[0].type: Required"
    ));
    assert_eq!(text.matches("Unsupported value").count(), 1, "the same text is given once");
}
