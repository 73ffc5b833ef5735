//! Validation as by the API server: paths, kinds, texts and order of errors as in the given release of Kubernetes
//! (docs/spec/hpa.md 1.4, 11.3).
//!
//! All versions are validated after conversion to v2.

mod behavior;
mod metrics;
mod reference;
#[cfg(test)]
mod tests;

pub(crate) use behavior::behavior_faults;
pub(crate) use metrics::{
    container_resource_faults, external_faults, identifier_faults, object_faults, pods_faults,
    resource_faults, target_faults,
};
pub(crate) use reference::{ReferenceRules, reference_faults};

use super::gates::FeatureGates;
use super::v2::{self, HorizontalPodAutoscaler, HorizontalPodAutoscalerSpec};
use crate::field::FieldError;
use crate::meta::validation as meta;
use crate::names;

/// Exceptions of validation. Most apply to updates of objects that already have the value.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    pub(crate) min_replicas: i32,
    pub(crate) scale_target_ref: ReferenceRules,
    pub(crate) described_object: ReferenceRules,
}

/// Validates a new autoscaler.
pub fn validate_create(new: &HorizontalPodAutoscaler, gates: FeatureGates) -> Vec<FieldError> {
    let mut faults = meta::validate_create(&new.metadata, names::subdomain_faults, gates.profile());
    faults.extend(spec_faults(&new.spec, None, gates));
    faults
}

/// Validates an autoscaler that replaces `old`.
pub fn validate_update(
    new: &HorizontalPodAutoscaler,
    old: &HorizontalPodAutoscaler,
    gates: FeatureGates,
) -> Vec<FieldError> {
    let mut faults = meta::validate_update(&new.metadata, &old.metadata, gates.profile());
    faults.extend(spec_faults(&new.spec, Some(&old.spec), gates));
    faults
}

/// Validates a status that replaces that of `old`.
pub fn validate_status_update(
    new: &HorizontalPodAutoscaler,
    old: &HorizontalPodAutoscaler,
    gates: FeatureGates,
) -> Vec<FieldError> {
    let mut faults = meta::validate_update(&new.metadata, &old.metadata, gates.profile());
    if gates.profile().condition_generation {
        for (i, condition) in new.status.conditions.iter().enumerate() {
            if let Some(generation) = condition.observed_generation.filter(|generation| *generation < 0) {
                let path = format!("status.conditions[{i}].observedGeneration");
                faults.push(FieldError::invalid(path, generation, NEGATIVE));
            }
        }
    }
    for (field, count) in
        [("currentReplicas", new.status.current_replicas), ("desiredReplicas", new.status.desired_replicas)]
    {
        if count < 0 {
            faults.push(FieldError::invalid(format_args!("status.{field}"), count, NEGATIVE));
        }
    }
    faults
}

/// Ratcheting: values that the stored object already has stay allowed.
pub(crate) fn rules(
    new: &HorizontalPodAutoscalerSpec,
    old: Option<&HorizontalPodAutoscalerSpec>,
    gates: FeatureGates,
) -> Rules {
    let zero_before = old.is_some_and(|old| old.min_replicas == Some(0));
    let target = &new.scale_target_ref;
    let target_kept = old.is_some_and(|old| {
        old.scale_target_ref.api_version == target.api_version && old.scale_target_ref.kind == target.kind
    });
    let described = ReferenceRules { any_api_version: false, empty_group: true };
    let broken_before = old.is_some_and(|old| {
        let objects = old.metrics.iter().filter(|metric| metric.type_ == v2::OBJECT);
        objects
            .filter_map(|metric| metric.object.as_ref())
            .any(|object| reference::api_version_fault(&object.described_object, described).is_some())
    });
    Rules {
        min_replicas: i32::from(!gates.scale_to_zero && !zero_before),
        scale_target_ref: ReferenceRules {
            any_api_version: target_kept,
            // The only scalable kind of the core group.
            empty_group: !target_kept && target.kind == "ReplicationController",
        },
        described_object: ReferenceRules { any_api_version: broken_before, ..described },
    }
}

const NEGATIVE: &str = "must be greater than or equal to 0";

fn spec_faults(
    spec: &HorizontalPodAutoscalerSpec,
    old: Option<&HorizontalPodAutoscalerSpec>,
    gates: FeatureGates,
) -> Vec<FieldError> {
    let rules = rules(spec, old, gates);
    let mut bounds = BoundFaults::of(spec.min_replicas, spec.max_replicas, rules.min_replicas);
    let declared = if gates.declares_bounds() { bounds.take_declared(spec, old) } else { Vec::new() };
    let mut faults = bounds.written();
    faults.extend(reference_faults("spec.scaleTargetRef", &spec.scale_target_ref, rules.scale_target_ref));
    faults.extend(metrics::metrics_faults(&spec.metrics, spec.min_replicas, rules.described_object));
    if let Some(behavior) = &spec.behavior {
        faults.extend(behavior_faults(behavior));
    }
    faults.extend(declared);
    faults
}

/// The errors of `spec.minReplicas` and `spec.maxReplicas`.
pub(crate) fn bound_faults(min: Option<i32>, max: i32, lowest: i32) -> Vec<FieldError> {
    BoundFaults::of(min, max, lowest).written()
}

/// The errors of the bounds, each by its rule.
struct BoundFaults {
    min: Option<FieldError>,
    max: Option<FieldError>,
    order: Option<FieldError>,
}

impl BoundFaults {
    fn of(min: Option<i32>, max: i32, lowest: i32) -> Self {
        let low = min.filter(|min| *min < lowest).map(|min| {
            let detail = format!("must be greater than or equal to {lowest}");
            FieldError::invalid("spec.minReplicas", min, detail)
        });
        let max_fault = match max {
            0 => Some(FieldError::required("spec.maxReplicas", "must be set and greater than 0")),
            ..0 => Some(FieldError::invalid("spec.maxReplicas", max, "must be greater than or equal to 1")),
            _ => None,
        };
        let order = min.filter(|min| max < *min).map(|_| {
            FieldError::invalid("spec.maxReplicas", max, "must be greater than or equal to `minReplicas`")
        });
        Self { min: low, max: max_fault, order }
    }

    /// In the order of the written rules.
    fn written(self) -> Vec<FieldError> {
        [self.min, self.max, self.order].into_iter().flatten().collect()
    }

    /// Takes out the errors that a declarative rule reports instead. Such a rule does not check a value that is stored already,
    /// so that the written rule reports it.
    fn take_declared(
        &mut self,
        new: &HorizontalPodAutoscalerSpec,
        old: Option<&HorizontalPodAutoscalerSpec>,
    ) -> Vec<FieldError> {
        let min = self.min.take_if(|_| old.is_none_or(|old| old.min_replicas != new.min_replicas));
        let max = self.max.take_if(|_| old.is_none_or(|old| old.max_replicas != new.max_replicas));
        let max = max.map(|fault| match new.max_replicas {
            0 => FieldError::required("spec.maxReplicas", ""),
            _ => fault,
        });
        min.into_iter().chain(max).collect()
    }
}
