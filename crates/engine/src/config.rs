//! Settings of the HPA controller, with the defaults of kube-controller-manager.

use jiff::SignedDuration;
use serde::{Deserialize, Serialize};

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
}

/// Feature gates (docs/spec/hpa.md 1.5), with the defaults of Kubernetes 1.36.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Gates {
    /// `HPAScaleToZero`: a target that this controller scaled to zero stays active.
    pub scale_to_zero: bool,
    /// `HPAConfigurableTolerance`: tolerances in `behavior` are honoured.
    pub configurable_tolerance: bool,
    /// `PodLevelResources`: pod-level requests and limits count.
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
