//! gcp-pubsub: a metric of a subscription or topic of Google Cloud Pub/Sub.

use crate::google_credentials::GoogleCredentials;
use crate::prelude::*;

/// What stands in front of errors that are found after the parameters were read.
const PREFIX: &str = "error parsing PubSub metadata";

/// The scaler type `gcp-pubsub`.
pub const TYPE: ScalerType = ScalerType {
    name: "gcp-pubsub",
    about: "A metric of a subscription or topic of Google Cloud Pub/Sub, such as its undelivered messages.",
    display: "pubsubScaler",
    parameters: Parameters::PARAMETERS,
    queried: false,
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
        value_if_null: Option<f64> = "valueIfNull" in [Metadata];
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
}

fn build(trigger: &Trigger, _: &Backends) -> Result<Arc<dyn Scaler>, ScalerError> {
    target_type(trigger)?;
    let parameters = Parameters::read(trigger)?;
    parameters.credentials.check(trigger).map_err(|error| ScalerError::new(error).inside(PREFIX))?;
    let resource =
        if parameters.subscription.is_empty() { &parameters.topic } else { &parameters.subscription };
    let spec = external(trigger, &format!("gcp-ps-{resource}"), milli(parameters.value));
    UnqueriedScaler::build(trigger, [spec])
}
