//! azure-servicebus: the number of messages in queues and subscriptions.

mod query;
#[cfg(test)]
mod tests;

use regex::Regex;

use query::{Entity, PAGE_SIZE, ServiceBusConnection};

use crate::azure_clouds::check_cloud_of;
use crate::identity::{AzureIdentity, Identities};
use crate::patterns::whole_text;
use crate::prelude::*;

/// Maximum number of queues in a namespace, and of subscriptions of a topic.
const MAX_ENTITIES: usize = 10_000;
/// Minimum validity of a signature, in seconds; requests within the same span share a signature.
const SIGNATURE_SPAN_SECONDS: i64 = 600;

/// The scaler type `azure-servicebus`.
pub const TYPE: ScalerType = ScalerType {
    name: "azure-servicebus",
    about: "How many active messages are in queues or subscriptions of Azure Service Bus.",
    display: "azureServiceBusScaler",
    parameters: Parameters::PARAMETERS,
    build,
    unit: |_| "messages",
    samples: &[Sample::https(
        &[("queueName", "q")],
        &[("connection", "Endpoint=sb://{}/;SharedAccessKeyName=n;SharedAccessKey=hunter2")],
    )],
    ..ScalerType::DEFAULT
};

crate::parameters! {
    /// Parameters of azure-servicebus: a queue, or a topic and a subscription.
    pub struct Parameters of "error parsing azure service bus metadata" {
        /// The queue; with `useRegex`, a regular expression that must match the whole name.
        queue_name: String = "queueName" in [Metadata];
        /// The topic.
        topic_name: String = "topicName" in [Metadata];
        /// The subscription of the topic; with `useRegex`, a regular expression that must match the whole name.
        subscription_name: String = "subscriptionName" in [Metadata];
        /// Target number of messages per replica.
        message_count: i64 = "messageCount" in [Metadata], default "5";
        /// The trigger is active above this number of messages.
        activation_message_count: i64 = "activationMessageCount" in [Metadata], default "0";
        /// Counts all queues or subscriptions that match the regular expression.
        use_regex: bool = "useRegex" in [Metadata], default "false";
        /// How the counts are aggregated.
        operation: String = "operation" in [Metadata], default "sum", one_of ["sum", "max", "avg"];
        /// The connection string, with a key that has the Manage right.
        connection: Secret = "connection" in [Authentication, Environment];
        /// The namespace of Service Bus, for `azure-workload`.
        namespace: String = "namespace" in [Metadata];
        /// The cloud, for `azure-workload`.
        cloud: String = "cloud" in [Metadata];
        /// Suffix of the host names of a private cloud, for `azure-workload`.
        endpoint_suffix: String = "endpointSuffix" in [Metadata];
        /// The regular expression, if `useRegex` is set.
        pattern: Option<Regex>;
    }
    check Parameters::check
}

impl Parameters {
    fn check(&mut self, _: &Trigger) -> Result<(), ParseError> {
        let (queue, topic, subscription) =
            (!self.queue_name.is_empty(), !self.topic_name.is_empty(), !self.subscription_name.is_empty());
        if queue && subscription {
            return Err("subscription name provided with queue name".into());
        }
        if queue && topic {
            return Err("both topic and queue name metadata provided".into());
        }
        if topic && !subscription {
            return Err("no subscription name provided with topic name".into());
        }
        if !queue && !topic {
            return Err("no service bus entity type set".into());
        }
        if self.use_regex {
            let (name, text) = if queue {
                ("queueName", &self.queue_name)
            } else {
                ("subscriptionName", &self.subscription_name)
            };
            self.pattern = Some(whole_text(name, text)?);
        }
        Ok(())
    }

    /// The connection string; none if a pod identity is used.
    fn identity(&self, trigger: &Trigger) -> Result<Option<Secret>, ScalerError> {
        match &*trigger.identity.provider {
            "" | "none" if self.connection.reveal().is_empty() => {
                Err(scaler_error!("no connection setting given"))
            }
            "" | "none" => Ok(Some(self.connection.clone())),
            "azure-workload" => {
                if self.namespace.is_empty() {
                    bail!("namespace are required when using pod identity");
                }
                check_cloud_of(trigger, "endpointSuffix").map_err(ScalerError::new)?;
                Ok(None)
            }
            other => Err(scaler_error!("azure service bus doesn't support pod identity {other}")),
        }
    }
}

