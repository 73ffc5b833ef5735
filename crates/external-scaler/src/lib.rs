//! The external scaler protocol: the messages, a client, and a small library to write a scaler in Rust.
//!
//! A scaler provides metrics and activity to an autoscaler (Plimsoll or KEDA). It implements [`ExternalScaler`] and is
//! served by [`serve`]:
//!
//! ```no_run
//! use external_scaler::{ExternalScaler, MetricSpec, MetricValue, ScaledObjectRef, Status};
//!
//! struct Mailbox;
//!
//! impl ExternalScaler for Mailbox {
//!     async fn metric_specs(&self, object: &ScaledObjectRef) -> Result<Vec<MetricSpec>, Status> {
//!         Ok(vec![MetricSpec::new("letters", object.number_or("lettersPerReplica", 10.0)?)])
//!     }
//!
//!     async fn metrics(&self, _: &ScaledObjectRef, metric: &str) -> Result<Vec<MetricValue>, Status> {
//!         Ok(vec![MetricValue::new(metric, 42.0)])
//!     }
//! }
//!
//! # async fn example() -> Result<(), external_scaler::ServeError> {
//! external_scaler::serve(([0, 0, 0, 0], 6000).into(), Mailbox).await
//! # }
//! ```
//!
//! ```text
//! protocol         messages, client and server of the published protocol, generated from proto/externalscaler.proto
//! metrics_service  messages and servers of the protocol between a metrics adapter and the operator, from proto/metricsservice.proto
//! metrics_adapter  serves a metrics adapter in that protocol
//! raw_metrics      publishes every value to subscribers, in that protocol
//! scaler           the trait of a scaler
//! server           serves a scaler
//! values           constructors and accessors of messages
//! ```

pub mod metrics_adapter;
pub mod raw_metrics;
mod scaler;
mod server;
#[cfg(test)]
mod tests;
mod values;

/// Messages, client and server of the external scaler protocol, as generated.
#[allow(missing_docs, unreachable_pub, clippy::all, clippy::pedantic)]
pub mod protocol {
    include!("generated/externalscaler.rs");
}

/// Messages and servers of the protocol between a metrics adapter and the operator, as generated.
#[allow(missing_docs, unreachable_pub, clippy::all, clippy::pedantic)]
pub mod metrics_service {
    include!("generated/api.rs");
}

pub use protocol::{MetricSpec, MetricValue, ScaledObjectRef};
pub use scaler::{ActivityStream, ExternalScaler, MetricSpecStream};
pub use server::{ServeError, Server, serve};
pub use tonic::Status;
