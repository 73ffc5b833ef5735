//! aws-dynamodb-streams: shards of a table's stream.

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::answers::kind;
use crate::aws::{Credentials, Identity, Question, answer, endpoint};
use crate::backends::Backends;
use crate::metric::{external, target_type, whole};
use crate::single::{Single, Source, ask};
use crate::table::Type;
use crate::web::Web;
use crate::{Answer, Error, Scaler, Trigger};

/// More pages than this are not read.
const PAGES: usize = 100;

/// aws-dynamodb-streams.
pub const TYPE: Type = Type {
    name: "aws-dynamodb-streams",
    about: "How many shards the stream of an Amazon DynamoDB table has.",
    display: "awsDynamoDBStreamsScaler",
    parameters: Parameters::PARAMETERS,
    push: false,
    build,
};

crate::parameters! {
    /// What aws-dynamodb-streams accepts.
    pub struct Parameters of "error parsing dynamodb stream metadata" {
        /// The table.
        table_name: String = "tableName" in [Metadata], required;
        /// The region.
        region: String = "awsRegion" in [Metadata], required;
        /// How many shards one replica is for.
        shard_count: i64 = "shardCount" in [Metadata], default "2";
        /// The trigger is active above so many shards.
        activation_shard_count: i64 = "activationShardCount" in [Metadata], default "0";
        /// Where DynamoDB is, if not at Amazon.
        endpoint: Option<String> = "awsEndpoint" in [Metadata];
        /// Who asks.
        credentials: Credentials;
    }
}

struct Streams {
    parameters: Parameters,
    identity: Identity,
    within: Duration,
    web: Arc<Web>,
}

fn build(trigger: &Trigger, backends: &Backends) -> Result<Arc<dyn Scaler>, Error> {
    const PREFIX: &str = "error parsing dynamodb stream metadata";
    target_type(trigger)?;
    let parameters = Parameters::read(trigger).map_err(|error| error.inside(PREFIX))?;
    let identity = parameters.credentials.identity(trigger).map_err(|error| error.inside(PREFIX))?;
    let name = format!("aws-dynamodb-streams-{}", parameters.table_name);
    let spec = external(trigger, &name, whole(parameters.shard_count));
    let activation = parameters.activation_shard_count as f64;
    let (within, web) = (trigger.http_timeout, Arc::clone(&backends.web));
    Ok(Arc::new(Single { spec, activation, source: Streams { parameters, identity, within, web } }))
}

impl Streams {
    async fn asked(&self, host: &str, target: &str, body: Value) -> Result<Value, Error> {
        let Parameters { region, endpoint: given, .. } = &self.parameters;
        let question = Question {
            endpoint: &endpoint(host, region, given.as_deref()),
            region,
            service: "dynamodb",
            target,
            version: "1.0",
            body: body.to_string(),
        };
        let call = question.call(self.identity.keys()?, Timestamp::now(), self.within)?;
        let (status, body) = ask(&self.web, call).await?;
        answer("DynamoDB", status, &body)
    }

    /// The stream of the table.
    async fn stream(&self) -> Result<String, Error> {
        let table = &self.parameters.table_name;
        let body = json!({"TableName": table});
        let answer = self.asked("dynamodb", "DynamoDB_20120810.DescribeTable", body).await?;
        let stream = answer.pointer("/Table/LatestStreamArn").and_then(Value::as_str);
        stream.map(str::to_owned).ok_or_else(|| Error::new(format!("table {table} has no stream")))
    }
}

impl Source for Streams {
    fn value(&self) -> Answer<'_, f64> {
        Box::pin(async {
            let mut body = json!({"StreamArn": self.stream().await?});
            let mut count = 0;
            for _ in 0..PAGES {
                let target = "DynamoDBStreams_20120810.DescribeStream";
                let answer = self.asked("streams.dynamodb", target, body.clone()).await?;
                let shards = answer.pointer("/StreamDescription/Shards");
                let some = shards.and_then(Value::as_array).map(Vec::len);
                count += some.ok_or_else(|| {
                    Error::new(format!("DynamoDB answered {} at Shards instead of a list", kind(shards)))
                })?;
                match (answer.pointer("/StreamDescription/LastEvaluatedShardId"), body.as_object_mut()) {
                    (Some(last @ Value::String(_)), Some(body)) => {
                        body.insert("ExclusiveStartShardId".to_owned(), last.clone());
                    }
                    _ => return Ok(count as f64),
                }
            }
            Err(Error::new(format!("the stream has more than {PAGES} pages of shards")))
        })
    }
}
