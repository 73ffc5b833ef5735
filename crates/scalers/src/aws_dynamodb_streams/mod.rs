//! aws-dynamodb-streams: the number of shards of a table's stream.

#[cfg(test)]
mod tests;

use serde_json::{Value, json};

use crate::aws::{AwsClient, AwsCredentials, AwsRequest, answer};
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
        /// Target number of shards per replica.
        shard_count: i64 = "shardCount" in [Metadata], default "2";
        /// The trigger is active above this number of shards.
        activation_shard_count: i64 = "activationShardCount" in [Metadata], default "0";
        /// The table.
        table_name: String = "tableName" in [Metadata], required;
        /// The region.
        region: String = "awsRegion" in [Metadata, Authentication], required;
        /// AWS endpoint and credentials.
        credentials: AwsCredentials;
    }
}

struct Streams {
    table_name: String,
    client: AwsClient,
}

fn build(trigger: &Trigger, backends: &Backends) -> Result<Arc<dyn Scaler>, ScalerError> {
    const PREFIX: &str = "error parsing dynamodb stream metadata";
    target_type(trigger)?;
    let parameters = Parameters::read(trigger).map_err(|error| error.inside(PREFIX))?;
    let Parameters { table_name, region, shard_count, activation_shard_count, credentials } = parameters;
    let client = AwsClient::new(&region, &credentials, trigger, backends);
    let client = client.map_err(|error| error.inside(PREFIX))?;
    let spec = external(trigger, &format!("aws-dynamodb-streams-{table_name}"), whole(shard_count));
    SingleMetricScaler::build(spec, activation_shard_count as f64, Streams { table_name, client })
}

impl Streams {
    async fn send(&self, host: &str, target: &str, body: Value) -> Result<Value, ScalerError> {
        let body = body.to_string();
        let request = AwsRequest { host, service: "dynamodb", target, version: "1.0", body };
        let (status, body) = self.client.send(request).await?;
        answer("DynamoDB", status, &body)
    }

    /// The stream of the table.
    async fn stream(&self) -> Result<String, ScalerError> {
        let table = &self.table_name;
        let body = json!({"TableName": table});
        let answer = self.send("dynamodb", "DynamoDB_20120810.DescribeTable", body).await?;
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
                let answer = self.send("streams.dynamodb", target, body.clone()).await?;
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
