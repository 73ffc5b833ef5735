//! The operator: ScaledObjects and ScaledJobs, from what is watched to what is written.
//!
//! ```text
//! run        the loop: changes come in, turns go out when they are due           needs a client
//! scheduler      when each object is due, and how many turns run at once             pure
//! store      what was watched                                                    pure
//! watches    what fills the store                                                needs a client
//! round      one turn of one object: reconcile if asked for, then poll           needs a client
//!   reconcile  the object as it is meant: target, HPA, conditions                needs a client
//!   poll       what its sources say, and what follows from it                    needs a client
//!   direct     the same without an HPA                                           needs a client
//! triggers   the built scalers of each object, and what they last said
//! auth       what a TriggerAuthentication gives; reader: what that is read from  needs a client
//! answer     external metrics for whoever asks
//! raw_metrics       whoever wants to hear every value as it is read
//! admission  which writes are refused                                           needs a client
//! reader       what is looked up: counts, pods, endpoints                          needs a client
//! client       what is written, at the edge: only a leader writes                  needs a client
//! record     what was decided, for people who ask why
//! context       what all of these share
//! tell       events for people; cloud_events for programs
//! figures    what Prometheus sees
//! settings   flags and environment, resolved
//! ```

mod admission;
pub mod auth;
mod cloud_events;
mod cluster_reader;
mod context;
mod credential_reader;
mod direct;
mod event_recorder;
mod exported_metrics;
mod external_metrics;
pub mod id;
mod leader_client;
mod poll;
pub mod poll_scheduler;
mod process;
mod raw_metrics;
mod reconcile;
mod record;
mod run;
mod scalers_cache;
pub mod settings;
mod store;
#[cfg(test)]
mod tests;
mod watches;

pub use admission::Admission;
pub use cluster_reader::cluster_reader;
pub use raw_metrics::{MetricRequester, RawMetric, RawMetricsSubscriber};
pub use run::{Operator, OperatorHandle, OperatorParts};
pub use scalers_cache::BuildScaler;
pub use settings::{OperatorSettings, ScalingMode};
