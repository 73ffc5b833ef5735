//! v2beta2: v2 with the tolerances in annotations (docs/spec/hpa.md 1.9).

use quantity::Quantity;

use super::ConvertError;
use super::annotations::{self, SCALE_DOWN_TOLERANCE, SCALE_UP_TOLERANCE};
use crate::autoscaling::{KIND, v2, v2beta2};
use crate::map::StringMap;

/// Reads v2beta2; fails only when a tolerance is no quantity.
pub fn v2beta2_to_v2(
    object: v2beta2::HorizontalPodAutoscaler,
) -> Result<v2::HorizontalPodAutoscaler, ConvertError> {
    let v2beta2::HorizontalPodAutoscaler { mut metadata, spec, status, .. } = object;
    let mut behavior = spec.behavior.map(v2::HorizontalPodAutoscalerBehavior::from);
    if let Some(tolerance) = tolerance(&metadata.annotations, SCALE_DOWN_TOLERANCE)? {
        behavior.get_or_insert_default().scale_down.get_or_insert_default().tolerance = Some(tolerance);
    }
    if let Some(tolerance) = tolerance(&metadata.annotations, SCALE_UP_TOLERANCE)? {
        behavior.get_or_insert_default().scale_up.get_or_insert_default().tolerance = Some(tolerance);
    }
    annotations::strip(&mut metadata.annotations);
    Ok(v2::HorizontalPodAutoscaler {
        kind: KIND.to_owned(),
        api_version: v2::API_VERSION.to_owned(),
        metadata,
        spec: v2::HorizontalPodAutoscalerSpec {
            scale_target_ref: spec.scale_target_ref,
            min_replicas: spec.min_replicas,
            max_replicas: spec.max_replicas,
            metrics: spec.metrics,
            behavior,
        },
        status: v2::HorizontalPodAutoscalerStatus {
            observed_generation: status.observed_generation,
            last_scale_time: status.last_scale_time,
            current_replicas: status.current_replicas,
            desired_replicas: status.desired_replicas,
            current_metrics: status.current_metrics,
            conditions: status.conditions.unwrap_or_default(),
        },
    })
}

/// Writes v2beta2.
pub fn v2_to_v2beta2(object: v2::HorizontalPodAutoscaler) -> v2beta2::HorizontalPodAutoscaler {
    let v2::HorizontalPodAutoscaler { mut metadata, spec, status, .. } = object;
    annotations::strip(&mut metadata.annotations);
    if let Some(behavior) = &spec.behavior {
        for (key, rules) in
            [(SCALE_DOWN_TOLERANCE, &behavior.scale_down), (SCALE_UP_TOLERANCE, &behavior.scale_up)]
        {
            if let Some(tolerance) = rules.as_ref().and_then(|rules| rules.tolerance.as_ref()) {
                metadata.annotations.insert(key.to_owned(), tolerance.to_string());
            }
        }
    }
    v2beta2::HorizontalPodAutoscaler {
        kind: KIND.to_owned(),
        api_version: v2beta2::API_VERSION.to_owned(),
        metadata,
        spec: v2beta2::HorizontalPodAutoscalerSpec {
            scale_target_ref: spec.scale_target_ref,
            min_replicas: spec.min_replicas,
            max_replicas: spec.max_replicas,
            metrics: spec.metrics,
            behavior: spec.behavior.map(Into::into),
        },
        status: v2beta2::HorizontalPodAutoscalerStatus {
            observed_generation: status.observed_generation,
            last_scale_time: status.last_scale_time,
            current_replicas: status.current_replicas,
            desired_replicas: status.desired_replicas,
            current_metrics: status.current_metrics,
            conditions: (!status.conditions.is_empty()).then_some(status.conditions),
        },
    }
}

fn tolerance(carried: &StringMap, key: &'static str) -> Result<Option<Quantity>, ConvertError> {
    let Some(text) = carried.get(key) else { return Ok(None) };
    Quantity::parse(text).map(Some).map_err(|source| ConvertError::Annotation { key, source })
}

impl From<v2beta2::HorizontalPodAutoscalerBehavior> for v2::HorizontalPodAutoscalerBehavior {
    fn from(behavior: v2beta2::HorizontalPodAutoscalerBehavior) -> Self {
        let rules = |rules: v2beta2::HPAScalingRules| v2::HPAScalingRules {
            stabilization_window_seconds: rules.stabilization_window_seconds,
            select_policy: rules.select_policy,
            policies: rules.policies,
            tolerance: None,
        };
        Self { scale_up: behavior.scale_up.map(rules), scale_down: behavior.scale_down.map(rules) }
    }
}

impl From<v2::HorizontalPodAutoscalerBehavior> for v2beta2::HorizontalPodAutoscalerBehavior {
    /// Tolerances have no field here; they are left behind.
    fn from(behavior: v2::HorizontalPodAutoscalerBehavior) -> Self {
        let rules = |rules: v2::HPAScalingRules| v2beta2::HPAScalingRules {
            stabilization_window_seconds: rules.stabilization_window_seconds,
            select_policy: rules.select_policy,
            policies: rules.policies,
        };
        Self { scale_up: behavior.scale_up.map(rules), scale_down: behavior.scale_down.map(rules) }
    }
}
