//! Resolves references: reads of the cluster that a reconcile needs before it can decide.
//!
//! ```text
//! target   the scale target of a ScaledObject
//! hpa      its HPA
//! ```

pub(crate) mod hpa;
pub(crate) mod target;
