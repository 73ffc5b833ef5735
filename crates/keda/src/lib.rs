//! What KEDA's resources mean: rules without a clock, a network or a Kubernetes client.
//!
//! ```text
//!                what each scaler said
//!                          │
//! fallback   a source that fails too often is replaced by a number
//! modifiers  a formula makes one number of many            (formula: the language)
//! activity   whether a ScaledObject is active, and why
//!                          │
//! executor   0 ↔ 1: what is written, told and remembered
//! hpa        1 ↔ N: the HPA that is made
//! direct     0 ↔ N: the same for our own engine, without an HPA
//! jobs       ScaledJobs: how many jobs are created, which are deleted
//!
//! environment  what the variables of a container are
//! admission    which objects are refused, and in which words
//! event        what is told about an object
//! status       what is written into the status of a ScaledObject
//! ```
//!
//! Where the original is poor, [`api::provider::Compat::Better`] is better; `docs/compatibility.md` lists where.

pub mod activity;
pub mod admission;
pub mod direct;
pub mod environment;
pub mod event;
pub mod executor;
pub mod fallback;
pub mod formula;
#[cfg(test)]
mod histories;
pub mod hpa;
pub mod jobs;
pub mod modifiers;
pub mod status;
