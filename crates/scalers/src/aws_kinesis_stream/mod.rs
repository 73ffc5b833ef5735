//! aws-kinesis-stream: the number of open shards of a stream.

#[cfg(test)]
mod tests;

use serde_json::json;

use crate::aws::{AwsClient, AwsCredentials, AwsRequest, answer};
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
        /// Target number of shards per replica.
        shard_count: i64 = "shardCount" in [Metadata], default "2";
        /// The trigger is active above this number of shards.
        activation_shard_count: i64 = "activationShardCount" in [Metadata], default "0";
        /// The stream.
        stream_name: String = "streamName" in [Metadata], required;
        /// The region.
        region: String = "awsRegion" in [Metadata, Authentication], required;
        /// AWS endpoint and credentials.
        credentials: AwsCredentials;
    }
}

struct Kinesis {
    stream_name: String,
    client: AwsClient,
}

fn build(trigger: &Trigger, backends: &Backends) -> Result<Arc<dyn Scaler>, ScalerError> {
    const PREFIX: &str = "error parsing Kinesis stream metadata";
    target_type(trigger)?;
    let parameters = Parameters::read(trigger).map_err(|error| error.inside(PREFIX))?;
    let Parameters { stream_name, region, shard_count, activation_shard_count, credentials } = parameters;
    let client = AwsClient::new(&region, &credentials, trigger, backends);
    let client = client.map_err(|error| error.inside(PREFIX))?;
    let spec = external(trigger, &format!("aws-kinesis-{stream_name}"), whole(shard_count));
    SingleMetricScaler::build(spec, activation_shard_count as f64, Kinesis { stream_name, client })
}

impl ValueSource for Kinesis {
    fn value(&self) -> ScalerFuture<'_, f64> {
        Box::pin(async {
            let request = AwsRequest {
                host: "kinesis",
                service: "kinesis",
                target: "Kinesis_20131202.DescribeStreamSummary",
                version: "1.1",
                body: json!({"StreamName": self.stream_name}).to_string(),
            };
            let (status, body) = self.client.send(request).await?;
            number(&answer("Kinesis", status, &body)?, "/StreamDescriptionSummary/OpenShardCount")
        })
    }
}
