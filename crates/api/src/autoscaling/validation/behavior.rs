//! Validation of scaling rules.

use crate::autoscaling::v2::{HPAScalingPolicy, HPAScalingRules, HorizontalPodAutoscalerBehavior};
use crate::field::{AsJson, FieldError};

const MAX_STABILIZATION_WINDOW_SECONDS: i32 = 3600;
const MAX_POLICY_PERIOD_SECONDS: i32 = 1800;

pub(crate) fn behavior_faults(behavior: &HorizontalPodAutoscalerBehavior) -> Vec<FieldError> {
    let mut faults = Vec::new();
    for (direction, rules) in [("scaleUp", &behavior.scale_up), ("scaleDown", &behavior.scale_down)] {
        if let Some(rules) = rules {
            faults.extend(rules_faults(&format!("spec.behavior.{direction}"), rules));
        }
    }
    faults
}

fn rules_faults(path: &str, rules: &HPAScalingRules) -> Vec<FieldError> {
    let mut faults = Vec::new();
    if let Some(window) = rules.stabilization_window_seconds {
        let path = format!("{path}.stabilizationWindowSeconds");
        if window < 0 {
            faults.push(FieldError::invalid(&path, window, "must be greater than or equal to zero"));
        }
        if window > MAX_STABILIZATION_WINDOW_SECONDS {
            let detail = format!("must be less than or equal to {MAX_STABILIZATION_WINDOW_SECONDS}");
            faults.push(FieldError::invalid(&path, window, detail));
        }
    }
    if let Some(select) = rules.select_policy.as_deref()
        && !matches!(select, "Disabled" | "Max" | "Min")
    {
        let path = format!("{path}.selectPolicy");
        faults.push(FieldError::not_supported(path, AsJson(select), &["Disabled", "Max", "Min"]));
    }
    let policies = rules.policies.as_deref().unwrap_or_default();
    if policies.is_empty() {
        faults
            .push(FieldError::required(format_args!("{path}.policies"), "must specify at least one Policy"));
    }
    for (i, policy) in policies.iter().enumerate() {
        faults.extend(policy_faults(&format!("{path}.policies[{i}]"), policy));
    }
    if let Some(tolerance) = rules.tolerance.as_ref().filter(|tolerance| tolerance.sign() < 0) {
        let detail = "must be greater than or equal to 0";
        faults.push(FieldError::invalid(format_args!("{path}.tolerance"), &tolerance.to_string(), detail));
    }
    faults
}

fn policy_faults(path: &str, policy: &HPAScalingPolicy) -> Vec<FieldError> {
    let mut faults = Vec::new();
    if !matches!(policy.type_.as_str(), "Pods" | "Percent") {
        let path = format!("{path}.type");
        faults.push(FieldError::not_supported(path, AsJson(&policy.type_), &["Percent", "Pods"]));
    }
    if policy.value <= 0 {
        faults.push(FieldError::invalid(
            format_args!("{path}.value"),
            policy.value,
            "must be greater than zero",
        ));
    }
    let period = policy.period_seconds;
    let path = format!("{path}.periodSeconds");
    if period <= 0 {
        faults.push(FieldError::invalid(&path, period, "must be greater than zero"));
    }
    if period > MAX_POLICY_PERIOD_SECONDS {
        faults.push(FieldError::invalid(
            &path,
            period,
            format!("must be less than or equal to {MAX_POLICY_PERIOD_SECONDS}"),
        ));
    }
    faults
}
