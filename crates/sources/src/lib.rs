//! Where numbers come from.
//!
//! ```text
//! inventory    which nodes and pods there are, in little space
//! kubelet ──► store       what kubelets say, two points per container, rates
//! prometheus   rules, discovery, queries: custom, external and resource metrics
//! federation   other metrics API servers behind ours
//! shares       which replica scrapes which node, and what replicas tell each other
//! http         one way to ask others: TLS, tokens that are read again, limits
//! ```
//!
//! All answers go out through the traits of [`api::provider`]. Missing data is never zero.

pub mod federation;
pub mod http;
pub mod inventory;
pub mod kubelet;
pub mod prometheus;
pub mod shares;
pub mod store;
