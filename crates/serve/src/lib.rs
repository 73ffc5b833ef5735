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

mod accept;
mod access;
pub mod admission;
mod answer;
mod app;
mod beside;
mod cache;
mod decisions;
mod digest;
mod discovery;
mod encode;
mod health;
mod identity;
mod local;
pub mod metrics;
mod register;
mod request;
mod review;
mod server;
mod site;
mod status;
mod stream;
mod tls;
mod traffic;

pub use accept::{Media, accepted};
pub use access::{Access, Attributes, Requirement, Resource as Wanted, Target};
pub use answer::{Body, BodyError, JSON, full, json, status, text, with_type};
pub use app::{App, Exposition, Group, Known, Listing, Metrics, Resource, Route};
pub use beside::Beside;
pub use decisions::{Decisions, of_operator};
pub use discovery::ResourceList;
pub use health::Checks;
pub use identity::{Proxies, Trusted, User};
pub use local::Local;
pub use register::{Behind, Place};
pub use request::{Call, Query};
pub use server::{Options, Reviews, Server, StartError};
pub use status::{About, Cause, Status};
pub use stream::{Streams, pieces};
pub use tls::{Certificate, CertificateError, Keyring, Limits, Lives, Material, Next};
pub use traffic::{Count, Duration as Durations, Traffic};
