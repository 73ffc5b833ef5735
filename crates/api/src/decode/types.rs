//! How Go names values and types in its errors.

use serde_json::{Number, Value};

/// The word for a JSON value.
pub fn kind_word(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// A number as errors about integers show it.
pub(super) fn number_text(number: &Number) -> String {
    match number.as_f64() {
        // An integer too large for 64 bits was kept as a float; Go shows its digits.
        Some(float) if number.is_f64() && float.fract() == 0.0 && (9e18..1e21).contains(&float.abs()) => {
            format!("{float:.0}")
        }
        _ => number.to_string(),
    }
}

/// The Go type of a field that is not a plain string, number or boolean; `package` is that of the API version.
pub(super) fn field_type(structure: &str, field: &str, package: &str) -> Option<String> {
    let own = |name: &str| Some(format!("{package}.{name}"));
    let fixed = |name: &str| Some(name.to_owned());
    match (structure, field) {
        ("MetricSpec" | "MetricStatus", "type") => own("MetricSourceType"),
        ("MetricTarget", "type") => own("MetricTargetType"),
        ("HPAScalingRules", "selectPolicy") => own("ScalingPolicySelect"),
        ("HPAScalingRules", "policies") => Some(format!("[]{package}.HPAScalingPolicy")),
        ("HPAScalingPolicy", "type") => own("HPAScalingPolicyType"),
        ("HorizontalPodAutoscalerCondition", "type") => own("HorizontalPodAutoscalerConditionType"),
        ("HorizontalPodAutoscalerCondition", "status") => fixed("v1.ConditionStatus"),
        (_, "metrics") => Some(format!("[]{package}.MetricSpec")),
        (_, "currentMetrics") => Some(format!("[]{package}.MetricStatus")),
        (_, "conditions") => Some(format!("[]{package}.HorizontalPodAutoscalerCondition")),
        (resource, "name") if resource.contains("ResourceMetric") => fixed("v1.ResourceName"),
        ("LabelSelector", "matchExpressions") => fixed("[]v1.LabelSelectorRequirement"),
        ("LabelSelectorRequirement", "operator") => fixed("v1.LabelSelectorOperator"),
        ("ObjectMeta" | "OwnerReference", "uid") => fixed("types.UID"),
        ("ObjectMeta", "ownerReferences") => fixed("[]v1.OwnerReference"),
        ("ObjectMeta", "managedFields") => fixed("[]v1.ManagedFieldsEntry"),
        ("ManagedFieldsEntry", "operation") => fixed("v1.ManagedFieldsOperationType"),
        (_, "values" | "finalizers") => fixed("[]string"),
        (_, "labels" | "annotations" | "matchLabels") => fixed("map[string]string"),
        _ => None,
    }
}

/// The Go type of a structure.
pub(super) fn struct_type(name: &str, package: &str) -> String {
    match name {
        "ObjectMeta"
        | "LabelSelector"
        | "LabelSelectorRequirement"
        | "OwnerReference"
        | "ManagedFieldsEntry" => {
            format!("v1.{name}")
        }
        _ => format!("{package}.{name}"),
    }
}
