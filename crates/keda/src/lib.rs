//! The semantics of KEDA's resources: pure rules without a clock, network or Kubernetes client.
//!
//! ```text
//!                readings of all scalers
//!                          │
//! fallback   replaces a source that fails too often by a fixed value
//! modifiers  combines metrics with a formula            (formula: the language)
//! activity   decides whether a ScaledObject is active
//!                          │
//! executor   0 ↔ 1: scale writes, events and status
//! hpa        1 ↔ N: the generated HPA
//! direct     0 ↔ N: the same for our own engine, without an HPA
//! jobs       ScaledJobs: jobs to create and to delete
//!
//! environment  environment variables of a container
//! admission    validation of KEDA's objects
//! event        events of an object
//! status       changes of a ScaledObject's status
//! ```
//!
//! [`api::provider::Compat::Better`] deviates from KEDA where KEDA has defects; `docs/compatibility.md` lists them.

pub mod activity;
pub mod admission;
pub mod direct;
pub mod environment;
mod error;
pub mod event;
pub mod executor;
pub mod fallback;
mod float;
pub mod formula;
pub mod hpa;
pub mod jobs;
pub mod modifiers;
#[cfg(test)]
mod property_tests;
mod reading;
pub mod status;

pub use error::OperationError;
