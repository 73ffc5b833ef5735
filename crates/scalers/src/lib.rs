//! Scalers, one folder each, and the table that lists them.
//!
//! ```text
//! trigger      a resolved trigger: metadata, credentials, environment
//! parameters   typed and documented parameters of scalers; `patterns` regular expressions in them
//! scaler       the scaler interface
//! metric       quantities and metric specs
//! backends     shared state: connections, shared responses, access to the cluster
//! web          the shared HTTP client
//! off_thread   large responses are decoded on worker threads; `tree` JSON of bounded size
//! identity     credentials at clouds; `secret_managers` secrets of clouds
//! responses    decoding of responses; `xml` elements; `urls` URLs; `single` scalers with one metric; `aws` signatures;
//!              `azure_client`, `azure_clouds`, `azure_storage`, `google_credentials`, `google_client`, `google_monitoring`,
//!              `jolokia`, `keystone`, `search`, `oauth` code shared by several scalers
//! pool, tls    connections of scalers with other protocols than HTTP; `sources::dial` opens them, `stream` adds TLS;
//!              `grpc` channels of gRPC, `encrypted_key` keys with a password, `scram` logins, `kafka_client` the lag of consumer groups
//! wake         streams on which sources report that they are to be queried before the next poll
//! tenant_files files that triggers name
//! table        all scaler types
//! NAME/        {mod, query, client, tests}.rs: one scaler; `query` builds requests and decodes responses without IO
//! ```
//!
//! A new scaler is one folder and one line in `scaler_folders!` below: `plimsoll scalers new NAME` writes both.

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests may read the clock of the machine"))]

// First: its macros are used by all other modules.
#[macro_use]
mod scaler;

mod aws;
mod azure_client;
mod azure_clouds;
mod azure_storage;
pub mod backends;
mod encrypted_key;
// What `plimsoll scalers new` writes, under another name. Tests treat it as a type, so that it is known to work.
#[cfg(test)]
pub mod example_queue;
mod google_client;
mod google_credentials;
mod google_monitoring;
mod grpc;
pub mod identity;
mod jolokia;
mod kafka_client;
mod keystone;
pub mod metric;
mod oauth;
pub mod off_thread;
pub mod parameters;
mod parse_error;
mod patterns;
mod pool;
mod prelude;
mod responses;
mod scram;
mod search;
pub mod secret_managers;
mod single;
mod stream;
pub mod table;
pub mod tenant_files;
#[cfg(test)]
mod test_support;
mod tls;
mod tree;
mod trigger;
mod urls;
mod wake;
pub mod web;
mod xml;

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
    aws_cloudwatch: [TYPE];
    aws_dynamodb: [TYPE];
    aws_dynamodb_streams: [TYPE];
    aws_kinesis_stream: [TYPE];
    aws_sqs: [TYPE];
    azure_app_insights: [TYPE];
    azure_blob: [TYPE];
    azure_cosmosdb: [TYPE];
    azure_data_explorer: [TYPE];
    azure_eventhub: [TYPE];
    azure_log_analytics: [TYPE];
    azure_monitor: [TYPE];
    azure_pipelines: [TYPE];
    azure_queue: [TYPE];
    azure_servicebus: [TYPE];
    beanstalkd: [TYPE];
    cassandra: [TYPE];
    clickhouse: [TYPE];
    couchdb: [TYPE];
    cpu: [CPU, MEMORY];
    cron: [TYPE];
    datadog: [TYPE];
    dynatrace: [TYPE];
    elastic_forecast: [TYPE];
    elasticsearch: [TYPE];
    etcd: [TYPE];
    external: [TYPE, PUSH];
    forgejo_runner: [TYPE];
    gcp_cloudtasks: [TYPE];
    gcp_pubsub: [TYPE];
    gcp_spanner: [TYPE];
    gcp_stackdriver: [TYPE];
    gcp_storage: [TYPE];
    github_runner: [TYPE];
    graphite: [TYPE];
    huawei_cloudeye: [TYPE];
    ibmmq: [TYPE];
    influxdb: [TYPE];
    kafka: [TYPE, APACHE];
    kubernetes_resource: [TYPE];
    kubernetes_workload: [TYPE];
    liiklus: [TYPE];
    loki: [TYPE];
    metrics_api: [TYPE];
    mongodb: [TYPE];
    mssql: [TYPE];
    mysql: [TYPE];
    nats_jetstream: [TYPE];
    new_relic: [TYPE];
    nsq: [TYPE];
    opensearch: [TYPE];
    openstack_metric: [TYPE];
    openstack_swift: [TYPE];
    #[cfg_attr(not(feature = "postgresql"), allow(dead_code, unused_imports))]
    postgresql: [TYPE];
    predictkube: [TYPE];
    prometheus: [TYPE];
    pulsar: [TYPE];
    #[cfg_attr(not(feature = "rabbitmq-amqp"), allow(dead_code))]
    rabbitmq: [TYPE];
    #[cfg_attr(not(feature = "redis"), allow(dead_code, unused_imports))]
    redis: [TYPE, CLUSTER, CLUSTER_STREAMS, SENTINEL, SENTINEL_STREAMS, STREAMS];
    selenium_grid: [TYPE];
    solace_direct_messaging: [TYPE];
    solace_event_queue: [TYPE];
    solarwinds: [TYPE];
    solr: [TYPE];
    splunk: [TYPE];
    splunk_observability: [TYPE];
    sumologic: [TYPE];
    temporal: [TYPE];
}

pub use api::reading::{Reading, ReadingValue};
pub use parse_error::ParseError;
pub use scaler::{HttpStatusError, Scaler, ScalerError, ScalerFuture, SourceRefusal, WakeFuture};
pub use sources::dial;
pub use trigger::{Owner, Trigger};
pub use wake::{StreamPermits, stream_permits};
