//! v2beta1: flat metrics, the behavior in an annotation (docs/spec/hpa.md 1.9).
//!
//! Kubernetes lost the name of the container in this conversion; it is kept here.

use super::{annotations, behavior};
use crate::autoscaling::{KIND, v2, v2beta1};

/// Reads v2beta1.
pub fn v2beta1_to_v2(object: v2beta1::HorizontalPodAutoscaler) -> v2::HorizontalPodAutoscaler {
    let v2beta1::HorizontalPodAutoscaler { mut metadata, spec, status, .. } = object;
    let behavior = behavior::read(&metadata.annotations);
    annotations::strip(&mut metadata.annotations);
    v2::HorizontalPodAutoscaler {
        kind: KIND.to_owned(),
        api_version: v2::API_VERSION.to_owned(),
        metadata,
        spec: v2::HorizontalPodAutoscalerSpec {
            scale_target_ref: spec.scale_target_ref,
            min_replicas: spec.min_replicas,
            max_replicas: spec.max_replicas,
            metrics: spec.metrics.into_iter().map(Into::into).collect(),
            behavior,
        },
        status: v2::HorizontalPodAutoscalerStatus {
            observed_generation: status.observed_generation,
            last_scale_time: status.last_scale_time,
            current_replicas: status.current_replicas,
            desired_replicas: status.desired_replicas,
            current_metrics: status.current_metrics.map(|all| all.into_iter().map(Into::into).collect()),
            conditions: status.conditions.unwrap_or_default(),
        },
    }
}

/// Writes v2beta1.
pub fn v2_to_v2beta1(object: v2::HorizontalPodAutoscaler) -> v2beta1::HorizontalPodAutoscaler {
    let v2::HorizontalPodAutoscaler { mut metadata, spec, status, .. } = object;
    annotations::strip(&mut metadata.annotations);
    if let Some(behavior) = spec.behavior {
        behavior::write(&mut metadata.annotations, behavior);
    }
    v2beta1::HorizontalPodAutoscaler {
        kind: KIND.to_owned(),
        api_version: v2beta1::API_VERSION.to_owned(),
        metadata,
        spec: v2beta1::HorizontalPodAutoscalerSpec {
            scale_target_ref: spec.scale_target_ref,
            min_replicas: spec.min_replicas,
            max_replicas: spec.max_replicas,
            metrics: spec.metrics.into_iter().map(Into::into).collect(),
        },
        status: v2beta1::HorizontalPodAutoscalerStatus {
            observed_generation: status.observed_generation,
            last_scale_time: status.last_scale_time,
            current_replicas: status.current_replicas,
            desired_replicas: status.desired_replicas,
            current_metrics: status.current_metrics.map(|all| all.into_iter().map(Into::into).collect()),
            conditions: (!status.conditions.is_empty()).then_some(status.conditions),
        },
    }
}
