//! What is fuzzed, one file each.

pub mod adapter_config;
pub mod formula;
pub mod hpa;
pub mod kubelet;
pub mod memory;
pub mod quantity;
pub mod scenario;
pub mod selector;
pub mod step;
pub mod text;
