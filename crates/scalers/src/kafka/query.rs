//! Reads the lag of a trigger's consumer group.

use std::sync::{Mutex, PoisonError};

use super::rules::partitions;
use super::{ApacheParameters, Parameters};
use crate::encrypted_key::opened;
use crate::kafka_client::{
    GroupInterest, KafkaClusters, KafkaServer, LagPolicy, MskLogin, OAuthToken, PreviousOffsets, SaslLogin,
};
use crate::parameters::KedaProfile;
use crate::prelude::*;
use crate::scram::ScramHash;
use crate::tls::{CertificateCheck, TlsSettings};

/// The scaler of a trigger of either type.
pub(super) struct KafkaScaler {
    spec: MetricSpec,
    activation: i64,
    policy: LagPolicy,
    /// The group in its cluster; an error if the login is not possible here.
    interest: Result<Arc<GroupInterest>, ScalerError>,
    previous: Mutex<PreviousOffsets>,
    /// How long offsets are shared with other triggers of the cluster.
    fresh: Duration,
}

/// What both types have in common.
struct KafkaTrigger<'a> {
    bootstrap: &'a [String],
    group: &'a str,
    topics: &'a [String],
    tls: Option<TlsSettings>,
    login: Result<Option<SaslLogin>, ScalerError>,
}

impl KafkaScaler {
    /// The scaler of a trigger of type `kafka`.
    pub(super) fn kafka(parameters: &Parameters, trigger: &Trigger, backends: &Backends) -> Self {
        let topics: Vec<String> =
            Some(&parameters.topic).filter(|topic| !topic.is_empty()).cloned().into_iter().collect();
        let policy = LagPolicy {
            threshold: parameters.lag_threshold,
            from_earliest: parameters.offset_reset_policy == "earliest",
            only_retained: trigger.profile >= KedaProfile::V2_21,
            zero_without_offset: parameters.scale_to_zero_on_invalid_offset,
            allow_idle_consumers: parameters.allow_idle_consumers,
            exclude_persistent: parameters.exclude_persistent_lag,
            limit_to_partitions_with_lag: parameters.limit_to_partitions_with_lag,
            even_distribution: parameters.even_distribution,
            partitions: limitation(&parameters.partition_limitation, &topics),
        };
        let tls = (parameters.tls == "enable").then(|| {
            tls(
                &parameters.ca,
                &parameters.certificate,
                &opened(&parameters.key, &parameters.key_password),
                parameters.unsafe_ssl,
            )
        });
        let asked = KafkaTrigger {
            bootstrap: &parameters.bootstrap_servers,
            group: &parameters.group,
            topics: &topics,
            tls,
            login: parameters.login(trigger, backends),
        };
        let spec = external(trigger, &parameters.metric(), whole(parameters.lag_threshold));
        asked.scaler(spec, parameters.activation_lag_threshold, policy, backends)
    }

    /// The scaler of a trigger of type `apache-kafka`.
    pub(super) fn apache(parameters: &ApacheParameters, trigger: &Trigger, backends: &Backends) -> Self {
        let policy = LagPolicy {
            threshold: parameters.lag_threshold,
            from_earliest: parameters.offset_reset_policy == "earliest",
            only_retained: trigger.profile >= KedaProfile::V2_21,
            zero_without_offset: parameters.scale_to_zero_on_invalid_offset,
            allow_idle_consumers: parameters.allow_idle_consumers,
            exclude_persistent: parameters.exclude_persistent_lag,
            limit_to_partitions_with_lag: parameters.limit_to_partitions_with_lag,
            even_distribution: false,
            partitions: limitation(&parameters.partition_limitation, &parameters.topics),
        };
        let tls = (parameters.tls == "enable").then(|| {
            tls(
                &parameters.ca,
                &parameters.certificate,
                &opened(&parameters.key, &parameters.key_password),
                parameters.unsafe_ssl,
            )
        });
        let asked = KafkaTrigger {
            bootstrap: &parameters.bootstrap_servers,
            group: &parameters.group,
            topics: &parameters.topics,
            tls,
            login: parameters.login(trigger, backends),
        };
        let spec = external(trigger, &parameters.metric(), whole(parameters.lag_threshold));
        asked.scaler(spec, parameters.activation_lag_threshold, policy, backends)
    }
}

