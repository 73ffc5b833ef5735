//! Scalers, one folder each, and the table that lists them.
//!
//! ```text
//! trigger      a resolved trigger: metadata, credentials, environment
//! parameters   typed and documented parameters of scalers
//! scaler       the scaler interface
//! metric       quantities and metric specs
//! backends     shared state: connections, shared responses, access to the cluster
//! web          the shared HTTP client
//! answers      decoding of responses; `urls` URLs; `single` scalers with one metric; `aws` signatures;
//!              `jolokia`, `search`, `oauth` code shared by several scalers
//! pool, tls    connections of scalers with other protocols than HTTP
//! table        all scaler types
//! NAME/        {mod, query, client, tests}.rs: one scaler; `query` builds requests and decodes responses without IO
//! ```
//!
//! Adding one means one folder and one line in [`table`].

mod answers;
mod aws;
pub mod backends;
mod jolokia;
pub mod metric;
mod oauth;
pub mod parameters;
#[cfg(any(feature = "postgresql", feature = "rabbitmq-amqp", feature = "redis"))]
mod pool;
mod scaler;
mod search;
mod single;
#[cfg(test)]
mod stage;
pub mod table;
mod tls;
mod trigger;
mod urls;
pub mod web;

pub mod activemq;
pub mod arangodb;
pub mod artemis;
pub mod aws_dynamodb;
pub mod aws_dynamodb_streams;
pub mod aws_kinesis_stream;
pub mod aws_sqs;
pub mod azure_queue;
pub mod azure_servicebus;
pub mod beanstalkd;
pub mod couchdb;
pub mod cpu;
pub mod cron;
pub mod datadog;
pub mod dynatrace;
pub mod elasticsearch;
pub mod etcd;
pub mod external;
pub mod forgejo_runner;
pub mod github_runner;
pub mod graphite;
pub mod ibmmq;
pub mod influxdb;
pub mod kubernetes_resource;
pub mod kubernetes_workload;
pub mod loki;
pub mod metrics_api;
pub mod nats_jetstream;
pub mod new_relic;
pub mod nsq;
pub mod opensearch;
#[cfg_attr(not(feature = "postgresql"), allow(dead_code, unused_imports))]
pub mod postgresql;
pub mod prometheus;
pub mod pulsar;
#[cfg_attr(not(feature = "rabbitmq-amqp"), allow(dead_code))]
pub mod rabbitmq;
#[cfg_attr(not(feature = "redis"), allow(dead_code, unused_imports))]
pub mod redis;
pub mod selenium_grid;
pub mod solace_event_queue;
pub mod solr;
pub mod splunk;

pub use scaler::{MetricValue, Reading, Scaler, ScalerError, ScalerFuture};
pub use trigger::{Owner, Trigger};
