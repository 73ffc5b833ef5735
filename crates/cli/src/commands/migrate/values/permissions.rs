//! The permissions of KEDA's chart as values of our chart.

use serde_json::{Value, json};

use super::convert::ConvertedValues;

/// Converts the value `rbac` of KEDA's chart.
pub(super) fn keda_permissions(converted: &mut ConvertedValues, _path: &str, value: &Value) {
    scale_targets(converted, value);
    // Without `create`, KEDA's chart has no roles, and somebody else keeps those of users.
    let is = |name: &str, wanted: bool| value.get(name) == Some(&json!(wanted));
    if is("aggregateToDefaultRoles", true) && !is("create", false) {
        converted.set("operator.aggregateToDefaultRoles", json!(true));
    }
}

/// The resources whose scale KEDA may write: with its chart's default all, else Deployments, StatefulSets and those that are listed, which it
/// may also read.
fn scale_targets(converted: &mut ConvertedValues, value: &Value) {
    let listed = value.get("scaledRefKinds").and_then(Value::as_array);
    let has_listed = value.get("enabledCustomScaledRefKinds") != Some(&json!(false));
    let kinds: &[Value] = match listed {
        _ if !has_listed => &[],
        Some(kinds) => kinds.as_slice(),
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

fn scale_target(group: &str, resource: &str) -> Value {
    let resource = format!("{resource}/scale");
    json!({"apiGroups": [group], "resources": [resource]})
}
