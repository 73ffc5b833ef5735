//! Metrics sources: kubelets, Prometheus and upstream metrics API servers.
//!
//! ```text
//! inventory    nodes and pods of the cluster, interned
//! kubelet ──► store       scrapes of /metrics/resource, two points per container, CPU rates
//! prometheus   prometheus-adapter rules, discovery, queries: custom, external and resource metrics
//! federation   other metrics API servers behind this one
//! sharding     which replica scrapes which node, and the exchange of samples between replicas
//! http         HTTP client: TLS, reloaded tokens, time and size limits
//! dial         TCP connections, and which addresses tenants may choose
//! tenant       the namespace that work is done for, and its parts of what all namespaces share
//! ```
//!
//! Every source implements the traits of [`api::provider`]. Missing data is never reported as zero.

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests may read the clock of the machine"))]

pub mod dial;
pub mod federation;
pub mod http;
pub mod inventory;
pub mod kubelet;
pub mod prometheus;
pub mod sharding;
pub mod store;
pub mod tenant;

pub use runtime::Clock;
