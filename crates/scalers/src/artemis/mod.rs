//! artemis-queue: messages in a queue, as Jolokia tells.

mod query;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use crate::backends::Backends;
use crate::jolokia::{Attribute, all_given};
use crate::metric::{external, target_type, whole};
use crate::parameters::Secret;
use crate::single::Single;
use crate::table::Type;
use crate::{Error, Scaler, Trigger};

/// artemis-queue.
pub const TYPE: Type = Type {
    name: "artemis-queue",
    about: "How many messages are in a queue of ActiveMQ Artemis.",
    display: "artemisScaler",
    parameters: Parameters::PARAMETERS,
    push: false,
    build,
};

crate::parameters! {
    /// What artemis-queue accepts.
    pub struct Parameters of "error parsing prometheus metadata" {
        /// Host and port of the web console, e.g. `artemis.shop:8161`.
        management_endpoint: String = "managementEndpoint" in [Metadata];
        /// The queue.
        queue_name: String = "queueName" in [Metadata];
        /// The broker.
        broker_name: String = "brokerName" in [Metadata];
        /// The address that the queue belongs to.
        broker_address: String = "brokerAddress" in [Metadata];
        /// How many messages one replica is for.
        queue_length: i64 = "queueLength" in [Metadata], default "10";
        /// The trigger is active above so many messages; mind that the default is not 0.
        activation_queue_length: i64 = "activationQueueLength" in [Metadata], default "10";
        /// User.
        username: String = "username" in [Authentication, Metadata, Environment], required;
        /// Password.
        password: Secret = "password" in [Authentication, Metadata, Environment], required;
        /// The address of the queue's message count in Jolokia, instead of endpoint, broker, address and queue.
        rest_api_template: Option<String> = "restApiTemplate" in [Metadata];
        /// What the header `Origin` says; by default `http://` and the endpoint.
        cors_header: Option<String> = "corsHeader" in [Metadata];
        /// Accepts any certificate of the server.
        unsafe_ssl: bool = "unsafeSsl" in [Metadata], default "false";
    }
    check Parameters::check
}

impl Parameters {
    fn check(&mut self, _: &Trigger) -> Result<(), String> {
        if let Some(url) = &self.rest_api_template {
            let template = query::template(url).map_err(|error| error.0)?;
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
        ])
    }
}

fn build(trigger: &Trigger, backends: &Backends) -> Result<Arc<dyn Scaler>, Error> {
    target_type(trigger)?;
    let parameters =
        Parameters::read(trigger).map_err(|error| error.inside("error parsing artemis metadata"))?;
    let name = format!("artemis-{}", parameters.queue_name);
    let spec = external(trigger, &name, whole(parameters.queue_length));
    let activation = parameters.activation_queue_length as f64;
    let Parameters { management_endpoint, broker_name, broker_address, queue_name, .. } = parameters;
    let Parameters { username, password, rest_api_template, cors_header, unsafe_ssl, .. } = parameters;
    let source = Attribute {
        url: rest_api_template
            .unwrap_or_else(|| query::url(&management_endpoint, &broker_name, &broker_address, &queue_name)),
        origin: cors_header.unwrap_or_else(|| format!("http://{management_endpoint}")),
        username,
        password,
        unsafe_ssl,
        within: trigger.http_timeout,
        web: Arc::clone(&backends.web),
    };
    Ok(Arc::new(Single { spec, activation, source }))
}
