//! Changes that the API server makes to an autoscaler between reading and validating it (docs/spec/hpa.md 1.1, 1.5).

use super::gates::FeatureGates;
use super::v2::{HPAScalingRules, HorizontalPodAutoscaler, HorizontalPodAutoscalerSpec};

/// Prepares a new object: status cannot be set, fields of disabled gates are dropped, and the generation starts at 1.
pub fn prepare_create(new: &mut HorizontalPodAutoscaler, gates: FeatureGates) {
    new.status = super::v2::HorizontalPodAutoscalerStatus::default();
    drop_disabled(&mut new.spec, None, gates);
    if gates.generation {
        new.metadata.generation = 1;
    }
}

/// Prepares a change of `old`: its status is kept, fields of disabled gates are dropped unless already used, and the generation
/// counts a changed spec.
pub fn prepare_update(new: &mut HorizontalPodAutoscaler, old: &HorizontalPodAutoscaler, gates: FeatureGates) {
    new.status = old.status.clone();
    drop_disabled(&mut new.spec, Some(&old.spec), gates);
    if gates.generation {
        new.metadata.generation = old.metadata.generation + i64::from(new.spec != old.spec);
    }
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

#[cfg(test)]
mod tests {
    use engine::KubernetesVersion::{V1_36, V1_37};

    use super::*;

    fn hpa(max: i32, tolerance: &str) -> HorizontalPodAutoscaler {
        let spec = serde_json::json!({"spec": {"maxReplicas": max, "behavior": {"scaleUp": {"tolerance": tolerance}}}});
        serde_json::from_value(spec).unwrap()
    }

    #[test]
    fn generation_counts_changes_of_the_spec_since_1_37() {
        let mut new = hpa(3, "100m");
        new.metadata.generation = 7;
        prepare_create(&mut new, FeatureGates::of(V1_36));
        assert_eq!(new.metadata.generation, 7, "1.36 keeps what was sent");
        prepare_create(&mut new, FeatureGates::of(V1_37));
        assert_eq!(new.metadata.generation, 1);

        let stored = new;
        let generation = |mut changed: HorizontalPodAutoscaler, gates| {
            prepare_update(&mut changed, &stored, gates);
            changed.metadata.generation
        };
        let gates = FeatureGates::of(V1_37);
        assert_eq!(generation(hpa(4, "100m"), gates), 2);
        assert_eq!(generation(hpa(3, "0.1"), gates), 1, "quantities are compared by value");
        let mut labeled = hpa(3, "100m");
        labeled.metadata.labels.insert("a".into(), "b".into());
        labeled.metadata.generation = 9;
        assert_eq!(generation(labeled, gates), 1);
        // An object from before the upgrade has none.
        let (mut changed, old) = (hpa(4, "100m"), hpa(3, "100m"));
        prepare_update(&mut changed, &old, gates);
        assert_eq!(changed.metadata.generation, 1);
        let off = FeatureGates { generation: false, ..gates };
        let mut changed = hpa(4, "100m");
        prepare_update(&mut changed, &old, off);
        assert_eq!(changed.metadata.generation, 0);
    }
}
