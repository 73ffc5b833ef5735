//! Three tiers: one elector, several electors whose requests are lost and delayed, and the driver on a cluster.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

mod drive;
mod elector;
mod record;
mod settings;
mod simulation;
