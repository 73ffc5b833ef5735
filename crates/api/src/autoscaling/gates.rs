//! Feature gates that change validation (docs/spec/hpa.md 1.5).

/// The gates as set on the API server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FeatureGates {
    /// `HPAScaleToZero`: permits `minReplicas: 0`.
    pub scale_to_zero: bool,
    /// `HPAConfigurableTolerance`: permits `tolerance` in the behavior.
    pub configurable_tolerance: bool,
}

impl Default for FeatureGates {
    /// As in Kubernetes 1.36.
    fn default() -> Self {
        Self { scale_to_zero: false, configurable_tolerance: true }
    }
}
