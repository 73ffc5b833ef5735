//! What was watched, in plain structs: no client, no clock, no lock.

pub mod pods;
mod pool;
pub mod targets;

pub use pods::PodIndex;
pub use targets::{CachedScale, Target, TargetIndex, TargetKind};
