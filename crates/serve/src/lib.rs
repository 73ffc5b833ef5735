//! The server: one TLS listener with the delegated authentication and authorization of the cluster.
//!
//! ```text
//! tls ─► identity ─────────► access ──────────► router ─► health, metrics, discovery, decisions, other groups and routes
//!        authentication      authorization
//! ```
//!
//! | to change | look in |
//! |---|---|
//! | what is served | `app` (provided by the caller), `api_group` (groups and resources), `router` (paths) |
//! | certificates, limits, connections | `tls` |
//! | additional listeners for health, exported metrics and gRPC | `extra_listener` |
//! | authentication | `identity` |
//! | authorization | `access` |
//! | admission webhooks | `admission` |
//! | APIs | `discovery`, `decisions`, `metrics` |
//! | JSON, YAML, protobuf, gzip | `encode` |
//! | Service, APIService and webhook objects | `registration`, `admission::webhooks` |

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests may read the clock of the machine"))]

mod access;
pub mod admission;
mod api_group;
mod app;
mod bind;
mod body;
mod cache;
mod client_permits;
mod decisions;
mod digest;
mod discovery;
mod encode;
mod extra_listener;
mod health;
mod identity;
mod in_process;
mod include_object;
mod media_type;
pub mod metrics;
mod peer_address;
mod query;
mod registration;
mod request;
mod request_metrics;
pub mod response;
mod review;
mod router;
mod server;
mod status;
mod stream;
mod throttle;
mod tls;

pub use access::{Access, RequestAttributes, RequestTarget, RequestedResource, SelectorRequirement};
pub use api_group::{
    ApiGroupVersion, ApiResource, DiscoveryVisibility, ResourceList, ResourceListing, Route,
};
pub use app::{App, Exposition, MetricsExporter};
pub use bind::StartError;
pub use body::{Body, BodyError};
pub use decisions::{DecisionSource, operator_group};
pub use extra_listener::ExtraListener;
pub use health::HealthChecks;
pub use identity::{ClientAuthorityError, ClientTrust, FrontProxyOptions, User};
pub use in_process::InProcessServer;
pub use query::Query;
pub use registration::{ServiceBackend, ServiceRef};
pub use request::AuthorizedRequest;
pub use request_metrics::{RequestCount, RequestDurations, RequestMetrics};
pub use review::ReviewTtls;
pub use runtime::{CheckFailure, Clock};
pub use server::{Server, ServerOptions};
pub use status::{Status, StatusCause, StatusDetails};
pub use stream::WatchStreams;
pub use tls::{
    BundleRenewal, Certificate, CertificateBundle, CertificateError, CertificateLifetimes, Keyring,
    ServerLimits,
};
