//! The table of all scaler types.

#[cfg(test)]
mod tests;

use std::sync::Arc;

use api::yaml::nearest as nearest_word;

use crate::backends::Backends;
use crate::parameters::Parameter;
use crate::{Scaler, ScalerError, Trigger};
use crate::{
    activemq, arangodb, artemis, aws_dynamodb, aws_dynamodb_streams, aws_kinesis_stream, aws_sqs,
    azure_queue, azure_servicebus, beanstalkd, couchdb, cpu, cron, datadog, dynatrace, elasticsearch, etcd,
    external, forgejo_runner, github_runner, graphite, ibmmq, influxdb, kubernetes_resource,
    kubernetes_workload, loki, metrics_api, nats_jetstream, new_relic, nsq, opensearch, postgresql,
    prometheus, pulsar, rabbitmq, redis, selenium_grid, solace_event_queue, solr, splunk,
};

/// A scaler type: everything that is specific to it.
pub struct ScalerType {
    /// The name in `type` of a trigger.
    pub name: &'static str,
    /// What it measures, in one sentence.
    pub about: &'static str,
    /// The value of the label `scaler` in Prometheus metrics for triggers without a name; dashboards filter on it.
    pub display: &'static str,
    /// Its parameters.
    pub parameters: &'static [Parameter],
    /// Whether it is a push scaler.
    pub push: bool,
    /// Builds a scaler without connecting.
    pub build: BuildScaler,
}

/// Builds the scaler of a trigger.
pub type BuildScaler = fn(&Trigger, &Backends) -> Result<Arc<dyn Scaler>, ScalerError>;

/// All scaler types, sorted by name.
pub const SCALER_TYPES: &[ScalerType] = &[
    activemq::TYPE,
    arangodb::TYPE,
    artemis::TYPE,
    aws_dynamodb::TYPE,
    aws_dynamodb_streams::TYPE,
    aws_kinesis_stream::TYPE,
    aws_sqs::TYPE,
    azure_queue::TYPE,
    azure_servicebus::TYPE,
    beanstalkd::TYPE,
    couchdb::TYPE,
    cpu::CPU,
    cron::TYPE,
    datadog::TYPE,
    dynatrace::TYPE,
    elasticsearch::TYPE,
    etcd::TYPE,
    external::TYPE,
    external::PUSH,
    forgejo_runner::TYPE,
    github_runner::TYPE,
    graphite::TYPE,
    ibmmq::TYPE,
    influxdb::TYPE,
    kubernetes_resource::TYPE,
    kubernetes_workload::TYPE,
    loki::TYPE,
    cpu::MEMORY,
    metrics_api::TYPE,
    nats_jetstream::TYPE,
    new_relic::TYPE,
    nsq::TYPE,
    opensearch::TYPE,
    postgresql::TYPE,
    prometheus::TYPE,
    pulsar::TYPE,
    rabbitmq::TYPE,
    redis::TYPE,
    redis::CLUSTER,
    redis::CLUSTER_STREAMS,
    redis::SENTINEL,
    redis::SENTINEL_STREAMS,
    redis::STREAMS,
    selenium_grid::TYPE,
    solace_event_queue::TYPE,
    solr::TYPE,
    splunk::TYPE,
];

/// The scaler type with this name.
pub fn find(name: &str) -> Option<&'static ScalerType> {
    SCALER_TYPES.iter().find(|scaler| scaler.name == name)
}

/// The scaler type with the most similar name.
pub fn nearest(name: &str) -> Option<&'static ScalerType> {
    nearest_word(name, SCALER_TYPES.iter().map(|scaler| scaler.name)).and_then(find)
}

/// Builds the scaler of a trigger. The error for unknown types is `no scaler found for type: X`, with the most similar name.
pub fn build(trigger: &Trigger, backends: &Backends) -> Result<Arc<dyn Scaler>, ScalerError> {
    if let Some(scaler) = find(&trigger.type_) {
        return (scaler.build)(trigger, backends);
    }
    let mut text = format!("no scaler found for type: {}", trigger.type_);
    if !backends.compat.is_strict()
        && let Some(meant) = nearest(&trigger.type_)
    {
        text.push_str(&format!("; did you mean {}?", meant.name));
    }
    Err(ScalerError::new(text))
}
