//! The `autoscaling` API group: `HorizontalPodAutoscaler` in its four versions.

pub mod convert;
pub mod defaults;
pub mod describe;
mod gates;
pub mod print;
pub mod strategy;
pub mod v1;
pub mod v2;
pub mod v2beta1;
pub mod v2beta2;
pub mod validation;
mod versioned;

pub use defaults::Defaults;
pub use gates::{FeatureGates, KubernetesProfile, KubernetesVersion};
pub use versioned::{Version, Versioned};

/// The kind all versions share.
pub const KIND: &str = "HorizontalPodAutoscaler";
/// The group all versions share.
pub const GROUP: &str = "autoscaling";
