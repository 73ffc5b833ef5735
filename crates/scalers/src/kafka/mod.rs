//! kafka and apache-kafka: the lag of a consumer group.
//!
//! ```text
//! apache    parameters of apache-kafka, which differ from those of kafka
//! rules     parameters and checks that both share, without IO
//! query     reads the lag
//! ```

mod apache;
mod query;
mod rules;
#[cfg(test)]
mod tests;

pub use apache::{APACHE, ApacheParameters};

use query::KafkaScaler;
use rules::{KafkaTls, LagOptions, LagThresholds, is_version, partitions};

use crate::aws::AwsCredentials;
use crate::prelude::*;

/// Prefix of errors that are found after the parameters were read.
const PREFIX: &str = "error parsing kafka metadata";

/// The scaler type `kafka`.
pub const TYPE: ScalerType = ScalerType {
    name: "kafka",
    about: "How many messages of Kafka topics a consumer group has not read yet.",
    display: "kafkaScaler",
    parameters: Parameters::PARAMETERS,
    unit: |_| "messages",
    wakes: WakeMode::Annotated,
    build,
    samples: &[Sample::tcp(&[("bootstrapServers", "{}"), ("consumerGroup", "g"), ("topic", "t")], &[])],
    ..ScalerType::DEFAULT
};

crate::parameters! {
    /// Parameters of kafka.
    pub struct Parameters of "error parsing kafka metadata: error parsing kafka metadata" {
        /// Brokers that are asked for the others, as `host:port`.
        bootstrap_servers: Vec<String> = "bootstrapServers" in [Metadata, Environment], required;
        /// The consumer group.
        group: String = "consumerGroup" in [Metadata, Environment], required;
        /// The topic; without it, every topic with committed offsets of the group counts. `plimsoll.dev/wake` needs `Read` on it.
        topic: String = "topic" in [Metadata, Environment];
        /// Partitions that count, e.g. `1,2-5`; all if it is missing.
        partition_limitation: String = "partitionLimitation" in [Metadata];
        /// Target and activation.
        thresholds: LagThresholds;
        /// Where a group without committed offset begins.
        offset_reset_policy: String = "offsetResetPolicy" in [Metadata], default "latest", one_of ["latest", "earliest"];
        /// Which lag counts.
        options: LagOptions;
        /// Only replica counts that divide the number of partitions.
        even_distribution: bool = "ensureEvenDistributionOfPartitions" in [Metadata];
        /// `false` reads the metadata of the topic only, not of all topics of the cluster.
        full_metadata: bool = "fullMetadata" in [Metadata], default "true", since_2_21;
        /// Version of the protocol.
        version: String = "version" in [Metadata], default "1.0.0";
        /// TLS settings.
        tls: KafkaTls;
        /// How the client logs in. `gssapi` (Kerberos) is checked, but connections with it are not possible.
        sasl: String = "sasl" in [Metadata, Authentication], default "none",
            one_of ["none", "plaintext", "scram_sha256", "scram_sha512", "oauthbearer", "gssapi"];
        /// User name; the client id with `oauthbearer`.
        username: String = "username" in [Authentication];
        /// Password; the client secret with `oauthbearer`.
        password: Secret = "password" in [Authentication];
        /// Where tokens of `oauthbearer` come from.
        token_provider: String = "saslTokenProvider" in [Metadata, Authentication], default "bearer",
            one_of ["bearer", "aws_msk_iam"];
        /// Scopes of the token, separated by commas.
        scopes: Vec<String> = "scopes" in [Authentication];
        /// Token endpoint of `oauthbearer`.
        token_endpoint: String = "oauthTokenEndpointUri" in [Authentication];
        /// SASL extensions of `oauthbearer`, as `key=value,key=value`.
        oauth_extensions: String = "oauthExtensions" in [Authentication];
        /// Kerberos keytab (base64) of `gssapi`.
        keytab: Secret = "keytab" in [Authentication];
        /// Name of a Kerberos credential cache file of `gssapi`.
        credential_cache: String = "ccacheName" in [Authentication], since_2_21;
        /// Kerberos realm.
        realm: String = "realm" in [Authentication];
        /// Kerberos configuration (`krb5.conf`).
        kerberos_config: String = "kerberosConfig" in [Authentication];
        /// Kerberos service name of the brokers.
        kerberos_service: String = "kerberosServiceName" in [Authentication];
        /// Switches FAST negotiation of Kerberos off.
        kerberos_without_fast: bool = "kerberosDisableFAST" in [Authentication];
        /// AWS region of `aws_msk_iam`.
        region: String = "awsRegion" in [Metadata];
        /// AWS credentials of `aws_msk_iam`.
        credentials: AwsCredentials;
    }
    check Parameters::check
}

