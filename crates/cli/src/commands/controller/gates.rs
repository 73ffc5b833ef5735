//! `--feature-gates` of the controller: those that change decisions in the release to reproduce.

use api::yaml::nearest;
use controllers::hpa::ProfileChoice;
use engine::KubernetesVersion;
use engine::profile::GateError;

use super::idle_flags::IDLE_GATES;
use crate::failure::Failure;

/// Checks a gate that is not one without effect. With `auto`, a gate that any supported release lets the user set is valid.
pub(super) fn check(profile: ProfileChoice, name: &str, on: bool) -> Result<(), Failure> {
    let versions: &[KubernetesVersion] = match &profile {
        ProfileChoice::Auto => &KubernetesVersion::ALL,
        ProfileChoice::Fixed(version) => std::slice::from_ref(version),
    };
    let set = |version: &KubernetesVersion| {
        let profile = version.profile();
        profile.set_gate(&mut profile.default_gates(), name, on)
    };
    let refused: Vec<GateError> = versions.iter().filter_map(|version| set(version).err()).collect();
    let Some(error) = refused.first().filter(|_| refused.len() == versions.len()) else { return Ok(()) };
    let GateError::Unknown { .. } = error else {
        return Err(Failure::input(format!("feature-gates: {error}")));
    };
    let gates = versions.iter().flat_map(|version| version.profile().feature_gates);
    let mut known: Vec<&str> = gates.map(|gate| gate.name).collect();
    known.sort_unstable();
    known.dedup();
    let near = nearest(name, known.iter().copied().chain(IDLE_GATES.iter().copied()));
    let near = near.map(|near| format!("; did you mean {near}?")).unwrap_or_default();
    let known = known.join(", ");
    Err(Failure::input(format!("feature-gates: unknown gate {name} (known: {known}){near}")))
}

#[cfg(test)]
mod tests {
    use KubernetesVersion::{V1_36, V1_37};

    use super::*;

    #[test]
    fn gates_are_checked_against_the_release() {
        let text = |profile, name, on| check(profile, name, on).err().map(|error| error.to_string());
        assert_eq!(text(ProfileChoice::Auto, "HPAGeneration", false), None);
        assert_eq!(text(ProfileChoice::Fixed(V1_37), "HPAGeneration", false), None);
        let unknown = text(ProfileChoice::Fixed(V1_36), "HPAGeneration", false).unwrap();
        assert!(unknown.starts_with("feature-gates: unknown gate HPAGeneration (known: "), "{unknown}");
        assert_eq!(text(ProfileChoice::Auto, "HPAConfigurableTolerance", false), None);
        assert_eq!(
            text(ProfileChoice::Fixed(V1_37), "HPAConfigurableTolerance", false).unwrap(),
            "feature-gates: cannot set feature gate HPAConfigurableTolerance to false, feature is locked to true"
        );
        assert_eq!(text(ProfileChoice::Auto, "AllBeta", false), None);
    }
}
