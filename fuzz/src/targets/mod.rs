//! The fuzz targets, one file each.

pub mod adapter_config;
pub mod admission;
pub mod amqp;
pub mod connection_string;
pub mod formats;
pub mod formula;
pub mod gjson;
pub mod hpa;
pub mod kubelet;
pub mod passes;
pub mod quantity;
pub mod redis;
pub mod requests;
pub mod responses;
pub mod samples_page;
pub mod scenario;
pub mod selector;
pub mod state_snapshot;
pub mod step;
pub mod text;
pub mod watch;
pub mod wire;
