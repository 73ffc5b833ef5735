//! Reads the lag of a trigger's consumer group.

use std::sync::Mutex;

use locks::MutexExt as _;

use super::Parameters;
use super::rules::{KafkaTls, LagOptions, LagThresholds, partitions};
use crate::WakeFuture;
use crate::kafka_client::{
    GroupInterest, KafkaClusters, KafkaServer, LagPolicy, MskLogin, NewRecords, OAuthToken, PreviousOffsets,
    SaslLogin,
};
use crate::prelude::*;
use crate::scram::ScramHash;
use crate::wake::WakeStreams;

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
    streams: WakeStreams<NewRecords>,
}

/// What both types have in common.
pub(super) struct KafkaTrigger<'a> {
    pub(super) bootstrap: &'a [String],
    pub(super) group: &'a str,
    pub(super) topics: &'a [String],
    pub(super) metric: &'a str,
    pub(super) thresholds: &'a LagThresholds,
    pub(super) offset_reset_policy: &'a str,
    pub(super) options: &'a LagOptions,
    pub(super) even_distribution: bool,
    /// The partitions that count; none if all do.
    pub(super) partitions: Option<Vec<i32>>,
    pub(super) tls: &'a KafkaTls,
    pub(super) login: Result<Option<SaslLogin>, ScalerError>,
}

impl KafkaScaler {
    /// The scaler of a trigger of type `kafka`.
    pub(super) fn kafka(parameters: &Parameters, trigger: &Trigger, backends: &Backends) -> Self {
        let topics: Vec<String> =
            Some(&parameters.topic).filter(|topic| !topic.is_empty()).cloned().into_iter().collect();
        let requested = KafkaTrigger {
            bootstrap: &parameters.bootstrap_servers,
            group: &parameters.group,
            topics: &topics,
            metric: &parameters.metric(),
            thresholds: &parameters.thresholds,
            offset_reset_policy: &parameters.offset_reset_policy,
            options: &parameters.options,
            even_distribution: parameters.even_distribution,
            partitions: partitions(&parameters.partition_limitation).unwrap_or_default(),
            tls: &parameters.tls,
            login: parameters.login(trigger, backends),
        };
        requested.scaler(trigger, backends)
    }
}

impl KafkaTrigger<'_> {
    /// How the lag is counted.
    fn policy(&self, trigger: &Trigger, backends: &Backends) -> LagPolicy {
        let LagOptions {
            allow_idle_consumers,
            exclude_persistent_lag: exclude_persistent,
            scale_to_zero_on_invalid_offset: zero_without_offset,
            limit_to_partitions_with_lag,
        } = *self.options;
        // The limitation is ignored if all topics of a group count.
        let partitions = self.partitions.as_ref().filter(|_| !self.topics.is_empty());
        LagPolicy {
            threshold: self.thresholds.lag_threshold,
            from_earliest: self.offset_reset_policy == "earliest",
            only_retained: trigger.behavior().kafka_counts_only_retained,
            zero_without_offset,
            allow_idle_consumers,
            subtracts_lost_records: backends.compat.is_strict(),
            exclude_persistent,
            limit_to_partitions_with_lag,
            even_distribution: self.even_distribution,
            partitions: partitions.map(|numbers| numbers.iter().copied().collect()),
        }
    }

    /// The scaler, with the connections of these backends.
    pub(super) fn scaler(self, trigger: &Trigger, backends: &Backends) -> KafkaScaler {
        let settings = backends.web.settings();
        let policy = self.policy(trigger, backends);
        let earliest = policy.from_earliest && policy.only_retained && !policy.zero_without_offset;
        let interest = self.login.map(|login| {
            let tls = self.tls.settings(login.as_ref());
            let server = KafkaServer {
                namespace: trigger.owner.namespace.clone(),
                bootstrap: self.bootstrap.to_vec(),
                tls: tls.map(|tls| tls.trusting(&settings.authorities)),
                login,
                dialer: backends.dialer.clone(),
            };
            backends.state::<KafkaClusters>().interest(&server, self.group, self.topics, earliest)
        });
        KafkaScaler {
            spec: external(trigger, self.metric, whole(self.thresholds.lag_threshold)),
            activation: self.thresholds.activation_lag_threshold,
            policy,
            interest,
            previous: Mutex::default(),
            fresh: settings.fresh,
            streams: WakeStreams::new(trigger, backends),
        }
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
            let mut previous = self.previous.locked();
            let lag = self.policy.lag(&sample, taken, &mut previous)?;
            Ok(Reading::one(metric, whole(lag.value.max(0)), lag.activation > self.activation))
        })
    }

    fn wake(self: Arc<Self>, query_now: tokio::sync::mpsc::Sender<()>) -> Option<WakeFuture> {
        let source = self.interest.as_ref().ok()?.new_records()?;
        Some(self.streams.follow(source, query_now))
    }
}

impl Parameters {
    pub(super) fn login(
        &self,
        trigger: &Trigger,
        backends: &Backends,
    ) -> Result<Option<SaslLogin>, ScalerError> {
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

/// A login with user name and password, or none.
pub(super) fn login(sasl: &str, user: &str, password: &Secret) -> Result<Option<SaslLogin>, ScalerError> {
    let (user, password) = (user.to_owned(), password.clone());
    Ok(match sasl {
        "plaintext" => Some(SaslLogin::Plain { user, password }),
        "scram_sha256" => Some(SaslLogin::Scram { hash: ScramHash::Sha256, user, password }),
        "scram_sha512" => Some(SaslLogin::Scram { hash: ScramHash::Sha512, user, password }),
        "gssapi" => bail!("sasl gssapi (Kerberos) is not supported: use scram_sha512 or oauthbearer"),
        _ => None,
    })
}
