//! Parameters that both types share, and their checks, without IO.

use crate::encrypted_key::opened;
use crate::kafka_client::SaslLogin;
use crate::prelude::*;
use crate::tls::{CertificateCheck, TlsSettings};

/// Maximum number of partitions in a list with ranges; more than any topic has.
const MAX_PARTITIONS: usize = 100_000;

crate::parameters! {
    /// Target and activation.
    pub struct LagThresholds {
        /// Target lag per replica.
        lag_threshold: i64 = "lagThreshold" in [Metadata], default "10";
        /// The trigger is active above this lag.
        activation_lag_threshold: i64 = "activationLagThreshold" in [Metadata], default "0";
    }
}

crate::parameters! {
    /// Which lag counts.
    pub struct LagOptions {
        /// Whether there may be more replicas than partitions.
        allow_idle_consumers: bool = "allowIdleConsumers" in [Metadata];
        /// Leaves out partitions whose committed offset has not changed since the previous query.
        exclude_persistent_lag: bool = "excludePersistentLag" in [Metadata];
        /// Counts partitions without committed offset as 0 instead of 1.
        scale_to_zero_on_invalid_offset: bool = "scaleToZeroOnInvalidOffset" in [Metadata];
        /// At most as many replicas as partitions with lag.
        limit_to_partitions_with_lag: bool = "limitToPartitionsWithLag" in [Metadata];
    }
}

crate::parameters! {
    /// TLS of connections to brokers.
    pub struct KafkaTls {
        /// Whether TLS is used.
        mode: String = "tls" in [Metadata, Authentication], default "disable", one_of ["enable", "disable"];
        /// Accepts any server certificate. Has no effect with credentials of the operator.
        unsafe_ssl: bool = "unsafeSsl" in [Metadata];
        /// CA certificate that is trusted in addition to the system's (PEM). Has no effect with credentials of the operator.
        ca: String = "ca" in [Authentication];
        /// Client certificate (PEM).
        certificate: String = "cert" in [Authentication];
        /// Private key of the client certificate (PEM).
        key: Secret = "key" in [Authentication];
        /// Password of the private key.
        key_password: Secret = "keyPassword" in [Authentication];
    }
}

impl KafkaTls {
    pub(super) fn is_enabled(&self) -> bool {
        self.mode == "enable"
    }

    /// TLS settings; none for plain text. A token of the operator is sent to verified brokers only, whatever the trigger says: a
    /// tenant who can redirect the name of a broker would read it otherwise.
    pub(super) fn settings(&self, login: Option<&SaslLogin>) -> Option<TlsSettings> {
        let own = TlsSettings {
            certificate: self.certificate.clone(),
            key: opened(&self.key, &self.key_password),
            ..TlsSettings::default()
        };
        if login.is_some_and(SaslLogin::is_of_operator) {
            return Some(own);
        }
        let certificate_check =
            if self.unsafe_ssl { CertificateCheck::Anything } else { CertificateCheck::Full };
        self.is_enabled().then(|| TlsSettings { authorities: self.ca.clone(), certificate_check, ..own })
    }
}

/// The partitions of `partitionLimitation`, e.g. `1,2-5`; none if all count.
pub(super) fn partitions(limitation: &str) -> Result<Option<Vec<i32>>, ParseError> {
    if limitation.is_empty() {
        return Ok(None);
    }
    let mut all = Vec::new();
    for item in limitation.split(',').map(str::trim) {
        let number = |text: &str| {
            let wrong = || ParseError::from(format!("invalid partition limitation: {item}"));
            text.trim().parse::<i32>().map_err(|_| wrong())
        };
        let (first, last) = match item.split('-').collect::<Vec<_>>()[..] {
            [one] => (number(one)?, number(one)?),
            [first, last] => (number(first)?, number(last)?),
            _ => return Err(format!("invalid partition limitation range: {item}").into()),
        };
        let count = usize::try_from(i64::from(last) - i64::from(first)).unwrap_or_default();
        if all.len() + count > MAX_PARTITIONS {
            return Err(format!("invalid partition limitation range: {item}").into());
        }
        all.extend(first..=last);
    }
    Ok(Some(all))
}

/// Whether a text is a version of Kafka's protocol: `0.10.2.0` with four numbers, later ones with three.
pub(super) fn is_version(text: &str) -> bool {
    let numbers: Vec<&str> = text.split('.').collect();
    let digits = |number: &&str| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    let count = if numbers.first() == Some(&"0") { 4 } else { 3 };
    numbers.len() == count && numbers.iter().all(digits)
}
