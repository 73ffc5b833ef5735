//! artemis-queue: the number of messages in a queue, read through Jolokia.

mod query;
#[cfg(test)]
mod tests;

use sources::http::Endpoint;

use crate::encrypted_key::opened;
use crate::jolokia::{Attribute, all_given};
use crate::parameters::groups::tls_endpoint;
use crate::prelude::*;

/// The scaler type `artemis-queue`.
pub const TYPE: ScalerType = ScalerType {
    name: "artemis-queue",
    about: "How many messages are in a queue of ActiveMQ Artemis.",
    display: "artemisScaler",
    parameters: Parameters::PARAMETERS,
    build,
    unit: |_| "messages",
    samples: &[Sample::http(
        &[("managementEndpoint", "{}"), ("queueName", "q"), ("brokerName", "b"), ("brokerAddress", "a")],
        sample::USER_AND_PASSWORD,
    )],
    ..ScalerType::DEFAULT
};

crate::parameters! {
    /// Parameters of artemis-queue.
    pub struct Parameters of "error parsing artemis metadata: error parsing prometheus metadata" {
        /// Host and port of the web console, e.g. `artemis.shop:8161`.
        management_endpoint: String = "managementEndpoint" in [Metadata];
        /// The queue.
        queue_name: String = "queueName" in [Metadata];
        /// The broker.
        broker_name: String = "brokerName" in [Metadata];
        /// The address that the queue belongs to.
        broker_address: String = "brokerAddress" in [Metadata];
        /// User name.
        username: String = "username" in [Authentication, Metadata, Environment], required;
        /// Password.
        password: Secret = "password" in [Authentication, Metadata, Environment], required;
        /// The Jolokia URL of the queue's message count; replaces endpoint, broker, address and queue.
        rest_api_template: Option<String> = "restApiTemplate" in [Metadata];
        /// Target number of messages per replica.
        queue_length: i64 = "queueLength" in [Metadata], default "10";
        /// The trigger is active above this number of messages. The default is not 0.
        activation_queue_length: i64 = "activationQueueLength" in [Metadata], default "10";
        /// Value of the header `Origin`; by default `http://` and the endpoint.
        cors_header: Option<String> = "corsHeader" in [Metadata];
        /// Accepts any server certificate.
        unsafe_ssl: bool = "unsafeSsl" in [Metadata], default "false";
        /// CA certificate that is trusted in addition to the system's (PEM).
        ca: String = "ca" in [Authentication];
        /// Client certificate (PEM).
        certificate: String = "cert" in [Authentication];
        /// Private key of the client certificate (PEM).
        key: Secret = "key" in [Authentication];
        /// Password of the private key.
        key_password: Secret = "keyPassword" in [Authentication];
    }
    check Parameters::check
}

impl Parameters {
    /// TLS settings of the web console.
    fn trust(&self) -> Endpoint {
        let own = (!self.certificate.is_empty()).then_some((&*self.certificate, &self.key));
        Endpoint { insecure: self.unsafe_ssl, ..tls_endpoint(&self.ca, own) }
    }

    fn check(&mut self, _: &Trigger) -> Result<(), ParseError> {
        self.key = opened(&self.key, &self.key_password);
        if let Some(url) = &self.rest_api_template {
            let template = query::template(url)?;
            self.management_endpoint = template.endpoint;
            self.broker_name = template.broker;
            self.broker_address = template.address;
            self.queue_name = template.queue;
        }
        all_given([
            (&self.management_endpoint, "no management endpoint given"),
            (&self.queue_name, "no queue name given"),
            (&self.broker_name, "no broker name given"),
            (&self.broker_address, "no broker address given"),
        ])?;
        if self.certificate.is_empty() != self.key.reveal().is_empty() {
            return Err("both cert and key must be provided".into());
        }
        Ok(())
    }
}

fn build(trigger: &Trigger, backends: &Backends) -> Result<Arc<dyn Scaler>, ScalerError> {
    target_type(trigger)?;
    let parameters = Parameters::read(trigger)?;
    let name = format!("artemis-{}", parameters.queue_name);
    let spec = external(trigger, &name, whole(parameters.queue_length));
    let activation = parameters.activation_queue_length as f64;
    let trust = parameters.trust();
    let Parameters { management_endpoint, broker_name, broker_address, queue_name, .. } = parameters;
    let Parameters { username, password, rest_api_template, cors_header, .. } = parameters;
    let source = Attribute {
        url: rest_api_template
            .unwrap_or_else(|| query::url(&management_endpoint, &broker_name, &broker_address, &queue_name)),
        origin: cors_header.unwrap_or_else(|| format!("http://{management_endpoint}")),
        username,
        password,
        trust,
        within: trigger.http_timeout,
        web: Arc::clone(&backends.web),
    };
    SingleMetricScaler::build(spec, activation, source)
}
