//! The operator on a cluster in memory, with scripted sources, in paused time.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

mod answers;
mod bench;
mod cached;
mod clocks;
mod direct;
mod fallbacks;
mod formulas;
mod hpas;
mod jobs;
mod life;
mod many;
mod pauses;
mod raw_metrics;
mod records;
mod rests;
mod script;
mod stale;
mod strict;
mod targets;
mod trouble;
mod users;
mod wire;