impl Parameters {
    fn check(&mut self, trigger: &Trigger) -> Result<(), ParseError> {
        if self.thresholds.lag_threshold <= 0 {
            return Err("\"lagThreshold\" must be positive number".into());
        }
        if self.thresholds.activation_lag_threshold < 0 {
            return Err("\"activationLagThreshold\" must be a non-negative number".into());
        }
        partitions(&self.partition_limitation)?;
        let limits = self.options.limit_to_partitions_with_lag;
        if self.options.allow_idle_consumers && limits {
            return Err("allowIdleConsumers and limitToPartitionsWithLag cannot be set simultaneously".into());
        }
        if self.topic.is_empty() && limits {
            return Err("topic must be specified when using limitToPartitionsWithLag".into());
        }
        if limits && self.even_distribution {
            return Err("limitToPartitionsWithLag and ensureEvenDistributionOfPartitions cannot be set \
                        simultaneously"
                .into());
        }
        if self.topic.is_empty() && self.even_distribution {
            return Err("topic must be specified when using ensureEvenDistributionOfPartitions".into());
        }
        let needs_topic = !self.full_metadata && trigger.behavior().kafka_needs_topic_without_full_metadata;
        if self.topic.is_empty() && needs_topic {
            return Err("topic must be specified when fullMetadata is false".into());
        }
        self.check_tls()?;
        self.check_login(trigger)
    }

    fn check_tls(&self) -> Result<(), ParseError> {
        if !self.tls.is_enabled() {
            return Ok(());
        }
        match (self.tls.certificate.is_empty(), self.tls.key.reveal().is_empty()) {
            (false, true) => Err("key must be provided with cert".into()),
            (true, false) => Err("cert must be provided with key".into()),
            _ => Ok(()),
        }
    }

    fn check_login(&self, trigger: &Trigger) -> Result<(), ParseError> {
        match &*self.sasl {
            "plaintext" | "scram_sha256" | "scram_sha512" => self.check_user(),
            "oauthbearer" => self
                .check_token_provider()
                .map_err(|error| format!("error parsing OAuth token provider configuration: {error}").into()),
            "gssapi" => self.check_kerberos(trigger),
            _ => Ok(()),
        }
    }

    fn check_user(&self) -> Result<(), ParseError> {
        if self.username.is_empty() {
            return Err("no username given".into());
        }
        if self.password.reveal().is_empty() {
            return Err("no password given".into());
        }
        Ok(())
    }

    fn check_token_provider(&self) -> Result<(), ParseError> {
        if self.token_provider == "aws_msk_iam" {
            if !self.tls.is_enabled() {
                return Err("TLS is required for AWS MSK authentication".into());
            }
            return if self.region.is_empty() { Err("no awsRegion given".into()) } else { Ok(()) };
        }
        self.check_user()?;
        if self.token_endpoint.is_empty() {
            return Err("no oauth token endpoint uri given".into());
        }
        if self.oauth_extensions.is_empty() {
            return Ok(());
        }
        let is_pair = |pair: &str| pair.split('=').count() == 2;
        if self.oauth_extensions.split(',').all(is_pair) {
            Ok(())
        } else {
            Err("invalid OAuthBearer extension, must be of format key=value".into())
        }
    }

    fn check_kerberos(&self, trigger: &Trigger) -> Result<(), ParseError> {
        if self.username.is_empty() {
            return Err("no username given".into());
        }
        let given = [
            !self.password.reveal().is_empty(),
            !self.keytab.reveal().is_empty(),
            !self.credential_cache.is_empty(),
        ];
        if given.into_iter().filter(|given| *given).count() != 1 {
            let ways = if trigger.behavior().kafka_has_credential_cache {
                "'password', 'keytab' or 'ccacheName'"
            } else {
                "'password' or 'keytab'"
            };
            return Err(format!("exactly one of {ways} must be provided for GSSAPI authentication").into());
        }
        if self.realm.is_empty() {
            return Err("no realm given".into());
        }
        if self.kerberos_config.is_empty() {
            return Err("no Kerberos configuration file (kerberosConfig) given".into());
        }
        Ok(())
    }

    /// The metric: the topic, or the group if all its topics count.
    fn metric(&self) -> String {
        match &*self.topic {
            "" => format!("kafka-{}-topics", self.group),
            topic => format!("kafka-{topic}"),
        }
    }
}

fn build(trigger: &Trigger, backends: &Backends) -> Result<Arc<dyn Scaler>, ScalerError> {
    target_type(trigger)?;
    let parameters = Parameters::read(trigger)?;
    if !is_version(&parameters.version) {
        let version = &parameters.version;
        bail!("{PREFIX}: error parsing kafka version: invalid version `{version}`");
    }
    let cache = &*parameters.credential_cache;
    if parameters.sasl == "gssapi" && (cache.contains('/') || matches!(cache, "." | "..")) {
        bail!("{PREFIX}: ccacheName must be a file name and not a path");
    }
    if parameters.sasl == "oauthbearer" && parameters.token_provider == "aws_msk_iam" {
        let fail = |error: ScalerError| error.inside("error getting AWS authorization").inside(PREFIX);
        parameters.credentials.identity(trigger).map_err(fail)?;
    }
    Ok(Arc::new(KafkaScaler::kafka(&parameters, trigger, backends)))
}

/// Decodes bytes of a broker, for fuzzing; returns whether they are valid.
#[doc(hidden)]
pub fn is_response(bytes: &[u8]) -> bool {
    crate::kafka_client::is_response(bytes)
}
