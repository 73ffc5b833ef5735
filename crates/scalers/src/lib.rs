//! Event sources, one folder each, and the one table that lists them.
//!
//! ```text
//! trigger      what a trigger was given: metadata, credentials, environment
//! parameters   what a scaler accepts: typed, documented, read all at once
//! scaler       what a scaler can be asked
//! backends     what scalers share: connections, answers to the same question, the cluster
//! table        all scalers
//! NAME/        {mod, query, client, tests}.rs: one scaler; `query` builds questions and reads answers without IO
//! ```
//!
//! Adding one means one folder and one line in [`table`].

pub mod backends;
pub mod parameters;
mod scaler;
pub mod table;
mod trigger;

pub mod cpu;
pub mod cron;
pub mod external;
pub mod kubernetes_workload;
pub mod metrics_api;
pub mod postgresql;
pub mod prometheus;
pub mod rabbitmq;
pub mod redis;

pub use scaler::{Answer, Error, MetricValue, Reading, Scaler};
pub use trigger::{Owner, Trigger};
