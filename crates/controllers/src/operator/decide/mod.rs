//! Decisions: pure functions from an object, its samples and its state to effects. No module here reads or writes anything.
//!
//! ```text
//! object       poll of a ScaledObject: activity, fallback, activation and deactivation
//! direct       poll of a ScaledObject without an HPA: the engine decides the replica count
//! job          poll of a ScaledJob: jobs to create and to delete
//! hpa          the HPA of a ScaledObject, and what has to be written
//! conditions   conditions and events after a reconcile
//! last_active  when the time of last activity is written
//! ```
//!
//! Writes may fail, and events depend on that. Therefore a decision has two parts: the first returns the write, the second turns
//! its result into events and a status.

pub(crate) mod conditions;
pub(crate) mod direct;
pub(crate) mod hpa;
pub(crate) mod job;
pub(crate) mod last_active;
pub(crate) mod object;
#[cfg(test)]
mod tests;
