//! An in-memory Kubernetes API server, small enough to read: what `plimsoll up` runs on and what integration tests talk
//! to.
//!
//! ```text
//! request ─► http ─► verbs ─► store ─► watches, housekeeping
//!            server  decode   object
//!                    rules    fields (who owns what)
//! ```
//!
//! | to change | look in |
//! |---|---|
//! | what is served | `kinds` (the table), `custom` (definitions), `catalog` (both) |
//! | what a verb does | `verbs`, one file each |
//! | what is filled in or refused | `rules`, one file per kind; `schema` for types and unknown fields |
//! | how patches merge | `patch`, and `fields` for server-side apply |
//! | what answers look like | `present`, `tables`, `discovery`, `openapi`, `status` |
//! | who may do what | `access`, `admission` (webhooks), `aggregate` (APIs behind this one) |
//! | what happens by itself | `housekeeping`, `workloads`, `nodes` |
//! | what is measured | `metrics`: the three metrics APIs of simulated nodes and of scripts |

pub mod access;
mod admission;
mod admit;
mod aggregate;
mod bootstrap;
pub mod catalog;
pub mod clock;
mod cluster;
pub mod custom;
mod discovery;
mod duplicates;
pub mod fields;
mod housekeeping;
mod http;
pub mod jsonpath;
pub mod kinds;
mod list_watch;
pub mod metrics;
pub mod nodes;
mod object;
mod openapi;
mod options;
pub mod patch;
mod present;
pub mod protobuf;
mod random;
pub mod request;
pub mod rules;
mod running;
pub mod schema;
mod server;
pub mod status;
pub mod store;
mod syntax;
pub mod tables;
mod verbs;
pub mod workloads;

pub use cluster::{Cluster, Options};
pub use http::Api;
pub use running::Running;
pub use server::Server;
