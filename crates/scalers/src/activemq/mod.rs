//! activemq: messages in a queue, as Jolokia tells.

pub(crate) mod query;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use crate::backends::Backends;
use crate::metric::{external, target_type, whole};
use crate::parameters::Secret;
use crate::single::{Single, Source, ask};
use crate::table::Type;
use crate::web::{Call, Web};
use crate::{Answer, Error, Scaler, Trigger};

/// activemq.
pub const TYPE: Type = Type {
    name: "activemq",
    about: "How many messages are in a queue of ActiveMQ Classic.",
    display: "activeMQScaler",
    parameters: Parameters::PARAMETERS,
    push: false,
    build,
};

crate::parameters! {
    /// What activemq accepts.
    pub struct Parameters of "error parsing ActiveMQ metadata" {
        /// Host and port of the web console, e.g. `activemq.shop:8161`.
        management_endpoint: String = "managementEndpoint" in [Metadata];
        /// The queue.
        destination_name: String = "destinationName" in [Metadata];
        /// The broker.
        broker_name: String = "brokerName" in [Metadata];
        /// How many messages one replica is for.
        target_queue_size: i64 = "targetQueueSize" in [Metadata], default "10";
        /// The trigger is active above so many messages.
        activation_target_queue_size: i64 = "activationTargetQueueSize" in [Metadata], default "0";
        /// User.
        username: String = "username" in [Authentication, Environment, Metadata], required;
        /// Password.
        password: Secret = "password" in [Authentication, Environment, Metadata], required;
        /// The address of the queue's size in Jolokia, instead of endpoint, queue and broker.
        rest_api_template: Option<String> = "restAPITemplate" in [Metadata];
        /// What the header `Origin` says; by default `http://` and the endpoint.
        cors_header: Option<String> = "corsHeader" in [Metadata];
    }
    check Parameters::check
}

impl Parameters {
    fn check(&mut self, _: &Trigger) -> Result<(), String> {
        if let Some(url) = &self.rest_api_template {
            let template = query::template(url).map_err(|error| error.0)?;
            self.management_endpoint = template.endpoint;
            self.broker_name = template.broker;
            self.destination_name = template.destination;
        }
        let there = [
            (&self.management_endpoint, "no management endpoint given"),
            (&self.destination_name, "no destination name given"),
            (&self.broker_name, "no broker name given"),
        ];
        match there.into_iter().find(|(value, _)| value.is_empty()) {
            Some((_, missing)) => Err(missing.to_owned()),
            None => Ok(()),
        }
    }
}

struct ActiveMq {
    parameters: Parameters,
    within: Duration,
    web: Arc<Web>,
}

fn build(trigger: &Trigger, backends: &Backends) -> Result<Arc<dyn Scaler>, Error> {
    target_type(trigger)?;
    let parameters =
        Parameters::read(trigger).map_err(|error| error.inside("error parsing ActiveMQ metadata"))?;
    let name = format!("activemq-{}", parameters.destination_name);
    let spec = external(trigger, &name, whole(parameters.target_queue_size));
    let activation = parameters.activation_target_queue_size as f64;
    let source = ActiveMq { parameters, within: trigger.http_timeout, web: Arc::clone(&backends.web) };
    Ok(Arc::new(Single { spec, activation, source }))
}

impl Source for ActiveMq {
    fn value(&self) -> Answer<'_, f64> {
        Box::pin(async {
            let Parameters { management_endpoint, broker_name, destination_name, username, password, .. } =
                &self.parameters;
            let url = match &self.parameters.rest_api_template {
                Some(url) => url.clone(),
                None => query::url(management_endpoint, broker_name, destination_name),
            };
            let origin = self.parameters.cors_header.clone();
            let origin = origin.unwrap_or_else(|| format!("http://{management_endpoint}"));
            let call = Call::get(url, self.within).basic(username, password).header("Origin", &origin)?;
            let (status, body) = ask(&self.web, call).await?;
            query::value(status, &body)
        })
    }
}