impl KafkaTrigger<'_> {
    fn scaler(
        self,
        spec: MetricSpec,
        activation: i64,
        policy: LagPolicy,
        backends: &Backends,
    ) -> KafkaScaler {
        let settings = backends.web.settings();
        let earliest = policy.from_earliest && policy.only_retained && !policy.zero_without_offset;
        let interest = self.login.map(|login| {
            let server = KafkaServer {
                bootstrap: self.bootstrap.to_vec(),
                tls: self.tls.map(|tls| tls.trusting(&settings.authorities)),
                login,
                dialer: backends.dialer.clone(),
            };
            backends.state::<KafkaClusters>().interest(&server, self.group, self.topics, earliest)
        });
        KafkaScaler { spec, activation, policy, interest, previous: Mutex::default(), fresh: settings.fresh }
    }
}

impl Scaler for KafkaScaler {
    fn specs(&self) -> ScalerFuture<'_, Vec<MetricSpec>> {
        Box::pin(async { Ok(vec![self.spec.clone()]) })
    }

    fn read<'a>(&'a self, metric: &'a str) -> ScalerFuture<'a, Reading> {
        Box::pin(async move {
            let interest = self.interest.as_ref().map_err(Clone::clone)?;
            let (sample, taken) = interest.read(self.fresh).await?;
            let mut previous = self.previous.lock().unwrap_or_else(PoisonError::into_inner);
            let lag = self.policy.lag(&sample, taken, &mut previous)?;
            Ok(Reading::one(metric, whole(lag.value.max(0)), lag.activation > self.activation))
        })
    }
}

impl Parameters {
    fn login(&self, trigger: &Trigger, backends: &Backends) -> Result<Option<SaslLogin>, ScalerError> {
        match &*self.sasl {
            "oauthbearer" if self.token_provider == "aws_msk_iam" => {
                let identity = self.credentials.permitted_identity(trigger, backends)?;
                let web = &backends.web;
                let login = MskLogin::login(true, &self.region, &identity, backends.state(), web);
                Ok(Some(SaslLogin::Token(login)))
            }
            "oauthbearer" => {
                let extensions: Vec<(String, String)> = self
                    .oauth_extensions
                    .split(',')
                    .filter_map(|pair| pair.split_once('='))
                    .map(|(key, value)| (key.to_owned(), value.to_owned()))
                    .collect();
                let client = (&*self.username, &self.password);
                let within = trigger.http_timeout;
                let web = &backends.web;
                let login =
                    OAuthToken::login(&self.token_endpoint, client, &self.scopes, &extensions, web, within);
                Ok(Some(SaslLogin::Token(login)))
            }
            sasl => login(sasl, &self.username, &self.password),
        }
    }
}

impl ApacheParameters {
    fn login(&self, trigger: &Trigger, backends: &Backends) -> Result<Option<SaslLogin>, ScalerError> {
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

/// A login with user name and password, or none.
fn login(sasl: &str, user: &str, password: &Secret) -> Result<Option<SaslLogin>, ScalerError> {
    let (user, password) = (user.to_owned(), password.clone());
    Ok(match sasl {
        "plaintext" => Some(SaslLogin::Plain { user, password }),
        "scram_sha256" => Some(SaslLogin::Scram { hash: ScramHash::Sha256, user, password }),
        "scram_sha512" => Some(SaslLogin::Scram { hash: ScramHash::Sha512, user, password }),
        "gssapi" => bail!("sasl gssapi (Kerberos) is not supported: use scram_sha512 or oauthbearer"),
        _ => None,
    })
}

fn tls(ca: &str, certificate: &str, key: &Secret, unsafe_ssl: bool) -> TlsSettings {
    let belief = if unsafe_ssl { CertificateCheck::Anything } else { CertificateCheck::Full };
    TlsSettings { authorities: ca.to_owned(), certificate: certificate.to_owned(), key: key.clone(), belief }
}

/// The partitions that count; the limitation is ignored if all topics of a group count.
fn limitation(limitation: &str, topics: &[String]) -> Option<Vec<i32>> {
    if topics.is_empty() { None } else { partitions(limitation).unwrap_or_default() }
}
