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
//! | who is believed to be whom | `identity` |
//! | who may do what | `access` |
//! | what kubectl sees | `discovery`, `decisions` |
//! | how a cluster learns of it | `register` |

mod accept;
mod access;
mod answer;
mod app;
mod cache;
mod decisions;
mod digest;
mod discovery;
mod health;
mod identity;
mod register;
mod request;
mod review;
mod server;
mod site;
mod status;
mod stream;
mod tls;

pub use accept::{Media, accepted};
pub use access::{Access, Attributes, Resource as Wanted, Target};
pub use answer::{Body, BodyError, JSON, full, json, status, text, with_type};
pub use app::{App, Exposition, Group, Metrics, Resource, Route};
pub use decisions::Decisions;
pub use health::Checks;
pub use identity::User;
pub use register::{Behind, Place};
pub use request::{Call, Query};
pub use server::{Options, Server, StartError};
pub use status::{About, Status};
pub use stream::{Streams, pieces};
pub use tls::{Certificate, CertificateError, Limits};
