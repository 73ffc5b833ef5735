//! The permissions of KEDA's chart as values of our chart.

use serde_json::{Value, json};

use super::convert::ConvertedValues;

/// The value of KEDA's chart for the namespace of the account with which Kubernetes' HPA controller reads metrics, and that of our chart.
const ACCOUNT_NAMESPACE: &str = "controlPlaneServiceAccountsNamespace";
const OUR_ACCOUNT_NAMESPACE: &str = "kube-system";

/// Converts the value `rbac` of KEDA's chart.
pub(super) fn keda_permissions(converted: &mut ConvertedValues, path: &str, value: &Value) {
    scale_targets(converted, value);
    let namespace = value.get(ACCOUNT_NAMESPACE).and_then(Value::as_str);
    if namespace.is_some_and(|namespace| namespace != OUR_ACCOUNT_NAMESPACE) {
        converted.lose(
            &format!("{path}.{ACCOUNT_NAMESPACE}"),
            "the chart binds the account of Kubernetes' HPA controller in kube-system: bind the ClusterRole \
             plimsoll-external-metrics-reader to yours",
        );
    }
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
