//! Changes that the API server makes to an autoscaler between reading and validating it (docs/spec/hpa.md 1.1, 1.5).

use super::gates::FeatureGates;
use super::v2::{HPAScalingRules, HorizontalPodAutoscaler, HorizontalPodAutoscalerSpec};

/// Prepares a new object: status cannot be set, fields of disabled gates are dropped.
pub fn prepare_create(new: &mut HorizontalPodAutoscaler, gates: FeatureGates) {
    new.status = super::v2::HorizontalPodAutoscalerStatus::default();
    drop_disabled(&mut new.spec, None, gates);
}

/// Prepares a change of `old`: its status is kept, fields of disabled gates are dropped unless already used.
pub fn prepare_update(new: &mut HorizontalPodAutoscaler, old: &HorizontalPodAutoscaler, gates: FeatureGates) {
    new.status = old.status.clone();
    drop_disabled(&mut new.spec, Some(&old.spec), gates);
}

fn drop_disabled(
    new: &mut HorizontalPodAutoscalerSpec,
    old: Option<&HorizontalPodAutoscalerSpec>,
    gates: FeatureGates,
) {
    let tolerant =
        |rules: &Option<HPAScalingRules>| rules.as_ref().is_some_and(|rules| rules.tolerance.is_some());
    let used_before = old
        .and_then(|old| old.behavior.as_ref())
        .is_some_and(|behavior| tolerant(&behavior.scale_down) || tolerant(&behavior.scale_up));
    if gates.configurable_tolerance || used_before {
        return;
    }
    if let Some(behavior) = &mut new.behavior {
        for rules in [&mut behavior.scale_up, &mut behavior.scale_down].into_iter().flatten() {
            rules.tolerance = None;
        }
    }
}
