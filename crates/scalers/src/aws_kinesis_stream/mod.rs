//! aws-kinesis-stream: open shards of a stream.

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::json;

use crate::answers::number;
use crate::aws::{Credentials, Identity, Question, answer, endpoint};
use crate::backends::Backends;
use crate::metric::{external, target_type, whole};
use crate::single::{Single, Source, ask};
use crate::table::Type;
use crate::web::Web;
use crate::{Answer, Error, Scaler, Trigger};

/// aws-kinesis-stream.
pub const TYPE: Type = Type {
    name: "aws-kinesis-stream",
    about: "How many open shards a stream of Amazon Kinesis has.",
    display: "awsKinesisStreamScaler",
    parameters: Parameters::PARAMETERS,
    push: false,
    build,
};

crate::parameters! {
    /// What aws-kinesis-stream accepts.
    pub struct Parameters of "error parsing Kinesis stream metadata" {
        /// The stream.
        stream_name: String = "streamName" in [Metadata], required;
        /// The region.
        region: String = "awsRegion" in [Metadata, Authentication], required;
        /// How many shards one replica is for.
        shard_count: i64 = "shardCount" in [Metadata], default "2";
        /// The trigger is active above so many shards.
        activation_shard_count: i64 = "activationShardCount" in [Metadata], default "0";
        /// Where Kinesis is, if not at Amazon.
        endpoint: Option<String> = "awsEndpoint" in [Metadata];
        /// Who asks.
        credentials: Credentials;
    }
}

struct Kinesis {
    parameters: Parameters,
    identity: Identity,
    within: Duration,
    web: Arc<Web>,
}

fn build(trigger: &Trigger, backends: &Backends) -> Result<Arc<dyn Scaler>, Error> {
    const PREFIX: &str = "error parsing Kinesis stream metadata";
    target_type(trigger)?;
    let parameters = Parameters::read(trigger).map_err(|error| error.inside(PREFIX))?;
    let identity = parameters.credentials.identity(trigger).map_err(|error| error.inside(PREFIX))?;
    let name = format!("aws-kinesis-{}", parameters.stream_name);
    let spec = external(trigger, &name, whole(parameters.shard_count));
    let activation = parameters.activation_shard_count as f64;
    let (within, web) = (trigger.http_timeout, Arc::clone(&backends.web));
    Ok(Arc::new(Single { spec, activation, source: Kinesis { parameters, identity, within, web } }))
}

impl Source for Kinesis {
    fn value(&self) -> Answer<'_, f64> {
        Box::pin(async {
            let Parameters { stream_name, region, endpoint: given, .. } = &self.parameters;
            let question = Question {
                endpoint: &endpoint("kinesis", region, given.as_deref()),
                region,
                service: "kinesis",
                target: "Kinesis_20131202.DescribeStreamSummary",
                version: "1.1",
                body: json!({"StreamName": stream_name}).to_string(),
            };
            let call = question.call(self.identity.keys()?, Timestamp::now(), self.within)?;
            let (status, body) = ask(&self.web, call).await?;
            number(&answer("Kinesis", status, &body)?, "/StreamDescriptionSummary/OpenShardCount")
        })
    }
}
