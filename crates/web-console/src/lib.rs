//! The web console's server, without a socket and without a cluster: a request goes in, a response comes out.
//!
//! ```text
//! access     which requests are allowed: Host header, origin, session cookie
//! assets     the built frontend (console/ in the repository), embedded and compressed
//! feed       the list of autoscalers, and its changes as server-sent events that can be resumed
//! row_names  the part of a row that is sent once for each state of its object
//! service    routes; the answers about the cluster come from a [`ConsoleBackend`]
//! ```
//!
//! The frontend's files are public. Everything about a cluster is under `/api` and needs a session: the token of the printed
//! address is exchanged for a cookie, so that neither another user of the machine nor another web site can read it.

mod access;
mod assets;
mod feed;
mod response;
mod row_names;
mod service;

pub use access::{Access, RandomnessError, Refusal};
pub use feed::{Feed, FeedRow};
pub use response::ResponseBody;
pub use row_names::RowNames;
pub use service::{ApiError, ApiRequest, Console, ConsoleBackend};
