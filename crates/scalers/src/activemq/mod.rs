//! activemq: the number of messages in a queue, read through Jolokia.

mod query;
#[cfg(test)]
mod tests;

use sources::http::Endpoint;

use crate::jolokia::{Attribute, all_given};
use crate::prelude::*;

/// The scaler type `activemq`.
pub const TYPE: ScalerType = ScalerType {
    name: "activemq",
    about: "How many messages are in a queue of ActiveMQ Classic.",
    display: "activeMQScaler",
    parameters: Parameters::PARAMETERS,
    build,
    unit: |_| "messages",
    samples: &[Sample::http(
        &[("managementEndpoint", "{}"), ("destinationName", "q"), ("brokerName", "b")],
        sample::USER_AND_PASSWORD,
    )],
    ..ScalerType::DEFAULT
};

crate::parameters! {
    /// Parameters of activemq.
    pub struct Parameters of "error parsing ActiveMQ metadata: error parsing ActiveMQ metadata" {
        /// Host and port of the web console, e.g. `activemq.shop:8161`.
        management_endpoint: String = "managementEndpoint" in [Metadata];
        /// The same, from other sources.
        newer_endpoint: String = "managementEndpoint" in [Authentication, Environment], since_2_21;
        /// The queue.
        destination_name: String = "destinationName" in [Metadata];
        /// The broker.
        broker_name: String = "brokerName" in [Metadata];
        /// User name.
        username: String = "username" in [Authentication, Environment, Metadata], required;
        /// Password.
        password: Secret = "password" in [Authentication, Environment, Metadata], required;
        /// Value of the header `Origin`; by default `http://` and the endpoint.
        cors_header: Option<String> = "corsHeader" in [Metadata];
        /// The Jolokia URL of the queue's size; replaces endpoint, queue and broker.
        rest_api_template: Option<String> = "restAPITemplate" in [Metadata];
        /// Target number of messages per replica.
        target_queue_size: i64 = "targetQueueSize" in [Metadata], default "10";
        /// The trigger is active above this number of messages.
        activation_target_queue_size: i64 = "activationTargetQueueSize" in [Metadata], default "0";
    }
    check Parameters::check
}

impl Parameters {
    fn check(&mut self, _: &Trigger) -> Result<(), ParseError> {
        if self.management_endpoint.is_empty() {
            self.management_endpoint.clone_from(&self.newer_endpoint);
        }
        if let Some(url) = &self.rest_api_template {
            let template = query::template(url)?;
            self.management_endpoint = template.endpoint;
            self.broker_name = template.broker;
            self.destination_name = template.destination;
        }
        all_given([
            (&self.management_endpoint, "no management endpoint given"),
            (&self.destination_name, "no destination name given"),
            (&self.broker_name, "no broker name given"),
        ])
    }
}

fn build(trigger: &Trigger, backends: &Backends) -> Result<Arc<dyn Scaler>, ScalerError> {
    target_type(trigger)?;
    let parameters = Parameters::read(trigger)?;
    let name = format!("activemq-{}", parameters.destination_name);
    let spec = external(trigger, &name, whole(parameters.target_queue_size));
    let activation = parameters.activation_target_queue_size as f64;
    let Parameters { management_endpoint, broker_name, destination_name, .. } = parameters;
    let Parameters { username, password, rest_api_template, cors_header, .. } = parameters;
    let source = Attribute {
        url: rest_api_template
            .unwrap_or_else(|| query::url(&management_endpoint, &broker_name, &destination_name)),
        origin: cors_header.unwrap_or_else(|| format!("http://{management_endpoint}")),
        username,
        password,
        trust: Endpoint::default(),
        within: trigger.http_timeout,
        web: Arc::clone(&backends.web),
    };
    SingleMetricScaler::build(spec, activation, source)
}
