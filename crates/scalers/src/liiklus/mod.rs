//! liiklus: the lag of a consumer group of Liiklus.

use crate::prelude::*;

/// The scaler type `liiklus`.
pub const TYPE: ScalerType = ScalerType {
    name: "liiklus",
    about: "How many messages of a Liiklus topic a consumer group has not read yet.",
    display: "liiklusScaler",
    parameters: Parameters::PARAMETERS,
    queried: false,
    unit: |_| "messages",
    build,
    samples: &[Sample::tcp(&[("address", "{}"), ("topic", "t"), ("group", "g")], &[])],
    ..ScalerType::DEFAULT
};

crate::parameters! {
    /// Parameters of liiklus.
    pub struct Parameters of "error parsing liiklus metadata" {
        /// Target lag per replica.
        lag_threshold: i64 = "lagThreshold" in [Metadata], default "10";
        /// The trigger is active above this lag.
        activation: i64 = "activationLagThreshold" in [Metadata], default "0";
        /// The server, as `host:port`.
        address: String = "address" in [Metadata], required,
            deprecated_in_2_21 "This scaler is DEPRECATED and will be removed in v2.24 due to the upstream Liiklus project no longer being maintained";
        /// The topic.
        topic: String = "topic" in [Metadata], required;
        /// The consumer group.
        group: String = "group" in [Metadata], required;
        /// Version of the consumer group.
        group_version: u32 = "groupVersion" in [Metadata], default "0";
    }
}

fn build(trigger: &Trigger, _: &Backends) -> Result<Arc<dyn Scaler>, ScalerError> {
    target_type(trigger)?;
    let parameters = Parameters::read(trigger)?;
    let name = format!("liiklus-{}", parameters.topic);
    UnqueriedScaler::build(trigger, [external(trigger, &name, whole(parameters.lag_threshold))])
}
