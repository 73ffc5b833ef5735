//! What is fuzzed, one file each.

pub mod hpa;
pub mod memory;
pub mod quantity;
pub mod scenario;
pub mod selector;
pub mod step;
pub mod text;
