//! Three tiers: the machine alone, several machines in a world that loses and delays, and the driver on a cluster.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

mod drive;
mod elector;
mod record;
mod settings;
mod simulation;
