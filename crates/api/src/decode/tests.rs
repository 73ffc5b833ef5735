use serde_json::json;

use super::*;
use crate::autoscaling::{Version, Versioned, v2};

fn v2_error(object: &Value) -> String {
    Versioned::decode_as(object, Version::V2).unwrap_err().to_string()
}

#[test]
fn type_errors_name_the_innermost_struct_and_the_whole_path() {
    let cases = [
        (
            json!({"spec": {"maxReplicas": 3.5}}),
            "number 3.5",
            "HorizontalPodAutoscalerSpec.spec.maxReplicas",
            "int32",
        ),
        (
            json!({"spec": {"maxReplicas": 3_000_000_000_i64}}),
            "number 3000000000",
            "HorizontalPodAutoscalerSpec.spec.maxReplicas",
            "int32",
        ),
        (
            json!({"spec": {"minReplicas": true}}),
            "bool",
            "HorizontalPodAutoscalerSpec.spec.minReplicas",
            "int32",
        ),
        (
            json!({"spec": {"metrics": {}}}),
            "object",
            "HorizontalPodAutoscalerSpec.spec.metrics",
            "[]v2.MetricSpec",
        ),
        (
            json!({"spec": {"metrics": [5]}}),
            "number",
            "HorizontalPodAutoscalerSpec.spec.metrics",
            "v2.MetricSpec",
        ),
        (json!({"spec": "x"}), "string", "HorizontalPodAutoscaler.spec", "v2.HorizontalPodAutoscalerSpec"),
        (json!({"metadata": {"labels": {"a": 5}}}), "number", "ObjectMeta.metadata.labels", "string"),
        (json!({"metadata": {"labels": []}}), "array", "ObjectMeta.metadata.labels", "map[string]string"),
        (json!({"metadata": {"uid": {}}}), "object", "ObjectMeta.metadata.uid", "types.UID"),
        (
            json!({"spec": {"metrics": [{"type": 1}]}}),
            "number",
            "MetricSpec.spec.metrics.type",
            "v2.MetricSourceType",
        ),
        (
            json!({"spec": {"metrics": [{"pods": {"metric": {"selector": {"matchExpressions": [{"values": [1]}]}}}}]}}),
            "number",
            "LabelSelectorRequirement.spec.metrics.pods.metric.selector.matchExpressions.values",
            "string",
        ),
        (
            json!({"metadata": {"creationTimestamp": 5}}),
            "number",
            "ObjectMeta.metadata.creationTimestamp",
            "string",
        ),
    ];
    for (object, found, path, expected) in cases {
        let text = format!("json: cannot unmarshal {found} into Go struct field {path} of type {expected}");
        assert_eq!(v2_error(&object), text);
    }
}

#[test]
fn the_first_type_error_is_reported_unless_a_quantity_is_invalid() {
    let object = json!({"spec": {"maxReplicas": "x", "minReplicas": "y"}});
    assert!(v2_error(&object).contains("maxReplicas"));
    let object = json!({"spec": {"maxReplicas": "x", "behavior": {"scaleUp": {"tolerance": "1ki"}}}});
    assert_eq!(v2_error(&object), "unable to parse quantity's suffix");
    let object = json!({"spec": {"behavior": {"scaleUp": {"tolerance": "\t1"}}}});
    assert!(v2_error(&object).starts_with("quantities must match the regular expression"));
}

#[test]
fn unknown_fields_and_nulls_are_ignored() {
    let object = json!({
        "kind": null, "unknown": 1, "metadata": null, "spec": {"Maxreplicas": 9, "metrics": null, "minReplicas": null},
        "status": {"currentMetrics": [null], "conditions": [{"lastTransitionTime": null}]},
    });
    let Ok(Versioned::V2(object)) = Versioned::decode_as(&object, Version::V2) else { panic!("not read") };
    assert_eq!(object.spec, v2::HorizontalPodAutoscalerSpec::default());
    assert_eq!(object.status.current_metrics, Some(vec![v2::MetricStatus::default()]));
}

#[test]
fn keys_in_any_case() {
    #[derive(Debug, Default, PartialEq, serde::Deserialize)]
    #[serde(default, rename_all = "PascalCase")]
    struct Pair {
        first_key: i32,
        second: Option<String>,
    }
    let read = |keys| from_json::<Pair>(r#"{"firstkey": 1, "FIRSTKEY": 2, "ſecond": "x"}"#, "v1", keys);
    assert_eq!(read(Keys::Exact), Ok(Pair::default()));
    assert_eq!(read(Keys::AnyCase), Ok(Pair { first_key: 2, second: Some("x".into()) }));
}

#[test]
fn missing_and_unknown_kinds_have_the_errors_of_kubernetes() {
    let error = |object: &Value| Versioned::decode(object).unwrap_err().to_string();
    assert_eq!(error(&json!({"kind": "X"})), "Object 'apiVersion' is missing in '{\"kind\":\"X\"}'");
    assert_eq!(error(&json!({})), "Object 'Kind' is missing in '{}'");
    assert_eq!(
        error(&json!({"kind": 5})),
        "couldn't get version/kind; json parse error: json: cannot unmarshal number into Go struct field .kind of type \
         string"
    );
    assert_eq!(
        error(&json!({"kind": "X", "apiVersion": "autoscaling/v2"})),
        "no kind \"X\" is registered for version \"autoscaling/v2\""
    );
    assert!(
        error(&json!([])).contains("cannot unmarshal array into Go value of type struct { APIVersion string")
    );
}
