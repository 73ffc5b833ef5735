//! All that talks to a kube-apiserver.
//!
//! ```text
//! connect    a kubeconfig becomes a client: HTTP/2, signs of life, as many requests at once as the server bears
//! request    one request, and errors in the words of client-go
//! watch      list, then watch, for ever, into slim views
//! index      what was watched, in plain structs: pods and who selects them, targets
//! discovery  the kinds and versions the server knows
//! names      which objects of a kind there are
//! scale      the scale of any object
//! metrics    the three metrics APIs
//! lease      who leads
//! events     what is told about an object
//! ```

pub mod connect;
pub mod discovery;
pub mod events;
pub mod index;
pub mod key;
pub mod lease;
pub mod metrics;
pub mod names;
pub mod request;
pub mod scale;
pub mod watch;

pub use key::{AutoscalerKey, AutoscalerKind};
pub use runtime::clock::{self, Clock};
