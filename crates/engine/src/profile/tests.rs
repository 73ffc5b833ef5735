use super::*;

#[test]
fn every_release_has_one_profile() {
    for version in KubernetesVersion::ALL {
        assert_eq!(version.profile().version, version);
        assert_eq!(version.to_string().parse(), Ok(version));
        assert!(version.profile().git_version.starts_with(&format!("v{version}.")));
        assert_eq!(KubernetesVersion::of_minor(&version.minor().to_string()), Some(version));
    }
    assert_eq!(
        "1.35".parse::<KubernetesVersion>().unwrap_err().to_string(),
        "unknown release \"1.35\" of Kubernetes; write 1.36 or 1.37"
    );
}

#[test]
fn servers_of_other_releases_get_the_nearest_profile() {
    let of = KubernetesVersion::of_minor;
    assert_eq!(of("30"), Some(KubernetesVersion::V1_36));
    assert_eq!(of("37+"), Some(KubernetesVersion::V1_37));
    assert_eq!(of("41"), Some(KubernetesVersion::V1_37));
    assert_eq!(of(""), None);
    assert_eq!(of("x37"), None);
}

#[test]
fn default_gates_differ_between_releases() {
    let (old, new) = (V1_36.default_gates(), V1_37.default_gates());
    assert_eq!(old, Gates::default());
    assert!(!old.scale_to_zero && new.scale_to_zero);
    assert!(!old.generation && new.generation);
    assert!(!old.stale_consistency && new.stale_consistency);
    assert!(!old.optimized_selector_store && new.optimized_selector_store);
    for gates in [old, new] {
        assert!(gates.configurable_tolerance && gates.pod_level_resources && gates.declarative_validation);
    }
}

#[test]
fn locked_and_unknown_gates_are_refused() {
    let mut gates = V1_37.default_gates();
    assert_eq!(
        V1_37.set_gate(&mut gates, "HPAConfigurableTolerance", false).unwrap_err().to_string(),
        "cannot set feature gate HPAConfigurableTolerance to false, feature is locked to true"
    );
    assert_eq!(V1_37.set_gate(&mut gates, "HPAConfigurableTolerance", true), Ok(()));
    assert_eq!(gates, V1_37.default_gates());
    let mut gates = V1_36.default_gates();
    assert!(V1_36.set_gate(&mut gates, "HPAConfigurableTolerance", false).is_ok());
    assert!(!gates.configurable_tolerance);
    assert!(matches!(V1_36.set_gate(&mut gates, "HPAGeneration", true), Err(GateError::Unknown { .. })));
}

#[test]
fn gates_of_a_stage_are_set_together() {
    let mut gates = V1_36.default_gates();
    V1_36.set_gate(&mut gates, "AllAlpha", true).unwrap();
    assert!(gates.scale_to_zero);
    let mut gates = V1_37.default_gates();
    V1_37.set_gate(&mut gates, "AllAlpha", false).unwrap();
    assert!(gates.scale_to_zero, "the gate is beta in this release");
    V1_37.set_gate(&mut gates, "AllBeta", false).unwrap();
    assert!(!gates.scale_to_zero && !gates.generation);
    assert!(gates.configurable_tolerance, "a locked gate has no stage to set");
}

#[test]
fn records_of_the_default_release_do_not_name_new_gates() {
    let text = serde_json::to_value(Gates::default()).unwrap();
    assert_eq!(text.as_object().unwrap().len(), 3, "{text}");
    let new = V1_37.default_gates();
    let back: Gates = serde_json::from_value(serde_json::to_value(new).unwrap()).unwrap();
    assert_eq!(back, new);
}
