use api::autoscaling::defaults::Defaults as _;
use proptest::prelude::*;
use serde_json::json;

use super::*;

fn object(extra: &serde_json::Value) -> ScaledObject {
    let mut value = json!({
        "metadata": {"name": "worker", "namespace": "shop", "uid": "u", "labels": {"team": "a"}, "annotations": {"note": "x"}},
        "spec": {"scaleTargetRef": {"name": "worker"}, "maxReplicaCount": 20},
        "status": {"scaleTargetGVKR": {"group": "apps", "version": "v1", "kind": "Deployment", "resource": "deployments"}},
    });
    let spec = value["spec"].as_object_mut().unwrap();
    spec.extend(extra.as_object().unwrap().clone());
    serde_json::from_value(value).unwrap()
}

fn metric(value: serde_json::Value) -> MetricSpec {
    serde_json::from_value(value).unwrap()
}

fn cpu() -> MetricSpec {
    let target = json!({"type": "Utilization", "averageUtilization": 70});
    metric(json!({"type": "Resource", "resource": {"name": "cpu", "target": target}}))
}

fn container() -> MetricSpec {
    let target = json!({"type": "Utilization", "averageUtilization": 70});
    metric(
        json!({"type": "ContainerResource", "containerResource": {"name": "cpu", "container": "app", "target": target}}),
    )
}

fn queue(name: &str) -> MetricSpec {
    let target = json!({"type": "AverageValue", "averageValue": "10"});
    metric(json!({"type": "External", "external": {"metric": {"name": name}, "target": target}}))
}

fn types(hpa: &HorizontalPodAutoscaler) -> Vec<&str> {
    hpa.spec.metrics.iter().map(|metric| &*metric.type_).collect()
}

#[test]
fn labels_name_the_release_unless_the_object_does() {
    let version = |object: &ScaledObject, profile| {
        let made = generate(object, &[vec![cpu()]], Compat::Better).unwrap().in_profile(object, profile);
        made.hpa.metadata.labels["app.kubernetes.io/version"].clone()
    };
    let mut object = object(&json!({}));
    assert_eq!(version(&object, KedaProfile::V2_20), "2.20.2");
    assert_eq!(version(&object, KedaProfile::V2_21), "2.21.0");
    object.metadata.labels.insert("app.kubernetes.io/version".to_owned(), "7".to_owned());
    assert_eq!(version(&object, KedaProfile::V2_21), "7");
}

/// The example of the specification.
#[test]
fn hpa_is_generated_from_scaled_object() {
    let made =
        generate(&object(&json!({})), &[vec![cpu()], vec![queue("s1-redis-jobs-high")]], Compat::Better)
            .unwrap();
    let labels = made.hpa.metadata.labels;
    assert_eq!(made.hpa.metadata.name, "keda-hpa-worker");
    assert_eq!(labels["app.kubernetes.io/part-of"], "worker");
    assert_eq!(labels["app.kubernetes.io/version"], "2.20.2");
    assert_eq!(labels["team"], "a");
    let metrics = serde_json::to_value(&made.hpa.spec.metrics).unwrap();
    assert_eq!(
        metrics,
        json!([
            {"type": "External", "external": {
                "metric": {"name": "s1-redis-jobs-high", "selector": {"matchLabels": {"scaledobject.keda.sh/name": "worker"}}},
                "target": {"type": "AverageValue", "averageValue": "10"},
            }},
            {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 70}}},
        ])
    );
    assert_eq!(made.status.external_metric_names, ["s1-redis-jobs-high"]);
    assert_eq!(made.status.resource_metric_names, ["cpu"]);
}

#[test]
fn invalid_specs_are_errors() {
    let none = generate(&object(&json!({})), &[vec![], vec![]], Compat::Better).unwrap_err();
    assert_eq!(none.to_string(), "no metric specs returned from scalers for ScaledObject shop/worker");
    let twice =
        generate(&object(&json!({})), &[vec![queue("q")], vec![queue("q")]], Compat::Better).unwrap_err();
    assert_eq!(twice.to_string(), "metricName q defined multiple times in ScaledObject worker");
}

