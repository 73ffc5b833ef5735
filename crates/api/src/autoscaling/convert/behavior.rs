//! The behavior in annotations: with the field names of the Go types, and with empty fields.

use quantity::Quantity;
use serde::{Deserialize, Serialize};

use super::annotations::{self, BEHAVIOR};
use crate::autoscaling::v2;
use crate::map::StringMap;
use crate::wire::nullable;

#[derive(Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct HorizontalPodAutoscalerBehavior {
    scale_up: Option<HPAScalingRules>,
    scale_down: Option<HPAScalingRules>,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct HPAScalingRules {
    stabilization_window_seconds: Option<i32>,
    select_policy: Option<String>,
    policies: Option<Vec<HPAScalingPolicy>>,
    tolerance: Option<Quantity>,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct HPAScalingPolicy {
    #[serde(deserialize_with = "nullable")]
    r#type: String,
    #[serde(deserialize_with = "nullable")]
    value: i32,
    #[serde(deserialize_with = "nullable")]
    period_seconds: i32,
}

/// The behavior an annotation holds, if it has at least one direction.
pub(super) fn read(annotations: &StringMap) -> Option<v2::HorizontalPodAutoscalerBehavior> {
    // A JSON null reads as an empty structure, which counts as none.
    let behavior: HorizontalPodAutoscalerBehavior = annotations::read(annotations, BEHAVIOR)?;
    if behavior.scale_up.is_none() && behavior.scale_down.is_none() {
        return None;
    }
    Some(v2::HorizontalPodAutoscalerBehavior {
        scale_up: behavior.scale_up.map(Into::into),
        scale_down: behavior.scale_down.map(Into::into),
    })
}

pub(super) fn write(annotations: &mut StringMap, behavior: v2::HorizontalPodAutoscalerBehavior) {
    let behavior = HorizontalPodAutoscalerBehavior {
        scale_up: behavior.scale_up.map(Into::into),
        scale_down: behavior.scale_down.map(Into::into),
    };
    annotations::write(annotations, BEHAVIOR, &behavior);
}

impl From<HPAScalingRules> for v2::HPAScalingRules {
    fn from(rules: HPAScalingRules) -> Self {
        Self {
            stabilization_window_seconds: rules.stabilization_window_seconds,
            select_policy: rules.select_policy,
            policies: rules.policies.map(|policies| policies.into_iter().map(Into::into).collect()),
            tolerance: rules.tolerance,
        }
    }
}

impl From<v2::HPAScalingRules> for HPAScalingRules {
    fn from(rules: v2::HPAScalingRules) -> Self {
        Self {
            stabilization_window_seconds: rules.stabilization_window_seconds,
            select_policy: rules.select_policy,
            policies: rules.policies.map(|policies| policies.into_iter().map(Into::into).collect()),
            tolerance: rules.tolerance,
        }
    }
}

impl From<HPAScalingPolicy> for v2::HPAScalingPolicy {
    fn from(policy: HPAScalingPolicy) -> Self {
        Self { type_: policy.r#type, value: policy.value, period_seconds: policy.period_seconds }
    }
}

impl From<v2::HPAScalingPolicy> for HPAScalingPolicy {
    fn from(policy: v2::HPAScalingPolicy) -> Self {
        Self { r#type: policy.type_, value: policy.value, period_seconds: policy.period_seconds }
    }
}
