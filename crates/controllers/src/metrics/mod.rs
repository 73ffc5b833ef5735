//! The metrics server: wires watches, scraper, rules and reports together.
//!
//! ```text
//! watches   reflectors of nodes and running pods into the inventory       needs a client
//! described kinds, names of objects, pods and nodes, for rules           needs a client
//! kubelets  resource metrics from kubelets                                needs a client
//! rules     custom, external and resource metrics from Prometheus         needs a client
//! server    checks, report and exported metrics of the whole server       pure
//! replicas  discovers the other replicas, for sharding                    needs a client
//! check     health checks                                                 pure
//! start     readiness after the start                                     pure
//! ```

pub mod check;
mod described;
#[cfg(test)]
mod fault_tests;
pub mod kubelets;
mod replicas;
pub mod rules;
mod server;
mod start;
mod watches;

pub use api::provider::Providers;
pub use check::{CheckScope, HealthCheck};
pub use kubelets::Kubelets;
pub use rules::Rules;
pub use runtime::exported_metrics::{self, MetricsWriter};
pub use server::Sources;
pub use watches::ClusterInventory;
