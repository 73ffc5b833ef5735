//! The operator on a cluster in memory, with scripted sources, in paused time.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

mod answers;
mod bench;
mod direct;
mod jobs;
mod life;
mod many;
mod pauses;
mod script;
mod trouble;
