//! apache-kafka: the same lag, with lists of topics and AWS MSK IAM.

use std::collections::BTreeMap;

use super::query::{KafkaScaler, KafkaTrigger, login};
use super::rules::{KafkaTls, LagOptions, LagThresholds};
use crate::aws::AwsCredentials;
use crate::kafka_client::{MskLogin, SaslLogin};
use crate::parameters::Ranges;
use crate::prelude::*;

/// The scaler type `apache-kafka`.
pub const APACHE: ScalerType = ScalerType {
    name: "apache-kafka",
    about: "How many messages of Kafka topics a consumer group has not read yet.",
    display: "apacheKafkaScaler",
    parameters: ApacheParameters::PARAMETERS,
    unit: |_| "messages",
    wakes: WakeMode::Annotated,
    build,
    samples: &[Sample::tcp(&[("bootstrapServers", "{}"), ("consumerGroup", "g"), ("topic", "t")], &[])],
    ..ScalerType::DEFAULT
};

crate::parameters! {
    /// Parameters of apache-kafka.
    pub struct ApacheParameters of "error parsing kafka metadata: error parsing kafka metadata" {
        /// Brokers that are asked for the others, as `host:port`.
        bootstrap_servers: Vec<String> = "bootstrapServers" in [Metadata, Environment], required;
        /// The consumer group.
        group: String = "consumerGroup" in [Metadata, Environment], required;
        /// The topics; without them, every topic with committed offsets of the group counts. `plimsoll.dev/wake` needs `Read` on them.
        topics: Vec<String> = "topic" in [Metadata, Environment];
        /// Partitions that count, e.g. `1,2-5`; all if it is missing.
        partition_limitation: Option<Ranges> = "partitionLimitation" in [Metadata];
        /// Target and activation.
        thresholds: LagThresholds;
        /// Where a group without committed offset begins.
        offset_reset_policy: String = "offsetResetPolicy" in [Metadata], default "latest", one_of ["earliest", "latest"];
        /// Which lag counts.
        options: LagOptions;
        /// Has no effect, as in KEDA.
        even_distribution: bool = "ensureEvenDistributionOfPartitions" in [Metadata];
        /// How the client logs in.
        sasl: String = "sasl" in [Metadata, Authentication], default "none",
            one_of ["none", "plaintext", "scram_sha256", "scram_sha512", "gssapi", "aws_msk_iam"];
        /// User name.
        username: String = "username" in [Authentication];
        /// Password.
        password: Secret = "password" in [Authentication];
        /// AWS region of `aws_msk_iam`.
        region: String = "awsRegion" in [Metadata];
        /// TLS settings.
        tls: KafkaTls;
        /// AWS credentials of `aws_msk_iam`.
        credentials: AwsCredentials;
    }
    check ApacheParameters::check
}

impl ApacheParameters {
    fn check(&mut self, _: &Trigger) -> Result<(), ParseError> {
        if self.thresholds.lag_threshold <= 0 {
            return Err("lagThreshold must be a positive number".into());
        }
        if self.thresholds.activation_lag_threshold < 0 {
            return Err("activationLagThreshold must be a positive number".into());
        }
        if self.options.allow_idle_consumers && self.options.limit_to_partitions_with_lag {
            return Err("allowIdleConsumers and limitToPartitionsWithLag cannot be set simultaneously".into());
        }
        if self.topics.is_empty() && self.options.limit_to_partitions_with_lag {
            return Err("topic must be specified when using limitToPartitionsWithLag".into());
        }
        let (certificate, key) = (!self.tls.certificate.is_empty(), !self.tls.key.reveal().is_empty());
        if self.tls.is_enabled() && certificate != key {
            return Err("can't set only one of cert or key when using TLS".into());
        }
        match &*self.sasl {
            "plaintext" if self.username.is_empty() || self.password.reveal().is_empty() => {
                Err("username and password must be set when using SASL/PLAINTEXT".into())
            }
            "aws_msk_iam" if self.region.is_empty() => {
                Err("awsRegion must be set when using AWS MSK IAM".into())
            }
            "aws_msk_iam" if !self.tls.is_enabled() => {
                Err("TLS must be enabled when using AWS MSK IAM".into())
            }
            _ => Ok(()),
        }
    }

    /// The metric: the topics, or the group if all its topics count.
    fn metric(&self) -> String {
        if self.topics.is_empty() {
            format!("kafka-{}-topics", self.group)
        } else {
            format!("kafka-{}", self.topics.join(","))
        }
    }

    fn scaler(&self, trigger: &Trigger, backends: &Backends) -> KafkaScaler {
        let requested = KafkaTrigger {
            bootstrap: &self.bootstrap_servers,
            group: &self.group,
            topics: &self.topics,
            metric: &self.metric(),
            thresholds: &self.thresholds,
            offset_reset_policy: &self.offset_reset_policy,
            options: &self.options,
            even_distribution: false,
            partitions: self.partition_limitation.as_ref().and_then(numbers_of_partitions),
            tls: &self.tls,
            login: self.login(trigger, backends),
        };
        requested.scaler(trigger, backends)
    }

    pub(super) fn login(
        &self,
        trigger: &Trigger,
        backends: &Backends,
    ) -> Result<Option<SaslLogin>, ScalerError> {
        match &*self.sasl {
            "aws_msk_iam" => {
                let identity = self.credentials.permitted_identity(trigger, backends)?;
                let web = &backends.web;
                let login = MskLogin::login(false, &self.region, &identity, backends.state(), web);
                Ok(Some(SaslLogin::Token(login)))
            }
            sasl => login(sasl, &self.username, &self.password),
        }
    }
}

/// The partitions that count; none if all do. Unlike with kafka, an empty range limits nothing.
fn numbers_of_partitions(Ranges(numbers): &Ranges) -> Option<Vec<i32>> {
    let fitting = || numbers.iter().filter_map(|number| i32::try_from(*number).ok()).collect();
    (!numbers.is_empty()).then(fitting)
}

fn build(trigger: &Trigger, backends: &Backends) -> Result<Arc<dyn Scaler>, ScalerError> {
    target_type(trigger)?;
    let parameters = ApacheParameters::read(trigger)?;
    for key in ["sasl", "tls"] {
        let is_given = |texts: &BTreeMap<String, String>| texts.get(key).is_some_and(|text| !text.is_empty());
        if is_given(&trigger.metadata) && is_given(&trigger.auth) {
            let why =
                format!("unable to set `{key}` in both ScaledObject and TriggerAuthentication together");
            return Err(ScalerError::new(why).inside(super::PREFIX));
        }
    }
    if parameters.sasl == "aws_msk_iam" {
        parameters.credentials.identity(trigger).map_err(|error| error.inside(super::PREFIX))?;
    }
    Ok(Arc::new(parameters.scaler(trigger, backends)))
}
