//! Workloads: deployments, replica sets, stateful sets and jobs.

pub mod deployment;
pub mod job;
pub mod replicaset;
mod shared;
pub mod statefulset;
