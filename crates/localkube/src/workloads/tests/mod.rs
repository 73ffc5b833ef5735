//! Plans without a server, and the event loop on one in this process.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

mod deployment;
mod fake_cluster;
mod index;
mod job;
mod live;
mod replica_set;
mod stateful_set;
