//! Settings of the HPA controller, with the defaults of kube-controller-manager.

use jiff::SignedDuration;
use serde::{Deserialize, Serialize};

pub use crate::profile::Gates;
use crate::profile::{KubernetesProfile, KubernetesVersion};

/// Settings for every autoscaler that does not override them (docs/spec/hpa.md 2.1).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ControllerConfig {
    /// Default scale-down stabilization window.
    pub downscale_stabilization: SignedDuration,
    /// How far a ratio may differ from 1, in both directions, without causing a change.
    pub tolerance: f64,
    /// Time after a pod's start in which its cpu samples count only if the pod is ready.
    pub cpu_initialization_period: SignedDuration,
    /// Time after a pod's start in which a change to unready counts as initial unreadiness.
    pub initial_readiness_delay: SignedDuration,
    /// Kubernetes feature gates that change decisions.
    pub gates: Gates,
    /// The release of Kubernetes whose behavior is reproduced.
    #[serde(skip_serializing_if = "KubernetesVersion::is_default")]
    pub kubernetes: KubernetesVersion,
}

impl ControllerConfig {
    /// The defaults of this release.
    pub fn of(kubernetes: KubernetesVersion) -> Self {
        Self { gates: kubernetes.profile().default_gates(), kubernetes, ..Self::default() }
    }

    /// The behavior of the release.
    pub fn profile(&self) -> &'static KubernetesProfile {
        self.kubernetes.profile()
    }
}

impl Default for ControllerConfig {
    fn default() -> Self {
        Self {
            downscale_stabilization: SignedDuration::from_mins(5),
            tolerance: 0.1,
            cpu_initialization_period: SignedDuration::from_mins(5),
            initial_readiness_delay: SignedDuration::from_secs(30),
            gates: Gates::default(),
            kubernetes: KubernetesVersion::default(),
        }
    }
}
