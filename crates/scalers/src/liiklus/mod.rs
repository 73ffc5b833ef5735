//! liiklus: the lag of a consumer group of Liiklus.

mod query;
#[cfg(test)]
mod tests;

use query::{EndOffsetsRequest, GET_END_OFFSETS, GET_OFFSETS, GroupOffsetsRequest, OffsetsReply, total_lag};

use crate::grpc::{Channel, Channels, Destination};
use crate::prelude::*;
use crate::urls::is_url;

/// The scaler type `liiklus`.
pub const TYPE: ScalerType = ScalerType {
    name: "liiklus",
    about: "How many messages of a Liiklus topic a consumer group has not read yet.",
    display: "liiklusScaler",
    parameters: Parameters::PARAMETERS,
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

/// A consumer group and its server.
struct Liiklus {
    parameters: Parameters,
    channel: Arc<Channel>,
}

fn build(trigger: &Trigger, backends: &Backends) -> Result<Arc<dyn Scaler>, ScalerError> {
    target_type(trigger)?;
    let parameters = Parameters::read(trigger)?;
    // gRPC refuses such addresses before it connects.
    let target = format!("dns:///{}", parameters.address);
    if !is_url(&parameters.address) && !is_url(&target) {
        bail!("parse {}: the address is no URL", api::gotext::quote(&target));
    }
    let name = format!("liiklus-{}", parameters.topic);
    let spec = external(trigger, &name, whole(parameters.lag_threshold));
    let destination = Destination {
        what: "Liiklus",
        address: parameters.address.clone(),
        tls: None,
        server_name: String::new(),
        dialer: backends.dialer.clone(),
        proxies: backends.web.settings().proxies.clone(),
    };
    let channel = backends.state::<Channels>().of(destination);
    let activation = parameters.activation as f64;
    SingleMetricScaler::build(spec, activation, Liiklus { parameters, channel })
}

impl ValueSource for Liiklus {
    fn value(&self) -> ScalerFuture<'_, f64> {
        Box::pin(async {
            let Parameters { topic, group, group_version, lag_threshold, .. } = &self.parameters;
            let request = GroupOffsetsRequest {
                topic: topic.clone(),
                group: group.clone(),
                group_version: *group_version,
            };
            let read: OffsetsReply = self.channel.unary(GET_OFFSETS, &request, &[]).await?;
            let request = EndOffsetsRequest { topic: topic.clone() };
            let end: OffsetsReply = self.channel.unary(GET_END_OFFSETS, &request, &[]).await?;
            Ok(total_lag(&read, &end, *lag_threshold)? as f64)
        })
    }
}
