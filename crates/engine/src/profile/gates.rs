//! Feature gates of Kubernetes that concern autoscaling.

use serde::{Deserialize, Serialize};

use super::version::KubernetesVersion;

/// The values of the feature gates (docs/spec/hpa.md 1.5). The default is that of [`KubernetesVersion::default`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Gates {
    /// `HPAScaleToZero`: a target that this controller scaled to zero stays active, and `minReplicas: 0` is valid.
    pub scale_to_zero: bool,
    /// `HPAConfigurableTolerance`: tolerances in `behavior` are honoured.
    pub configurable_tolerance: bool,
    /// `PodLevelResources`: pod-level requests and limits count.
    pub pod_level_resources: bool,
    /// `HPAGeneration`: specs have a generation, which the controller reports as observed.
    #[serde(skip_serializing_if = "is_off")]
    pub generation: bool,
    /// `StaleControllerConsistencyHPA`: an autoscaler is not reconciled until our last status write is in the watch cache.
    #[serde(skip_serializing_if = "is_off")]
    pub stale_consistency: bool,
    /// `HPAOptimizedSelectorStore`: the search for autoscalers of the same pods ends at the second.
    #[serde(skip_serializing_if = "is_off")]
    pub optimized_selector_store: bool,
    /// `DeclarativeValidationBeta`: declarative rules replace written ones, if the release has them.
    #[serde(skip_serializing)]
    pub declarative_validation: bool,
}

/// One feature gate in one release.
#[derive(Clone, Copy, Debug)]
pub struct FeatureGate {
    /// Name as in `--feature-gates`.
    pub name: &'static str,
    /// Stage.
    pub stage: GateStage,
    /// The value unless it is set.
    pub default: bool,
    /// The value of the gate.
    pub field: fn(&mut Gates) -> &mut bool,
}

/// The stage of a feature gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GateStage {
    /// Off unless set.
    Alpha,
    /// Usually on.
    Beta,
    /// On and locked.
    Ga,
}

/// Why a gate cannot be set.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GateError {
    /// The release does not have it.
    #[error("Kubernetes {version} has no feature gate {name} that concerns autoscaling")]
    Unknown {
        /// The name.
        name: String,
        /// The release.
        version: KubernetesVersion,
    },
    /// It is locked to its default; the text is that of Kubernetes.
    #[error("cannot set feature gate {name} to {on}, feature is locked to {default}")]
    Locked {
        /// The name.
        name: &'static str,
        /// The given value.
        on: bool,
        /// Its only value.
        default: bool,
    },
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_off(gate: &bool) -> bool {
    !gate
}

impl Gates {
    pub(super) const OFF: Self = Self {
        scale_to_zero: false,
        configurable_tolerance: false,
        pod_level_resources: false,
        generation: false,
        stale_consistency: false,
        optimized_selector_store: false,
        declarative_validation: false,
    };
}

impl Default for Gates {
    fn default() -> Self {
        KubernetesVersion::default().profile().default_gates()
    }
}

/// A gate without its stage and default, which releases set.
pub(super) struct GateName(&'static str, fn(&mut Gates) -> &mut bool);

impl GateName {
    /// The gate in a release.
    pub(super) const fn at(self, stage: GateStage, default: bool) -> FeatureGate {
        FeatureGate { name: self.0, stage, default, field: self.1 }
    }
}

pub(super) const SCALE_TO_ZERO: GateName = GateName("HPAScaleToZero", |gates| &mut gates.scale_to_zero);
pub(super) const CONFIGURABLE_TOLERANCE: GateName =
    GateName("HPAConfigurableTolerance", |gates| &mut gates.configurable_tolerance);
pub(super) const POD_LEVEL_RESOURCES: GateName =
    GateName("PodLevelResources", |gates| &mut gates.pod_level_resources);
pub(super) const GENERATION: GateName = GateName("HPAGeneration", |gates| &mut gates.generation);
pub(super) const STALE_CONSISTENCY: GateName =
    GateName("StaleControllerConsistencyHPA", |gates| &mut gates.stale_consistency);
pub(super) const OPTIMIZED_SELECTOR_STORE: GateName =
    GateName("HPAOptimizedSelectorStore", |gates| &mut gates.optimized_selector_store);
pub(super) const DECLARATIVE_VALIDATION: GateName =
    GateName("DeclarativeValidationBeta", |gates| &mut gates.declarative_validation);

impl FeatureGate {
    /// Whether it cannot be set to another value.
    pub fn is_locked(&self) -> bool {
        self.stage == GateStage::Ga
    }
}
