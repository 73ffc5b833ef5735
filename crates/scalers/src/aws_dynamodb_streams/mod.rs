//! aws-dynamodb-streams: the number of shards of a table's stream.

#[cfg(test)]
mod tests;

use serde_json::{Value, json};

use crate::aws::{AwsCredentials, AwsIdentity, AwsRequest, answer, endpoint};
use crate::prelude::*;
use crate::responses::kind;

/// Maximum number of pages that are read.
const MAX_PAGES: usize = 100;

/// The scaler type `aws-dynamodb-streams`.
pub const TYPE: ScalerType = ScalerType {
    name: "aws-dynamodb-streams",
    about: "How many shards the stream of an Amazon DynamoDB table has.",
    display: "awsDynamoDBStreamsScaler",
    parameters: Parameters::PARAMETERS,
    build,
    samples: &[Sample::http(
        &[("tableName", "t"), ("awsRegion", "eu-west-1"), ("awsEndpoint", "http://{}")],
        sample::AWS_KEYS,
    )],
    ..ScalerType::DEFAULT
};

crate::parameters! {
    /// Parameters of aws-dynamodb-streams.
    pub struct Parameters of "error parsing dynamodb stream metadata" {
        /// The table.
        table_name: String = "tableName" in [Metadata], required;
        /// The region.
        region: String = "awsRegion" in [Metadata], required;
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

struct Streams {
    parameters: Parameters,
    identity: AwsIdentity,
    within: Duration,
    web: Arc<SharedHttpClient>,
}

fn build(trigger: &Trigger, backends: &Backends) -> Result<Arc<dyn Scaler>, ScalerError> {
    const PREFIX: &str = "error parsing dynamodb stream metadata";
    target_type(trigger)?;
    let parameters = Parameters::read(trigger).map_err(|error| error.inside(PREFIX))?;
    let identity = parameters.credentials.identity(trigger).map_err(|error| error.inside(PREFIX))?;
    let name = format!("aws-dynamodb-streams-{}", parameters.table_name);
    let spec = external(trigger, &name, whole(parameters.shard_count));
    let activation = parameters.activation_shard_count as f64;
    let (within, web) = (trigger.http_timeout, Arc::clone(&backends.web));
    SingleMetricScaler::build(spec, activation, Streams { parameters, identity, within, web })
}

impl Streams {
    async fn asked(&self, host: &str, target: &str, body: Value) -> Result<Value, ScalerError> {
        let Parameters { region, endpoint: given, .. } = &self.parameters;
        let question = AwsRequest {
            endpoint: &endpoint(host, region, given.as_deref()),
            region,
            service: "dynamodb",
            target,
            version: "1.0",
            body: body.to_string(),
        };
        let call = question.call(self.identity.keys()?, self.web.now(), self.within)?;
        let (status, body) = send(&self.web, call).await?;
        answer("DynamoDB", status, &body)
    }

    /// The stream of the table.
    async fn stream(&self) -> Result<String, ScalerError> {
        let table = &self.parameters.table_name;
        let body = json!({"TableName": table});
        let answer = self.asked("dynamodb", "DynamoDB_20120810.DescribeTable", body).await?;
        let stream = answer.pointer("/Table/LatestStreamArn").and_then(Value::as_str);
        stream.map(str::to_owned).ok_or_else(|| scaler_error!("table {table} has no stream"))
    }
}

impl ValueSource for Streams {
    fn value(&self) -> ScalerFuture<'_, f64> {
        Box::pin(async {
            let mut body = json!({"StreamArn": self.stream().await?});
            let mut count = 0;
            for _ in 0..MAX_PAGES {
                let target = "DynamoDBStreams_20120810.DescribeStream";
                let answer = self.asked("streams.dynamodb", target, body.clone()).await?;
                let shards = answer.pointer("/StreamDescription/Shards");
                let some = shards.and_then(Value::as_array).map(Vec::len);
                count += some.ok_or_else(|| {
                    scaler_error!("DynamoDB answered {} at Shards instead of a list", kind(shards))
                })?;
                match (answer.pointer("/StreamDescription/LastEvaluatedShardId"), body.as_object_mut()) {
                    (Some(last @ Value::String(_)), Some(body)) => {
                        body.insert("ExclusiveStartShardId".to_owned(), last.clone());
                    }
                    _ => return Ok(count as f64),
                }
            }
            Err(scaler_error!("the stream has more than {MAX_PAGES} pages of shards"))
        })
    }
}
