//! Indexes of watched objects as plain structs, without client, clock or lock.

pub mod pods;
mod pool;
pub mod targets;

pub use pods::PodIndex;
pub use targets::{CachedScale, Target, TargetIndex, TargetKind};
