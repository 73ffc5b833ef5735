//! Scalers, one folder each, and the table that lists them.
//!
//! ```text
//! trigger      a resolved trigger: metadata, credentials, environment
//! parameters   typed and documented parameters of scalers
//! scaler       the scaler interface
//! metric       quantities and metric specs
//! backends     shared state: connections, shared responses, access to the cluster
//! web          the shared HTTP client
//! off_thread   large responses are decoded on worker threads; `tree` JSON of bounded size
//! responses    decoding of responses; `urls` URLs; `single` scalers with one metric; `aws` signatures;
//!              `jolokia`, `search`, `oauth` code shared by several scalers
//! unqueried    types whose parameters are checked but whose source is not queried yet
//! pool, tls    connections of scalers with other protocols than HTTP; `sources::dial` opens them
//! tenant_files files that triggers name
//! table        all scaler types
//! NAME/        {mod, query, client, tests}.rs: one scaler; `query` builds requests and decodes responses without IO
//! ```
//!
//! A new scaler is one folder and one line in `scaler_folders!` below; CONTRIBUTING shows how.

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests may read the clock of the machine"))]

// First: its macros are used by all other modules.
#[macro_use]
mod scaler;

mod aws;
pub mod backends;
pub mod clock;
mod jolokia;
pub mod metric;
mod oauth;
pub mod off_thread;
pub mod parameters;
mod parse_error;
#[cfg(any(feature = "postgresql", feature = "rabbitmq-amqp", feature = "redis"))]
mod pool;
mod prelude;
mod responses;
mod search;
mod single;
pub mod table;
pub mod tenant_files;
#[cfg(test)]
mod test_support;
mod tls;
mod tree;
mod trigger;
mod unqueried;
mod urls;
pub mod web;

/// Declares the folder of each scaler and lists its types.
macro_rules! scaler_folders {
    ($($(#[$attribute:meta])* $folder:ident: [$($type:ident),+];)*) => {
        $($(#[$attribute])* pub mod $folder;)*

        /// The types of all folders.
        const TYPES: &[&table::ScalerType] = &[$($(&$folder::$type),+),*];
    };
}

// A new scaler is a folder and a line here.
scaler_folders! {
    activemq: [TYPE];
    arangodb: [TYPE];
    artemis: [TYPE];
    aws_dynamodb: [TYPE];
    aws_dynamodb_streams: [TYPE];
    aws_kinesis_stream: [TYPE];
    aws_sqs: [TYPE];
    azure_queue: [TYPE];
    azure_servicebus: [TYPE];
    beanstalkd: [TYPE];
    couchdb: [TYPE];
    cpu: [CPU, MEMORY];
    cron: [TYPE];
    datadog: [TYPE];
    dynatrace: [TYPE];
    elasticsearch: [TYPE];
    etcd: [TYPE];
    external: [TYPE, PUSH];
    forgejo_runner: [TYPE];
    github_runner: [TYPE];
    graphite: [TYPE];
    ibmmq: [TYPE];
    influxdb: [TYPE];
    kafka: [TYPE, APACHE];
    kubernetes_resource: [TYPE];
    kubernetes_workload: [TYPE];
    loki: [TYPE];
    metrics_api: [TYPE];
    mongodb: [TYPE];
    mysql: [TYPE];
    nats_jetstream: [TYPE];
    new_relic: [TYPE];
    nsq: [TYPE];
    opensearch: [TYPE];
    #[cfg_attr(not(feature = "postgresql"), allow(dead_code, unused_imports))]
    postgresql: [TYPE];
    prometheus: [TYPE];
    pulsar: [TYPE];
    #[cfg_attr(not(feature = "rabbitmq-amqp"), allow(dead_code))]
    rabbitmq: [TYPE];
    #[cfg_attr(not(feature = "redis"), allow(dead_code, unused_imports))]
    redis: [TYPE, CLUSTER, CLUSTER_STREAMS, SENTINEL, SENTINEL_STREAMS, STREAMS];
    selenium_grid: [TYPE];
    solace_event_queue: [TYPE];
    solr: [TYPE];
    splunk: [TYPE];
}

pub use parse_error::ParseError;
pub use scaler::{MetricValue, Reading, Scaler, ScalerError, ScalerFuture};
pub use sources::dial;
pub use trigger::{Owner, Trigger};
