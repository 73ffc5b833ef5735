//! aws-sqs-queue: the number of messages in a queue.

mod query;
#[cfg(test)]
mod tests;

use crate::aws::{AwsClient, AwsCredentials, AwsRequest};
use crate::prelude::*;
use query::{DELAYED, IN_FLIGHT, WAITING};

/// The scaler type `aws-sqs-queue`.
pub const TYPE: ScalerType = ScalerType {
    name: "aws-sqs-queue",
    about: "How many messages are in a queue of Amazon SQS.",
    display: "awsSqsQueueScaler",
    parameters: Parameters::PARAMETERS,
    build,
    unit: |_| "messages",
    samples: &[Sample::http(
        &[
            ("queueURL", "https://sqs.eu-west-1.amazonaws.com/1/q"),
            ("awsRegion", "eu-west-1"),
            ("awsEndpoint", "http://{}"),
        ],
        sample::AWS_KEYS,
    )],
    ..ScalerType::DEFAULT
};

crate::parameters! {
    /// Parameters of aws-sqs-queue.
    pub struct Parameters of "error parsing SQS queue metadata" {
        /// Target number of messages per replica.
        queue_length: i64 = "queueLength" in [Metadata], default "5";
        /// The trigger is active above this number of messages.
        activation_queue_length: i64 = "activationQueueLength" in [Metadata], default "0";
        /// The URL of the queue, or its name.
        queue_url: String = "queueURL" in [Metadata, Environment], required;
        /// The region.
        region: String = "awsRegion" in [Metadata, Authentication], required;
        /// Also counts messages in flight (received but not deleted).
        scale_on_in_flight: bool = "scaleOnInFlight" in [Metadata], default "true";
        /// Also counts delayed messages.
        scale_on_delayed: bool = "scaleOnDelayed" in [Metadata], default "false";
        /// AWS endpoint and credentials.
        credentials: AwsCredentials;
    }
}

struct Sqs {
    parameters: Parameters,
    attributes: Vec<&'static str>,
    client: AwsClient,
}

fn build(trigger: &Trigger, backends: &Backends) -> Result<Arc<dyn Scaler>, ScalerError> {
    const PREFIX: &str = "error parsing SQS queue metadata";
    target_type(trigger)?;
    let parameters = Parameters::read(trigger).map_err(|error| error.inside(PREFIX))?;
    let name = query::name(&parameters.queue_url).map_err(|error| error.inside(PREFIX))?;
    let spec = external(trigger, &format!("aws-sqs-{name}"), whole(parameters.queue_length));
    let client = AwsClient::new(&parameters.region, &parameters.credentials, trigger, backends)
        .map_err(|error| error.inside(PREFIX))?;
    let mut attributes = vec![WAITING];
    attributes.extend(parameters.scale_on_in_flight.then_some(IN_FLIGHT));
    attributes.extend(parameters.scale_on_delayed.then_some(DELAYED));
    let activation = parameters.activation_queue_length as f64;
    SingleMetricScaler::build(spec, activation, Sqs { parameters, attributes, client })
}

impl ValueSource for Sqs {
    fn value(&self) -> ScalerFuture<'_, f64> {
        Box::pin(async {
            let request = AwsRequest {
                host: "sqs",
                service: "sqs",
                target: "AmazonSQS.GetQueueAttributes",
                version: "1.0",
                body: query::request_body(&self.parameters.queue_url, &self.attributes),
            };
            let (status, body) = self.client.send(request).await?;
            query::length(status, &body, &self.attributes).map(|length| length as f64)
        })
    }
}