struct ServiceBus {
    parameters: Parameters,
    /// The connection string; none if the pod identity is used.
    connection: Option<Secret>,
    identity: AzureIdentity,
    identities: Arc<Identities>,
    within: Duration,
    web: Arc<SharedHttpClient>,
}

fn build(trigger: &Trigger, backends: &Backends) -> Result<Arc<dyn Scaler>, ScalerError> {
    const PREFIX: &str = "error parsing azure service bus metadata";
    target_type(trigger)?;
    let parameters = Parameters::read(trigger).map_err(|error| error.inside(PREFIX))?;
    let connection = parameters.identity(trigger).map_err(|error| error.inside(PREFIX))?;
    let Parameters { queue_name, topic_name, use_regex, .. } = &parameters;
    let is_queue = !queue_name.is_empty();
    let name = match (use_regex, is_queue) {
        (true, true) => "queue-regex",
        (true, false) => "topic-regex",
        (false, true) => queue_name,
        (false, false) => topic_name,
    };
    let spec = external(trigger, &format!("azure-servicebus-{name}"), whole(parameters.message_count));
    let activation = parameters.activation_message_count as f64;
    let (within, web) = (trigger.http_timeout, Arc::clone(&backends.web));
    let (identity, identities) = (AzureIdentity::of(&trigger.identity), backends.state());
    let source = ServiceBus { parameters, connection, identity, identities, within, web };
    SingleMetricScaler::build(spec, activation, source)
}

impl ServiceBus {
    async fn connection(&self) -> Result<ServiceBusConnection, ScalerError> {
        if let Some(text) = &self.connection {
            return query::connection(text.reveal());
        }
        // The host comes first: a token of the operator is not even requested if it would be sent elsewhere.
        let host = query::workload_host(&self.parameters.namespace, &self.parameters.cloud)?;
        let token = self.identities.azure(&self.identity, query::SCOPE, &self.web).await?;
        Ok(query::bearer(&host, &token))
    }

    async fn get(
        &self,
        connection: &ServiceBusConnection,
        url: String,
    ) -> Result<(u16, bytes::Bytes), ScalerError> {
        let until = (self.web.now().as_second() / SIGNATURE_SPAN_SECONDS + 2) * SIGNATURE_SPAN_SECONDS;
        let call =
            HttpCall::get(url, self.within).header("authorization", &connection.authorization(until))?;
        send(&self.web, call).await
    }

    /// All entities whose names match.
    async fn fitting(
        &self,
        connection: &ServiceBusConnection,
        pattern: &Regex,
    ) -> Result<Vec<Entity>, ScalerError> {
        let mut found = Vec::new();
        for skip in (0..MAX_ENTITIES).step_by(PAGE_SIZE) {
            let url = match &*self.parameters.topic_name {
                "" => connection.queues(skip),
                topic => connection.subscriptions(topic, skip),
            };
            let (status, body) = self.get(connection, url).await?;
            let page = query::entities(status, &body)?;
            let last = page.len() < PAGE_SIZE;
            found.extend(page.into_iter().filter(|entity| pattern.is_match(&entity.name)));
            if last {
                return Ok(found);
            }
        }
        Err(scaler_error!("there are more than {MAX_ENTITIES} queues or subscriptions"))
    }
}

/// Aggregates counts; the average is rounded down.
fn operated(operation: &str, counts: &[u64]) -> u64 {
    let sum = counts.iter().copied().fold(0, u64::saturating_add);
    match operation {
        "max" => counts.iter().copied().max().unwrap_or(0),
        "avg" => sum.checked_div(counts.len() as u64).unwrap_or(0),
        _ => sum,
    }
}

impl ValueSource for ServiceBus {
    fn value(&self) -> ScalerFuture<'_, f64> {
        Box::pin(async {
            let connection = self.connection().await?;
            let Parameters { queue_name, topic_name, subscription_name, operation, pattern, .. } =
                &self.parameters;
            if let Some(pattern) = pattern {
                let found = self.fitting(&connection, pattern).await?;
                let counts: Vec<u64> = found.iter().map(|entity| entity.active).collect();
                return Ok(operated(operation, &counts) as f64);
            }
            let url = match &**queue_name {
                "" => connection.subscription(topic_name, subscription_name),
                queue => connection.queue(queue),
            };
            let (status, body) = self.get(&connection, url).await?;
            Ok(query::entity(status, &body)?.active as f64)
        })
    }
}
