//! The operator: ScaledObjects and ScaledJobs of KEDA.
//!
//! One object passes through these steps, top to bottom:
//!
//! ```text
//! watches           supervised reflectors fill the store                              needs a client
//! store             watched objects; turns changes into events                        pure
//! run               the loop: store events in, due objects out                        needs a client
//! poll_scheduler    when each object is due, and how many run at once                 pure
//! background        work outside the scheduler: activations, authentications          needs a client
//! process           one due object: reconcile if it has changed, then poll            needs a client
//! resolve           references: the scale target, the HPA                             needs a client
//! validate          what KEDA would refuse                                            pure
//! reconcile         resolve, validate, decide, apply, status                          needs a client
//! poll              samples of the triggers, decide, apply                            needs a client
//! scalers_cache     the scalers of each object, and their last samples                needs a client
//! auth              parameters of a TriggerAuthentication; read by credential_reader  needs a client
//! decide            object, samples and state in, effects out                         pure
//! effect            writes and events that a decision requires, as data               pure
//! apply             performs effects: the writer of scaled resources                  needs a client
//! leader_client     requests; writes only while this replica leads                    needs a client
//! ```
//!
//! Other modules: `operator_identity` decides where credentials of the operator go, `secret_access` which Secrets are read,
//! `external_metrics` and `raw_metrics` serve values, `admission` reviews writes and `admission_events` records their events,
//! `cluster_reader` reads counts, pods and endpoints, `rebuild` follows changed Secrets, `record` keeps decisions,
//! `event_recorder` and `cloud_events` record events, `destination_status` writes whether they arrive,
//! `counters`, `queue_metrics` and `exported_metrics` feed Prometheus, `otlp_names` has the
//! names of OpenTelemetry, `retry` has the delays of failed reconciles,
//! `context`, `object_state` and `health` hold what all share, `handle` builds it all.

mod admission;
mod admission_events;
mod apply;
pub mod auth;
mod background;
mod cloud_events;
mod cluster_reader;
mod context;
mod counters;
mod credential_reader;
mod decide;
mod decision_clock;
mod destination_status;
mod effect;
mod event_recorder;
mod exported_metrics;
mod external_calls;
mod external_metrics;
mod handle;
mod health;
pub mod id;
mod installed_release;
mod leader_client;
mod object_state;
pub mod operator_identity;
pub mod otlp_names;
mod poll;
pub mod poll_scheduler;
mod process;
mod queue_metrics;
mod raw_metrics;
mod rebuild;
mod reconcile;
mod record;
mod resolve;
mod retry;
mod run;
mod scaled_resource;
mod scalers_cache;
pub mod secret_access;
pub mod settings;
mod store;
#[cfg(test)]
mod tests;
mod trigger_failure;
mod unsettled_jobs;
mod validate;
mod watches;

pub use admission::Admission;
pub use cluster_reader::cluster_reader;
pub use external_metrics::MetricError;
pub use handle::{MetricRequestError, OperatorHandle, OperatorParts};
pub use installed_release::installed_profile;
pub use raw_metrics::{MetricRequester, RawMetric, RawMetricsSubscriber};
pub use run::Operator;
pub use scalers_cache::BuildScaler;
pub use settings::{OperatorSettings, ScalingMode};
