//! solace-direct-messaging: the transmission rates of clients of a Solace broker.

use crate::prelude::*;

/// The scaler type `solace-direct-messaging`.
pub const TYPE: ScalerType = ScalerType {
    name: "solace-direct-messaging",
    about: "How many messages and bytes per second clients of a Solace broker receive.",
    display: "SolaceDMScaler",
    parameters: Parameters::PARAMETERS,
    queried: false,
    build,
    samples: &[Sample::http(
        &[
            ("solaceSempBaseURL", "http://{}"),
            ("messageVpn", "v"),
            ("clientNamePattern", "c"),
            ("aggregatedClientTxMsgRateTarget", "5"),
        ],
        sample::USER_AND_PASSWORD,
    )],
    ..ScalerType::DEFAULT
};

crate::parameters! {
    /// Parameters of solace-direct-messaging. Each target greater than 0 is a metric.
    pub struct Parameters of "error parsing metadata" {
        /// URLs of SEMP, e.g. `http://broker.solace:8080`, separated by commas.
        semp_urls: Vec<String> = "solaceSempBaseURL" in [Metadata], required;
        /// The message VPN.
        message_vpn: String = "messageVpn" in [Metadata], required;
        /// A part of the names of the clients.
        client_pattern: String = "clientNamePattern" in [Metadata], required;
        /// Accepts any server certificate.
        unsafe_ssl: bool = "unsafeSSL" in [Metadata];
        /// Target number of messages per second per replica, of all clients together.
        messages: i64 = "aggregatedClientTxMsgRateTarget" in [Metadata];
        /// Target number of bytes per second per replica, of all clients together.
        bytes: i64 = "aggregatedClientTxByteRateTarget" in [Metadata];
        /// Target number of messages per second per replica, averaged over a minute.
        average_messages: i64 = "aggregatedClientAverageTxMsgRateTarget" in [Metadata];
        /// Target number of bytes per second per replica, averaged over a minute.
        average_bytes: i64 = "aggregatedClientAverageTxByteRateTarget" in [Metadata];
        /// Activation of `aggregatedClientTxMsgRateTarget`.
        activation_messages: isize = "activationAggregatedClientTxMsgRateTarget" in [Metadata];
        /// Activation of `aggregatedClientTxByteRateTarget`.
        activation_bytes: isize = "activationAggregatedClientTxByteRateTarget" in [Metadata];
        /// Activation of `aggregatedClientAverageTxMsgRateTarget`.
        activation_average_messages: isize = "activationAggregatedClientAverageTxMsgRateTarget" in [Metadata];
        /// Activation of `aggregatedClientAverageTxByteRateTarget`.
        activation_average_bytes: isize = "activationAggregatedClientAverageTxByteRateTarget" in [Metadata];
        /// User name.
        username: String = "username" in [Authentication, Environment], required;
        /// Password.
        password: Secret = "password" in [Authentication, Environment], required;
    }
}

fn build(trigger: &Trigger, _: &Backends) -> Result<Arc<dyn Scaler>, ScalerError> {
    target_type(trigger)?;
    let parameters = Parameters::read(trigger)?;
    let targets = [
        (parameters.messages, "aggregatedClientTxMsgRateTarget"),
        (parameters.bytes, "aggregatedClientTxByteRateTarget"),
        (parameters.average_messages, "aggregatedClientAverageTxMsgRateTarget"),
        (parameters.average_bytes, "aggregatedClientAverageTxByteRateTarget"),
    ];
    let wanted = targets.into_iter().filter(|(target, _)| *target > 0);
    let specs: Vec<_> = wanted
        .map(|(target, key)| {
            external(trigger, &format!("solace-dm-{}-{key}", parameters.client_pattern), whole(target))
        })
        .collect();
    UnqueriedScaler::build(trigger, specs)
}
