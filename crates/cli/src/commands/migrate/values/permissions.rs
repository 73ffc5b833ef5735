//! The permissions of KEDA's chart as values of our chart.

use serde_json::{Value, json};

use super::convert::ConvertedValues;

/// Converts the value `rbac` of KEDA's chart.
pub(super) fn keda_permissions(converted: &mut ConvertedValues, _path: &str, value: &Value) {
    scale_targets(converted, value);
    // Without `create`, KEDA's chart has no roles, and somebody else keeps those of users.
    if value.get("aggregateToDefaultRoles") == Some(&json!(true)) && !is_off(value, "create") {
        converted.set("operator.aggregateToDefaultRoles", json!(true));
    }
}

/// The resources whose scale KEDA may write: with its chart's default all, else Deployments, StatefulSets and those that are listed, which it
/// may also read.
fn scale_targets(converted: &mut ConvertedValues, value: &Value) {
    let kinds: &[Value] = match value.get("scaledRefKinds") {
        _ if is_off(value, "enabledCustomScaledRefKinds") => &[],
        // Without a list the template has no other kinds.
        Some(kinds) => kinds.as_array().map(Vec::as_slice).unwrap_or_default(),
        None => return,
    };
    let field = |kind: &Value, name: &str| {
        kind.get(name).and_then(Value::as_str).map(str::to_owned).unwrap_or_default()
    };
    let mut targets = vec![scale_target("apps", "deployments"), scale_target("apps", "statefulsets")];
    for kind in kinds {
        let (group, resource) = (field(kind, "apiGroup"), field(kind, "kind"));
        targets.push(scale_target(&group, &resource));
        if group != "*" && resource != "*" {
            converted.push("operator.readTargets", json!({"apiGroups": [group], "resources": [resource]}));
        }
    }
    if !targets.contains(&scale_target("*", "*")) {
        converted.set("operator.scaleTargets", Value::Array(targets));
    }
}

/// Whether a value is false, or null, with which Helm removes the default.
fn is_off(values: &Value, name: &str) -> bool {
    matches!(values.get(name), Some(Value::Bool(false) | Value::Null))
}

fn scale_target(group: &str, resource: &str) -> Value {
    let resource = format!("{resource}/scale");
    json!({"apiGroups": [group], "resources": [resource]})
}
