//! `--feature-gates`, as kube-apiserver and kube-controller-manager accept them.

use api::autoscaling::FeatureGates;
use api::yaml::nearest;
use engine::KubernetesVersion;
use engine::profile::GateError;

use crate::failure::Failure;

/// The option, for commands that check objects.
#[derive(clap::Args)]
pub(crate) struct GatesArg {
    /// Kubernetes feature gates, for example HPAScaleToZero=true.
    #[arg(long, value_name = "NAME=BOOL,…", value_delimiter = ',')]
    feature_gates: Vec<String>,
}

impl GatesArg {
    /// The gates of this release with the user's changes.
    pub(crate) fn gates(&self, kubernetes: KubernetesVersion) -> Result<FeatureGates, Failure> {
        let profile = kubernetes.profile();
        let mut gates = profile.default_gates();
        for given in &self.feature_gates {
            let (name, value) = given.split_once('=').ok_or_else(|| {
                Failure::input(format!("--feature-gates {given}: write NAME=true or NAME=false"))
            })?;
            let on = value.parse::<bool>().map_err(|_| {
                Failure::input(format!("--feature-gates {given}: {value} is neither true nor false"))
            })?;
            profile.set_gate(&mut gates, name, on).map_err(|error| refused(kubernetes, &error))?;
        }
        Ok(FeatureGates::with(kubernetes, &gates))
    }
}

/// The failure of a gate that cannot be set; an unknown one with the gates that the release has.
fn refused(kubernetes: KubernetesVersion, error: &GateError) -> Failure {
    let GateError::Unknown { name, .. } = error else {
        return Failure::input(format!("--feature-gates: {error} in Kubernetes {kubernetes}"));
    };
    let known: Vec<&str> = kubernetes.profile().feature_gates.iter().map(|gate| gate.name).collect();
    let near =
        nearest(name, known.iter().copied()).map(|n| format!("; did you mean {n}?")).unwrap_or_default();
    let known = known.join(", ");
    Failure::input(format!("--feature-gates: unknown gate {name} (known: {known}){near}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gates(words: &[&str], kubernetes: KubernetesVersion) -> Result<FeatureGates, String> {
        let given = GatesArg { feature_gates: words.iter().map(|word| (*word).to_owned()).collect() };
        given.gates(kubernetes).map_err(|failure| failure.to_string())
    }

    #[test]
    fn gates_of_a_release_are_set() {
        use KubernetesVersion::{V1_36, V1_37};
        assert!(!gates(&[], V1_36).unwrap().scale_to_zero);
        assert!(gates(&[], V1_37).unwrap().scale_to_zero);
        assert!(!gates(&["HPAGeneration=false"], V1_37).unwrap().generation);
        assert!(gates(&["HPAGeneration=true"], V1_36).unwrap_err().contains("unknown gate HPAGeneration"));
        assert_eq!(
            gates(&["HPAConfigurableTolerance=false"], V1_37).unwrap_err(),
            "--feature-gates: cannot set feature gate HPAConfigurableTolerance to false, feature is locked to true in \
             Kubernetes 1.37"
        );
    }
}
