//! Settings of the controller, with the defaults of kube-controller-manager.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use api::decisions::DecisionMode;
use engine::profile::GateError;
use engine::{ControllerConfig, Gates, KubernetesVersion};

use super::profile::ProfileChoice;

/// Settings of the controller; they can be replaced while it runs.
#[derive(Clone, Debug, PartialEq)]
pub struct HpaSettings {
    /// The configuration of decisions.
    pub config: Arc<ControllerConfig>,
    /// The period of autoscalers that do not set their own.
    pub period: Duration,
    /// The maximum number of concurrent reconciles.
    pub concurrency: usize,
    /// The mode of autoscalers that do not set their own.
    pub mode: DecisionMode,
    /// The namespaces whose autoscalers are reconciled; empty for all.
    pub namespaces: Vec<String>,
    /// Whether windows and scale events are persisted on the object, to survive a restart.
    pub persist_state: bool,
    /// The release of Kubernetes to reproduce. [`HpaSettings::config`] holds the one in force.
    pub kubernetes: ProfileChoice,
    /// Feature gates that the user has set, which a change of the release keeps.
    pub feature_gates: BTreeMap<String, bool>,
    /// How often the release of the API server is read.
    pub release_poll_interval: Duration,
}

impl Default for HpaSettings {
    fn default() -> Self {
        Self {
            config: Arc::new(ControllerConfig::default()),
            period: Duration::from_secs(15),
            // kube-controller-manager has 5; here a waiting reconcile costs no thread.
            concurrency: 64,
            mode: DecisionMode::Active,
            namespaces: Vec::new(),
            persist_state: true,
            kubernetes: ProfileChoice::Fixed(KubernetesVersion::default()),
            feature_gates: BTreeMap::new(),
            release_poll_interval: Duration::from_secs(10),
        }
    }
}

impl HpaSettings {
    /// These settings with the behavior of another release. A gate that the release does not have or has locked keeps its
    /// default: an upgrade of the cluster must not stop a running controller.
    pub fn at_release(&self, kubernetes: KubernetesVersion) -> Self {
        let (gates, _) = self.gates_at(kubernetes);
        let config = ControllerConfig { gates, kubernetes, ..(*self.config).clone() };
        Self { config: Arc::new(config), ..self.clone() }
    }

    /// The gates in a release, and why some that the user has set have no effect there.
    pub(crate) fn gates_at(&self, kubernetes: KubernetesVersion) -> (Gates, Vec<GateError>) {
        let profile = kubernetes.profile();
        let mut gates = profile.default_gates();
        let set = |(name, on): (&String, &bool)| profile.set_gate(&mut gates, name, *on).err();
        let refused = self.feature_gates.iter().filter_map(set).collect();
        (gates, refused)
    }

    /// Whether autoscalers of this namespace are reconciled.
    pub fn covers(&self, namespace: &str) -> bool {
        self.namespaces.is_empty() || self.namespaces.iter().any(|n| n == namespace)
    }
}

#[cfg(test)]
mod tests {
    use KubernetesVersion::{V1_36, V1_37};

    use super::*;

    #[test]
    fn gates_of_the_user_survive_a_change_of_the_release() {
        let gates = [("HPAScaleToZero".to_owned(), false), ("HPAConfigurableTolerance".to_owned(), false)];
        let settings = HpaSettings { feature_gates: gates.into(), ..HpaSettings::default() };
        let old = settings.at_release(V1_36).config;
        assert!(!old.gates.scale_to_zero && !old.gates.configurable_tolerance && !old.gates.generation);
        let new = settings.at_release(V1_37).config;
        assert_eq!(new.kubernetes, V1_37);
        assert!(!new.gates.scale_to_zero && new.gates.generation);
        assert!(new.gates.configurable_tolerance, "locked in this release");
        assert_eq!(settings.at_release(V1_37).at_release(V1_36).config, old);
    }
}
