//! An in-memory Kubernetes API server: `plimsoll up` and integration tests run on it.
//!
//! ```text
//! request ─► http ─► verbs ─► store ─► watches, housekeeping
//!            server  decode   object
//!                    rules    fields (ownership)
//! ```
//!
//! | to change | look in |
//! |---|---|
//! | which resources are served | `kinds` (table), `custom` (definitions), `catalog` (both) |
//! | what a verb does | `verbs`, one file each |
//! | defaulting and validation | `rules`, one file per kind; `schema` for types and unknown fields |
//! | how patches merge | `patch`, and `fields` for server-side apply |
//! | the form of responses | `verbs::present`, `tables`, `discovery`, `openapi`, `status` |
//! | authentication, authorization, admission | `access`, `admission` (webhooks), `aggregate` (aggregated APIs) |
//! | controllers | `housekeeping`, `workloads`, `nodes` |
//! | listeners | `listen`: accept loop, TLS handshake and HTTP of all simulated servers |
//! | metrics APIs | `metrics`: the three metrics APIs of simulated nodes and of scripts |

pub mod access;
mod admission;
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
mod json;
pub mod jsonpath;
pub mod kinds;
mod list_watch;
pub mod listen;
pub mod metrics;
pub mod nodes;
mod object;
mod openapi;
pub mod pace;
mod packed;
pub mod patch;
mod pause;
mod peer;
pub mod protobuf;
mod random;
pub mod release;
#[cfg(test)]
mod release_tests;
pub mod request;
mod response;
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

pub use api::autoscaling::KubernetesVersion;
pub use cluster::{Cluster, Options};
pub use http::Api;
pub use pause::PauseSwitch;
pub use peer::any_server_verifier;
pub use running::Running;
pub use server::Server;
