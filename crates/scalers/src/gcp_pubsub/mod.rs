//! gcp-pubsub: a metric of a subscription or topic of Google Cloud Pub/Sub.

mod query;
#[cfg(test)]
mod tests;

use crate::google_credentials::GoogleCredentials;
use crate::google_monitoring::MonitoringClient;
use crate::parameters::NullableNumber;
use crate::prelude::*;
use query::PubSubResource;

/// Prefix of errors that are found after the parameters were read.
const PREFIX: &str = "error parsing PubSub metadata";

/// The scaler type `gcp-pubsub`.
pub const TYPE: ScalerType = ScalerType {
    name: "gcp-pubsub",
    about: "A metric of a subscription or topic of Google Cloud Pub/Sub, such as its undelivered messages.",
    display: "pubsubScaler",
    parameters: Parameters::PARAMETERS,
    build,
    samples: &[Sample::fixed(&[("subscriptionName", "s")], sample::GOOGLE_KEY)],
    ..ScalerType::DEFAULT
};

crate::parameters! {
    /// Parameters of gcp-pubsub.
    pub struct Parameters of "error parsing PubSub metadata: error parsing gcp pubsub metadata" {
        /// Replaced by `mode` and `value`.
        subscription_size: Option<String> = "subscriptionSize" in [Metadata],
            removed "The 'subscriptionSize' setting is DEPRECATED and is removed in v2.20 - Use 'mode' and 'value' instead";
        /// The subscription, by name or as `projects/P/subscriptions/S`.
        subscription: String = "subscriptionName" in [Metadata, Environment];
        /// The topic, by name or as `projects/P/topics/T`; instead of a subscription.
        topic: String = "topicName" in [Metadata, Environment];
        /// The metric; `SubscriptionSize` is the number of undelivered messages.
        mode: String = "mode" in [Metadata], default "SubscriptionSize";
        /// Target value per replica.
        value: f64 = "value" in [Metadata], default "10",
            deprecated "This scaler is deprecated. More info -> 'https://keda.sh/blog/2025-09-15-gcp-deprecations'";
        /// The trigger is active above this value.
        activation: f64 = "activationValue" in [Metadata], default "0";
        /// How points of the time horizon become one value: `median`, `mean`, `sum`, `count`, `percentile99` and so on.
        aggregation: String = "aggregation" in [Metadata];
        /// How far back points count: 2 minutes, or 5 with an aggregation.
        time_horizon: Option<Duration> = "timeHorizon" in [Metadata];
        /// The value if there is no point; otherwise that is an error.
        value_if_null: NullableNumber = "valueIfNull" in [Metadata];
        /// Credentials.
        credentials: GoogleCredentials;
    }
    check Parameters::check
}

impl Parameters {
    fn check(&mut self, _: &Trigger) -> Result<(), ParseError> {
        if self.subscription.is_empty() == self.topic.is_empty() {
            return Err("exactly one of subscription or topic name must be given".into());
        }
        Ok(())
    }

    /// What has the metric, and its name.
    fn resource(&self) -> (PubSubResource, &str) {
        match &*self.subscription {
            "" => (PubSubResource::Topic, self.topic.as_str()),
            subscription => (PubSubResource::Subscription, subscription),
        }
    }
}

struct PubSub {
    parameters: Parameters,
    client: MonitoringClient,
}

fn build(trigger: &Trigger, backends: &Backends) -> Result<Arc<dyn Scaler>, ScalerError> {
    target_type(trigger)?;
    let parameters = Parameters::read(trigger)?;
    parameters.credentials.check(trigger).map_err(|error| ScalerError::new(error).inside(PREFIX))?;
    let spec = external(trigger, &format!("gcp-ps-{}", parameters.resource().1), milli(parameters.value));
    let activation = parameters.activation;
    let client = MonitoringClient::new(&parameters.credentials, trigger, backends);
    SingleMetricScaler::build(spec, activation, PubSub { parameters, client })
}

impl ValueSource for PubSub {
    fn value(&self) -> ScalerFuture<'_, f64> {
        Box::pin(async {
            let Parameters { mode, aggregation, time_horizon, value_if_null, .. } = &self.parameters;
            let (kind, name) = self.parameters.resource();
            let (project, id) = query::resource(name);
            let project = match project {
                "" => self.client.project().await?,
                project => project.to_owned(),
            };
            let query = query::mql(kind, (&project, id), mode, aggregation, *time_horizon)?;
            let found = self.client.queried(&project, &query).await?;
            found
                .or(value_if_null.0)
                .ok_or_else(|| scaler_error!("could not find stackdriver metric with query {query}"))
        })
    }
}
