//! aws-dynamodb: the number of items that a query returns.

#[cfg(test)]
mod tests;

use serde_json::{Map, Value};

use crate::aws::{AwsClient, AwsCredentials, AwsRequest, answer};
use crate::prelude::*;
use crate::responses::number;

/// Maximum number of pages that are read.
const MAX_PAGES: usize = 100;

/// The scaler type `aws-dynamodb`.
pub const TYPE: ScalerType = ScalerType {
    name: "aws-dynamodb",
    about: "How many items of an Amazon DynamoDB table a query finds.",
    display: "awsDynamoDBScaler",
    parameters: Parameters::PARAMETERS,
    build,
    samples: &[Sample::http(
        &[
            ("tableName", "t"),
            ("awsRegion", "eu-west-1"),
            ("keyConditionExpression", "#a = :a"),
            ("expressionAttributeNames", r##"{"#a": "a"}"##),
            ("expressionAttributeValues", r#"{":a": {"S": "x"}}"#),
            ("targetValue", "5"),
            ("awsEndpoint", "http://{}"),
        ],
        sample::AWS_KEYS,
    )],
    ..ScalerType::DEFAULT
};

crate::parameters! {
    /// Parameters of aws-dynamodb.
    pub struct Parameters of "error parsing DynamoDb metadata" {
        /// The table.
        table_name: String = "tableName" in [Metadata], required;
        /// The region.
        region: String = "awsRegion" in [Metadata, Authentication], required;
        /// The key condition, e.g. `#status = :open`.
        condition: String = "keyConditionExpression" in [Metadata], required;
        /// The index to query instead of the table.
        index_name: Option<String> = "indexName" in [Metadata];
        /// Target number of items per replica.
        target_value: Option<i64> = "targetValue" in [Metadata];
        /// The trigger is active above this number of items.
        activation_target_value: i64 = "activationTargetValue" in [Metadata], default "0";
        /// A condition on other attributes, e.g. `#size > :small`; items that do not meet it are not counted.
        filter: Option<String> = "filterExpression" in [Metadata];
        /// Attribute names in the condition, e.g. `{"#status": "status"}`.
        names: String = "expressionAttributeNames" in [Metadata], required;
        /// Attribute values in the condition, e.g. `{":open": {"S": "open"}}`.
        values: String = "expressionAttributeValues" in [Metadata], required;
        /// AWS endpoint and credentials.
        credentials: AwsCredentials;
    }
}

struct DynamoDb {
    /// The request body without the page.
    query: Map<String, Value>,
    client: AwsClient,
}

fn build(trigger: &Trigger, backends: &Backends) -> Result<Arc<dyn Scaler>, ScalerError> {
    const PREFIX: &str = "error parsing DynamoDb metadata";
    target_type(trigger)?;
    let parameters = Parameters::read(trigger).map_err(|error| error.inside(PREFIX))?;
    let query = query(&parameters).map_err(|error| error.inside(PREFIX))?;
    // As in KEDA, -1 stands for a target that is missing.
    let target = match parameters.target_value.filter(|target| *target != -1) {
        Some(target) => target,
        None if trigger.feeds_formula => 0,
        None => return Err(scaler_error!("no targetValue given").inside(PREFIX)),
    };
    let client = AwsClient::new(&parameters.region, &parameters.credentials, trigger, backends)
        .map_err(|error| error.inside(PREFIX))?;
    let name = format!("aws-dynamodb-{}", parameters.table_name);
    let spec = external(trigger, &name, whole(target));
    let activation = parameters.activation_target_value as f64;
    SingleMetricScaler::build(spec, activation, DynamoDb { query, client })
}

/// The request body for a count.
fn query(of: &Parameters) -> Result<Map<String, Value>, ScalerError> {
    let names = names(&of.names).map_err(|error| error.inside("error parsing expressionAttributeNames"))?;
    let values =
        values(&of.values).map_err(|error| error.inside("error parsing expressionAttributeValues"))?;
    let mut query = Map::new();
    query.insert("TableName".to_owned(), of.table_name.clone().into());
    query.insert("KeyConditionExpression".to_owned(), of.condition.clone().into());
    query.insert("ExpressionAttributeNames".to_owned(), names.into());
    query.insert("ExpressionAttributeValues".to_owned(), values.into());
    query.insert("Select".to_owned(), "COUNT".into());
    if let Some(filter) = &of.filter {
        query.insert("FilterExpression".to_owned(), filter.clone().into());
    }
    if let Some(index) = &of.index_name {
        query.insert("IndexName".to_owned(), index.clone().into());
    }
    Ok(query)
}

/// The names of attributes: an object of texts.
fn names(text: &str) -> Result<Map<String, Value>, ScalerError> {
    let invalid = |why: &str| scaler_error!("invalid expressionAttributeNames\n{why}");
    // Like KEDA, what follows the object is ignored.
    let read = serde_json::Deserializer::from_str(text).into_iter::<Value>().next();
    let names = match read.and_then(Result::ok) {
        Some(Value::Object(names)) => names,
        Some(Value::Null) => Map::new(),
        Some(other) => {
            return Err(invalid(&format!("cannot decode {} into a map[string]string", bson_type(&other))));
        }
        None => return Err(invalid("invalid JSON input")),
    };
    if names.is_empty() {
        bail!("empty map");
    }
    for (key, name) in &names {
        if !matches!(name, Value::String(_) | Value::Null) {
            let found = bson_type(name);
            return Err(invalid(&format!(
                "error decoding key {key}: cannot decode {found} into a string type"
            )));
        }
    }
    Ok(names)
}

/// The name of a value's type in BSON, with which KEDA decodes the names.
fn bson_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) => match number.as_i64() {
            Some(number) if i32::try_from(number).is_ok() => "32-bit integer",
            Some(_) => "64-bit integer",
            None => "double",
        },
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "embedded document",
    }
}

/// The values of attributes: an object of values with their types. `null` has none.
fn values(text: &str) -> Result<Map<String, Value>, ScalerError> {
    let values: Option<Map<String, Value>> =
        serde_json::from_str(text).map_err(|error| scaler_error!("json: it is not an object: {error}"))?;
    let values = values.unwrap_or_default();
    if values.values().any(|value| !value.is_object()) {
        bail!("unsupported data type for attribute value");
    }
    Ok(values)
}

impl ValueSource for DynamoDb {
    fn value(&self) -> ScalerFuture<'_, f64> {
        Box::pin(async {
            let (mut query, mut count) = (self.query.clone(), 0.0);
            for _ in 0..MAX_PAGES {
                let request = AwsRequest {
                    host: "dynamodb",
                    service: "dynamodb",
                    target: "DynamoDB_20120810.Query",
                    version: "1.0",
                    body: Value::from(query.clone()).to_string(),
                };
                let (status, body) = self.client.send(request).await?;
                let answer = answer("DynamoDB", status, &body)?;
                count += number(&answer, "/Count")?;
                match answer.get("LastEvaluatedKey") {
                    Some(key) if key.is_object() => query.insert("ExclusiveStartKey".to_owned(), key.clone()),
                    _ => return Ok(count),
                };
            }
            Err(scaler_error!("the query has more than {MAX_PAGES} pages of items"))
        })
    }
}
