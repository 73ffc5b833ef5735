//! aws-kinesis-stream: the number of open shards of a stream.

#[cfg(test)]
mod tests;

use serde_json::json;

use crate::aws::{AwsCredentials, AwsIdentity, AwsRequest, answer, endpoint};
use crate::prelude::*;
use crate::responses::number;

/// The scaler type `aws-kinesis-stream`.
pub const TYPE: ScalerType = ScalerType {
    name: "aws-kinesis-stream",
    about: "How many open shards a stream of Amazon Kinesis has.",
    display: "awsKinesisStreamScaler",
    parameters: Parameters::PARAMETERS,
    build,
    samples: &[Sample::http(
        &[("streamName", "s"), ("awsRegion", "eu-west-1"), ("awsEndpoint", "http://{}")],
        sample::AWS_KEYS,
    )],
    ..ScalerType::DEFAULT
};

crate::parameters! {
    /// Parameters of aws-kinesis-stream.
    pub struct Parameters of "error parsing Kinesis stream metadata" {
        /// The stream.
        stream_name: String = "streamName" in [Metadata], required;
        /// The region.
        region: String = "awsRegion" in [Metadata, Authentication], required;
        /// Target number of shards per replica.
        shard_count: i64 = "shardCount" in [Metadata], default "2";
        /// The trigger is active above this number of shards.
        activation_shard_count: i64 = "activationShardCount" in [Metadata], default "0";
        /// Endpoint URL, if not the one of the region.
        endpoint: Option<String> = "awsEndpoint" in [Metadata];
        /// AWS credentials.
        credentials: AwsCredentials;
    }
}

struct Kinesis {
    parameters: Parameters,
    identity: AwsIdentity,
    within: Duration,
    web: Arc<SharedHttpClient>,
}

fn build(trigger: &Trigger, backends: &Backends) -> Result<Arc<dyn Scaler>, ScalerError> {
    const PREFIX: &str = "error parsing Kinesis stream metadata";
    target_type(trigger)?;
    let parameters = Parameters::read(trigger).map_err(|error| error.inside(PREFIX))?;
    let identity = parameters.credentials.identity(trigger).map_err(|error| error.inside(PREFIX))?;
    let name = format!("aws-kinesis-{}", parameters.stream_name);
    let spec = external(trigger, &name, whole(parameters.shard_count));
    let activation = parameters.activation_shard_count as f64;
    let (within, web) = (trigger.http_timeout, Arc::clone(&backends.web));
    SingleMetricScaler::build(spec, activation, Kinesis { parameters, identity, within, web })
}

impl ValueSource for Kinesis {
    fn value(&self) -> ScalerFuture<'_, f64> {
        Box::pin(async {
            let Parameters { stream_name, region, endpoint: given, .. } = &self.parameters;
            let question = AwsRequest {
                endpoint: &endpoint("kinesis", region, given.as_deref()),
                region,
                service: "kinesis",
                target: "Kinesis_20131202.DescribeStreamSummary",
                version: "1.1",
                body: json!({"StreamName": stream_name}).to_string(),
            };
            let call = question.call(self.identity.keys()?, self.web.now(), self.within)?;
            let (status, body) = send(&self.web, call).await?;
            number(&answer("Kinesis", status, &body)?, "/StreamDescriptionSummary/OpenShardCount")
        })
    }
}
