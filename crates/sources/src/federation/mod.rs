//! Other metrics API servers behind ours: several providers behind one APIService.
//!
//! ```text
//! config     the file behind --upstreams
//! pattern    names with stars
//! turn       whom to ask, in which order, and what their answers make together
//! wire       what upstreams are asked, and how their answers are read
//! health     how an upstream fares, and whether it may be asked
//! cause      why one does not answer, and what to do about it
//! upstream   one upstream, asked
//! follow     the file, read again when it changes
//! router     our own providers and the upstreams as one provider
//! hop        no question goes round in circles
//! report     how upstreams fare, for doctor
//! ```

mod cause;
mod config;
mod flight;
mod follow;
mod health;
mod hop;
mod merge;
mod own;
mod pattern;
mod report;
mod router;
#[cfg(test)]
pub(crate) mod tests;
mod turn;
mod upstream;
mod wire;

pub use cause::Cause;
pub use config::{AuthConfig, Config, Groups, Period, Port, ServiceReference, TlsConfig, UpstreamConfig};
pub(crate) use hop::full;
pub use hop::{Body, Route, guarded, heard};
pub use own::Own;
pub use pattern::{Pattern, PatternError};
pub use report::{Condition, UpstreamReport};
pub use router::{Providers, Router};
