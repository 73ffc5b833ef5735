//! Clients of a kube-apiserver.
//!
//! ```text
//! connect    builds a client from a kubeconfig: HTTP/2, keep-alive pings, adaptive limit of concurrent requests
//! request    sends requests: the one retry policy, and errors in the words of client-go
//! watch      list-and-watch into slim views
//! index      indexes of watched pods, of the autoscalers that select them, and of targets
//! discovery  the kinds and versions that the server serves
//! names      the names of the objects of a kind
//! scale      reads and writes the scale subresource
//! metrics    client of the three metrics APIs
//! lease      leader election
//! events     records Kubernetes events
//! uri        encodes paths and queries
//! random     random numbers for jitter, and UUIDs
//! ```

pub mod connect;
pub mod discovery;
pub mod events;
pub mod index;
pub mod key;
pub mod lease;
pub mod metrics;
pub mod names;
pub mod random;
pub mod request;
pub mod scale;
mod uri;
pub mod watch;

pub use key::{AutoscalerKey, AutoscalerKind};
pub use runtime::clock::{self, Clock};
