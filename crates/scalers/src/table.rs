//! All scalers.

#[cfg(test)]
mod tests;

use std::sync::Arc;

use api::yaml::nearest as nearest_word;

use crate::backends::Backends;
use crate::parameters::Parameter;
use crate::{Error, Scaler, Trigger};
use crate::{
    activemq, arangodb, artemis, aws_dynamodb, aws_dynamodb_streams, aws_kinesis_stream, aws_sqs,
    azure_queue, azure_servicebus, beanstalkd, couchdb, cpu, cron, datadog, dynatrace, elasticsearch, etcd,
    external, forgejo_runner, github_runner, graphite, ibmmq, influxdb, kubernetes_resource,
    kubernetes_workload, loki, metrics_api, nats_jetstream, new_relic, nsq, opensearch, postgresql,
    prometheus, pulsar, rabbitmq, redis, selenium_grid, solace_event_queue, solr, splunk,
};

/// One type of scaler.
pub struct Type {
    /// What stands in `type`.
    pub name: &'static str,
    /// What it measures, in one sentence.
    pub about: &'static str,
    /// How it is called in Prometheus metrics where a trigger has no name; dashboards filter on it.
    pub display: &'static str,
    /// What it accepts.
    pub parameters: &'static [Parameter],
    /// Whether it tells of activity itself.
    pub push: bool,
    /// Makes one; does not connect to anything.
    pub build: Build,
}

/// Makes a scaler of a trigger.
pub type Build = fn(&Trigger, &Backends) -> Result<Arc<dyn Scaler>, Error>;

/// All of them, by name. Each folder says what it is; this is the list.
pub const TABLE: &[Type] = &[
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

/// The type of this name.
pub fn find(name: &str) -> Option<&'static Type> {
    TABLE.iter().find(|scaler| scaler.name == name)
}

/// The type that was probably meant.
pub fn nearest(name: &str) -> Option<&'static Type> {
    nearest_word(name, TABLE.iter().map(|scaler| scaler.name)).and_then(find)
}

/// Makes the scaler of a trigger: `no scaler found for type: X` (and what was probably meant) if there is none.
pub fn build(trigger: &Trigger, backends: &Backends) -> Result<Arc<dyn Scaler>, Error> {
    if let Some(scaler) = find(&trigger.type_) {
        return (scaler.build)(trigger, backends);
    }
    let mut text = format!("no scaler found for type: {}", trigger.type_);
    if !backends.compat.is_strict()
        && let Some(meant) = nearest(&trigger.type_)
    {
        text.push_str(&format!("; did you mean {}?", meant.name));
    }
    Err(Error::new(text))
}
