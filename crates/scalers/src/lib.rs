//! Event sources, one folder each, and the one table that lists them.
//!
//! ```text
//! trigger      what a trigger was given: metadata, credentials, environment
//! parameters   what a scaler accepts: typed, documented, read all at once
//! scaler       what a scaler can be asked
//! metric       numbers as quantities, and metrics as an HPA names them
//! backends     what scalers share: connections, answers to the same question, the cluster
//! web          HTTP that scalers share
//! answers      JSON and numbers in what servers say; `urls` addresses; `single` scalers of one metric; `aws` signatures;
//!              `jolokia`, `search`, `oauth` what several products have in common
//! pool, tls    connections of scalers that do not speak HTTP
//! table        all scalers
//! NAME/        {mod, query, client, tests}.rs: one scaler; `query` builds questions and reads answers without IO
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

pub use scaler::{Answer, Error, MetricValue, Reading, Scaler};
pub use trigger::{Owner, Trigger};
