//! aws-sqs-queue: messages in a queue.

mod query;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use crate::aws::{Credentials, Identity, Question, endpoint};
use crate::backends::Backends;
use crate::metric::{external, target_type, whole};
use crate::single::{Single, Source, ask};
use crate::table::Type;
use crate::web::{Call, Web};
use crate::{Answer, Error, Scaler, Trigger};
use query::{DELAYED, IN_FLIGHT, WAITING};

/// aws-sqs-queue.
pub const TYPE: Type = Type {
    name: "aws-sqs-queue",
    about: "How many messages are in a queue of Amazon SQS.",
    display: "awsSqsQueueScaler",
    parameters: Parameters::PARAMETERS,
    push: false,
    build,
};

crate::parameters! {
    /// What aws-sqs-queue accepts.
    pub struct Parameters of "error parsing SQS queue metadata" {
        /// The address of the queue, or its name.
        queue_url: String = "queueURL" in [Metadata, Environment], required;
        /// The region.
        region: String = "awsRegion" in [Metadata, Authentication], required;
        /// How many messages one replica is for.
        queue_length: i64 = "queueLength" in [Metadata], default "5";
        /// The trigger is active above so many messages.
        activation_queue_length: i64 = "activationQueueLength" in [Metadata], default "0";
        /// Counts messages that are being worked on, too.
        scale_on_in_flight: bool = "scaleOnInFlight" in [Metadata], default "true";
        /// Counts messages that are not due yet, too.
        scale_on_delayed: bool = "scaleOnDelayed" in [Metadata], default "false";
        /// Where SQS is, if not at Amazon.
        endpoint: Option<String> = "awsEndpoint" in [Metadata];
        /// Who asks.
        credentials: Credentials;
    }
}

struct Sqs {
    parameters: Parameters,
    attributes: Vec<&'static str>,
    identity: Identity,
    within: Duration,
    web: Arc<Web>,
}

fn build(trigger: &Trigger, backends: &Backends) -> Result<Arc<dyn Scaler>, Error> {
    const PREFIX: &str = "error parsing SQS queue metadata";
    target_type(trigger)?;
    let parameters = Parameters::read(trigger).map_err(|error| error.inside(PREFIX))?;
    let name = query::name(&parameters.queue_url).map_err(|error| error.inside(PREFIX))?;
    let spec = external(trigger, &format!("aws-sqs-{name}"), whole(parameters.queue_length));
    let identity = parameters.credentials.identity(trigger).map_err(|error| error.inside(PREFIX))?;
    let mut attributes = vec![WAITING];
    attributes.extend(parameters.scale_on_in_flight.then_some(IN_FLIGHT));
    attributes.extend(parameters.scale_on_delayed.then_some(DELAYED));
    let activation = parameters.activation_queue_length as f64;
    let (within, web) = (trigger.http_timeout, Arc::clone(&backends.web));
    Ok(Arc::new(Single { spec, activation, source: Sqs { parameters, attributes, identity, within, web } }))
}

impl Sqs {
    /// The question at a time.
    fn call(&self, now: Timestamp) -> Result<Call, Error> {
        let Parameters { queue_url, region, endpoint: given, .. } = &self.parameters;
        let question = Question {
            endpoint: &endpoint("sqs", region, given.as_deref()),
            region,
            service: "sqs",
            target: "AmazonSQS.GetQueueAttributes",
            version: "1.0",
            body: query::question(queue_url, &self.attributes),
        };
        question.call(self.identity.keys()?, now, self.within)
    }
}

impl Source for Sqs {
    fn value(&self) -> Answer<'_, f64> {
        Box::pin(async {
            let (status, body) = ask(&self.web, self.call(Timestamp::now())?).await?;
            query::length(status, &body, &self.attributes).map(|length| length as f64)
        })
    }
}
