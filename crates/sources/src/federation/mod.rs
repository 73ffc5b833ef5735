//! Federation: other metrics API servers (upstreams) and the local providers behind one APIService.
//!
//! ```text
//! config        the file behind --upstreams
//! glob          glob patterns for metric names and namespaces
//! routing       which provider is queried in which order, and how responses are combined
//! wire          request paths and response decoding of the metrics APIs
//! health        health and circuit breaker of an upstream
//! error         why a request to an upstream failed, and the remedy
//! upstream      client of one upstream
//! follow        reloads the file when it changes
//! router        local providers and upstreams as one provider
//! hop           prevents request loops between servers
//! merge         merged list of all metrics
//! own_service   identity of this server
//! report        status of upstreams, for doctor
//! ```

mod config;
mod error;
mod follow;
mod glob;
mod health;
mod hop;
mod merge;
mod own_service;
mod report;
mod router;
mod routing;
#[cfg(test)]
pub(crate) mod tests;
mod upstream;
mod wire;

pub use config::{
    ApiGroups, AuthConfig, FederationConfig, GoDuration, Port, ServiceReference, TlsConfig, UpstreamConfig,
};
pub use error::UpstreamError;
pub use glob::{GlobError, GlobPattern};
pub(crate) use hop::full;
pub use hop::{Body, Route, with_hop_header, with_loop_guard};
pub use own_service::OwnService;
pub use report::{UpstreamCondition, UpstreamReport};
pub use router::{LocalProviders, Router};
