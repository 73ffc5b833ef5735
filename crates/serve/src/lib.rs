//! All that is served: one listener with TLS, behind the authentication and authorization of the cluster.
//!
//! ```text
//! tls ─► identity ─► access ─► site ─► health, metrics, discovery, decisions, further groups and routes
//!        who asks    may he?
//! ```
//!
//! | to change | look in |
//! |---|---|
//! | what is served | `app` (handed over by its owner), `site` (the paths) |
//! | certificates, limits, connections | `tls` |
//! | listeners beside the one with everything | `beside` |
//! | who is believed to be whom | `identity` |
//! | who may do what | `access` |
//! | what may be written (webhooks) | `admission` |
//! | what kubectl sees | `discovery`, `decisions`, `metrics` |
//! | JSON, YAML, protobuf, gzip | `encode` |
//! | how a cluster learns of it | `register` |

mod access;
pub mod admission;
mod app;
mod cache;
mod decisions;
mod digest;
mod discovery;
mod encode;
mod extra_listener;
mod health;
mod identity;
mod in_process;
mod media_type;
pub mod metrics;
mod registration;
mod request;
mod request_metrics;
pub mod response;
mod review;
mod router;
mod server;
mod status;
mod stream;
mod tls;

pub use access::{Access, RequestAttributes, RequestTarget, RequestedResource, SelectorRequirement};
pub use app::{
    ApiGroupVersion, ApiResource, App, DiscoveryVisibility, Exposition, MetricsExporter, ResourceListing,
    Route,
};
pub use decisions::{DecisionSource, operator_group};
pub use discovery::ResourceList;
pub use extra_listener::ExtraListener;
pub use health::HealthChecks;
pub use identity::{ClientTrust, FrontProxyOptions, User};
pub use in_process::InProcessServer;
pub use registration::{ServiceBackend, ServiceRef};
pub use request::{AuthorizedRequest, Query};
pub use request_metrics::{RequestCount, RequestDurations, RequestMetrics};
pub use response::{Body, BodyError};
pub use server::{ReviewTtls, Server, ServerOptions, StartError};
pub use status::{Status, StatusCause, StatusDetails};
pub use stream::WatchStreams;
pub use tls::{
    BundleRenewal, Certificate, CertificateBundle, CertificateError, CertificateLifetimes, Keyring,
    ServerLimits,
};