#[test]
fn formula_replaces_external_metrics() {
    let object = object(&json!({"advanced": {"scalingModifiers": {"formula": "a", "target": "2.5555"}}}));
    let triggers = [vec![cpu()], vec![container()], vec![queue("s2-a")]];
    let strict = generate(&object, &triggers, Compat::Strict).unwrap();
    assert_eq!(types(&strict.hpa), ["Resource", "External"]);
    let better = generate(&object, &triggers, Compat::Better).unwrap();
    assert_eq!(types(&better.hpa), ["ContainerResource", "Resource", "External"]);
    let composite = better.hpa.spec.metrics[2].external.as_ref().unwrap();
    assert_eq!(composite.metric.name, "composite-metric");
    assert_eq!(composite.target.average_value.as_ref().unwrap().to_string(), "2555m");
    assert_eq!(better.status.external_metric_names, ["s2-a"]);
}

#[test]
fn overflowing_target_saturates() {
    let object = object(&json!({"advanced": {"scalingModifiers": {"formula": "a", "target": "1e300"}}}));
    let made = generate(&object, &[vec![queue("s0-a")]], Compat::Better).unwrap();
    let target = made.hpa.spec.metrics[0].external.as_ref().unwrap().target.average_value.clone();
    assert_eq!(target.unwrap().milli_value(), i64::MAX);
}

#[test]
fn defaulted_behavior_needs_no_update() {
    let behavior = json!({"behavior": {"scaleDown": {"stabilizationWindowSeconds": 60}}});
    let object = object(&json!({"advanced": {"horizontalPodAutoscalerConfig": behavior}}));
    let wanted = generate(&object, &[vec![queue("s0-a")]], Compat::Better).unwrap().hpa;
    let mut found = wanted.clone();
    found.set_defaults();
    assert!(!needs_update(&found, &wanted, Compat::Better));
    assert!(needs_update(&found, &wanted, Compat::Strict));
    found.spec.behavior.as_mut().unwrap().scale_down.as_mut().unwrap().stabilization_window_seconds = Some(1);
    assert!(needs_update(&found, &wanted, Compat::Better));
}

#[test]
fn metrics_of_unavailable_source_are_taken_from_hpa() {
    let triggers = [vec![queue("s0-a")], vec![queue("s1-b")], vec![cpu()], vec![container()]];
    let made = generate(&object(&json!({})), &triggers, Compat::Better).unwrap();
    let trigger = |type_: &str, container: &str| {
        let metadata = api::map::StringMap::from([("containerName".to_owned(), container.to_owned())]);
        Trigger { type_: type_.to_owned(), metadata, ..Trigger::default() }
    };
    assert_eq!(metrics_from_hpa(&made.hpa, 1, &trigger("redis", "")), [queue("s1-b")]);
    assert_eq!(metrics_from_hpa(&made.hpa, 5, &trigger("redis", "")), []);
    assert_eq!(metrics_from_hpa(&made.hpa, 2, &trigger("cpu", "")), [cpu()]);
    assert_eq!(metrics_from_hpa(&made.hpa, 3, &trigger("cpu", "app")), [container()]);
    assert_eq!(metrics_from_hpa(&made.hpa, 3, &trigger("cpu", "side")), []);
    assert_eq!(metrics_from_hpa(&made.hpa, 2, &trigger("memory", "")), []);
}

#[test]
fn metrics_from_status_are_those_of_the_trigger() {
    let mut object = object(&json!({}));
    object.status.external_metric_names = vec!["s1-a".to_owned(), "s11-b".to_owned(), "s1-c".to_owned()];
    let names = |index| {
        let known = metrics_from_status(&object, index);
        known.into_iter().map(|metric| metric.external.unwrap().metric.name).collect::<Vec<_>>()
    };
    assert_eq!(names(1), ["s1-a", "s1-c"]);
    assert_eq!(names(11), ["s11-b"]);
    assert_eq!(names(0), [""; 0]);
}

proptest! {
    /// What was written is not written again, whatever is in it, and every difference in bounds is seen.
    #[test]
    fn update_is_idempotent(min in 0..5_i32, max in 5..9_i32, pause in any::<bool>(), queues in 1..4_usize) {
        let mut object = object(&json!({"minReplicaCount": min, "maxReplicaCount": max}));
        if pause {
            object.metadata.annotations.insert("autoscaling.keda.sh/paused-scale-in".to_owned(), String::new());
        }
        let triggers: Vec<_> = (0..queues).map(|index| vec![queue(&format!("s{index}-q")), cpu()]).collect();
        let wanted = generate(&object, &triggers, Compat::Better).unwrap().hpa;
        let mut stored = wanted.clone();
        stored.set_defaults();
        prop_assert!(!needs_update(&stored, &wanted, Compat::Better));
        stored.spec.max_replicas += 1;
        prop_assert!(needs_update(&stored, &wanted, Compat::Better));
    }
}
