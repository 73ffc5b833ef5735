//! Feature gates that change validation (docs/spec/hpa.md 1.5), and the release of Kubernetes.

use engine::profile::Gates;
pub use engine::{KubernetesProfile, KubernetesVersion};

/// The release and the gates of the API server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FeatureGates {
    /// The release.
    pub kubernetes: KubernetesVersion,
    /// `HPAScaleToZero`: permits `minReplicas: 0`.
    pub scale_to_zero: bool,
    /// `HPAConfigurableTolerance`: permits `tolerance` in the behavior.
    pub configurable_tolerance: bool,
    /// `HPAGeneration`: `metadata.generation` counts changes of the spec.
    pub generation: bool,
    /// `DeclarativeValidationBeta`: declarative rules replace written ones, if the release has them.
    pub declarative_validation: bool,
}

impl FeatureGates {
    /// The release with its default gates.
    pub fn of(kubernetes: KubernetesVersion) -> Self {
        Self::with(kubernetes, &kubernetes.profile().default_gates())
    }

    /// The release with these gates.
    pub fn with(kubernetes: KubernetesVersion, gates: &Gates) -> Self {
        Self {
            kubernetes,
            scale_to_zero: gates.scale_to_zero,
            configurable_tolerance: gates.configurable_tolerance,
            generation: gates.generation,
            declarative_validation: gates.declarative_validation,
        }
    }

    /// The behavior of the release.
    pub fn profile(&self) -> &'static KubernetesProfile {
        self.kubernetes.profile()
    }

    /// Whether declarative rules replace the written rules of the bounds.
    pub(crate) fn declares_bounds(self) -> bool {
        self.declarative_validation && self.profile().declarative_bounds
    }
}

impl Default for FeatureGates {
    /// As in Kubernetes 1.36.
    fn default() -> Self {
        Self::of(KubernetesVersion::default())
    }
}
