//! The `autoscaling` API group: `HorizontalPodAutoscaler` in its four versions.

pub mod v1;
pub mod v2;

/// The kind all versions share.
pub const KIND: &str = "HorizontalPodAutoscaler";
