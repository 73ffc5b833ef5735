//! Plans without a server, and the loop on one in this process.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

mod deployment;
mod index;
mod job;
mod live;
mod replica_set;
mod stateful_set;
mod world;
