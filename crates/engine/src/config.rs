//! Settings of the controller, with the defaults of kube-controller-manager.

use jiff::SignedDuration;
use serde::{Deserialize, Serialize};

/// What applies to every autoscaler that does not say otherwise (docs/spec/hpa.md 2.1).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ControllerConfig {
    /// How long a higher recommendation holds back a scale-down.
    pub downscale_stabilization: SignedDuration,
    /// How far a ratio may be from 1 before it counts, both directions.
    pub tolerance: f64,
    /// How long after its start a pod's cpu sample is looked at with suspicion.
    pub cpu_initialization_period: SignedDuration,
    /// How long after its start a pod may be unready without ever having been ready.
    pub initial_readiness_delay: SignedDuration,
    /// Kubernetes feature gates that change decisions.
    pub gates: Gates,
}

/// Feature gates (docs/spec/hpa.md 1.5), with the defaults of Kubernetes 1.36.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Gates {
    /// `HPAScaleToZero`: a target that we scaled to zero is watched further.
    pub scale_to_zero: bool,
    /// `HPAConfigurableTolerance`: tolerances in `behavior` are honoured.
    pub configurable_tolerance: bool,
    /// `PodLevelResources`: requests of the pod as a whole count.
    pub pod_level_resources: bool,
}

impl Default for ControllerConfig {
    fn default() -> Self {
        Self {
            downscale_stabilization: SignedDuration::from_mins(5),
            tolerance: 0.1,
            cpu_initialization_period: SignedDuration::from_mins(5),
            initial_readiness_delay: SignedDuration::from_secs(30),
            gates: Gates::default(),
        }
    }
}

impl Default for Gates {
    fn default() -> Self {
        Self { scale_to_zero: false, configurable_tolerance: true, pod_level_resources: true }
    }
}
