//! redis: lists and streams of single servers, Clusters and Sentinels.
//!
//! ```text
//! query    requests and responses, without IO
//! client   pooled connections, shared by triggers with the same servers and credentials
//! cluster  servers of a Cluster, by key
//! connect  connections to allowed addresses
//! wake     waits for new entries of a stream
//! resp     the protocol, with bounds
//! ```

#[cfg(feature = "redis")]
mod client;
#[cfg(feature = "redis")]
mod cluster;
#[cfg(feature = "redis")]
mod connect;
mod query;
#[cfg(feature = "redis")]
mod resp;
#[cfg(test)]
mod tests;
#[cfg(feature = "redis")]
#[doc(hidden)]
pub mod untrusted;
#[cfg(feature = "redis")]
mod wake;

#[cfg(feature = "redis")]
use crate::WakeFuture;
#[cfg(feature = "redis")]
use crate::encrypted_key::opened;
use crate::pool::{Pool, Pools};
use crate::prelude::*;
use crate::tls::{CertificateCheck, TlsSettings};
#[cfg(feature = "redis")]
use crate::wake::WakeStreams;

#[cfg(feature = "redis")]
use client::RedisServer;
use query::RedisCount;
#[cfg(feature = "redis")]
use wake::NewEntries;

macro_rules! types {
    ($($about:literal; $constant:ident = $name:literal, $kind:ident, $parameters:ident, $display:literal, $unit:literal,
        $sample:expr;)*) => {$(
        #[doc = $about]
        pub const $constant: ScalerType = ScalerType {
            name: $name,
            about: $about,
            display: $display,
            parameters: $parameters::PARAMETERS,
            unit: |_| $unit,
            wakes: $parameters::WAKES,
            build: |trigger, backends| {
                metric::target_type(trigger)?;
                let (found, count_target) = $parameters::read(trigger)?.count_target(trigger);
                build(trigger, backends, Topology::$kind, found, count_target)
            },
            samples: &[Sample::tcp($sample, sample::PASSWORD)],
            ..ScalerType::DEFAULT
        };
    )*};
}

types! {
    "How many entries a list, set, sorted set or hash of Redis has.";
    TYPE = "redis", Single, ListParameters, "redisScaler", "items", &[("address", "{}"), ("listName", "l")];
    "How many entries a list, set, sorted set or hash of a Redis Cluster has.";
    CLUSTER = "redis-cluster", Cluster, ListParameters, "redisScaler", "items", &[("addresses", "{}"), ("listName", "l")];
    "How many entries a list, set, sorted set or hash of a Redis behind Sentinels has.";
    SENTINEL = "redis-sentinel", Sentinel, ListParameters, "redisScaler", "items",
        &[("addresses", "{}"), ("listName", "l"), ("sentinelMaster", "m")];
    "How far a consumer group is behind on a stream of Redis, or how long the stream is.";
    STREAMS = "redis-streams", Single, StreamParameters, "redisStreamsScaler", "", &[("address", "{}"), ("stream", "s")];
    "How far a consumer group is behind on a stream of a Redis Cluster, or how long the stream is.";
    CLUSTER_STREAMS = "redis-cluster-streams", Cluster, StreamParameters, "redisStreamsScaler", "",
        &[("addresses", "{}"), ("stream", "s")];
    "How far a consumer group is behind on a stream of a Redis behind Sentinels, or how long the stream is.";
    SENTINEL_STREAMS = "redis-sentinel-streams", Sentinel, StreamParameters, "redisStreamsScaler", "",
        &[("addresses", "{}"), ("stream", "s"), ("sentinelMaster", "m")];
}

/// Topology of the servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Topology {
    Single,
    Cluster,
    Sentinel,
}

crate::parameters! {
    /// Addresses, credentials and TLS settings.
    pub struct ConnectionParameters {
        /// Addresses as `host:port`, separated by commas. All addresses of a Cluster or of Sentinels are used, otherwise
        /// only the first.
        addresses: Vec<String> = "address" | "addresses" in [Metadata, Authentication, Environment];
        /// Hosts, in addition to or instead of addresses.
        hosts: Vec<String> = "host" | "hosts" in [Metadata, Environment, Authentication];
        /// Their ports.
        ports: Vec<String> = "port" | "ports" in [Metadata, Environment, Authentication];
        /// User name.
        username: String = "username" in [Metadata, Environment, Authentication];
        /// Password.
        password: Secret = "password" in [Metadata, Environment, Authentication];
        /// User name for the Sentinels.
        sentinel_username: String = "sentinelUsername" in [Metadata, Authentication, Environment];
        /// Password for the Sentinels.
        sentinel_password: Secret = "sentinelPassword" in [Metadata, Authentication, Environment];
        /// Name of the master in the Sentinels.
        sentinel_master: String = "sentinelMaster" in [Metadata, Authentication, Environment];
        /// Uses TLS: `true` or `false`.
        enable_tls: String = "enableTLS" in [Metadata];
        /// Uses TLS: `enable` or `disable`, instead of `enableTLS`.
        tls: String = "tls" in [Authentication];
        /// Index of the database; a Cluster has only one.
        database: isize = "databaseIndex" in [Metadata];
        /// Accepts any server certificate.
        unsafe_ssl: bool = "unsafeSsl" in [Metadata];
        /// Client certificate (PEM).
        certificate: String = "cert" | "Cert" in [Authentication];
        /// Private key of the client certificate (PEM).
        key: Secret = "key" in [Authentication];
        /// Password of the private key. Keys in PKCS #8 form can be opened (`BEGIN ENCRYPTED PRIVATE KEY`).
        key_password: Secret = "keyPassword" in [Authentication];
        /// CA certificate that is trusted in addition to the system's (PEM).
        ca: String = "ca" in [Authentication];
    }
}

crate::parameters! {
    /// A list, set, sorted set or hash.
    pub struct ListParameters of "error parsing redis metadata: error parsing redis metadata" {
        /// Target number of entries per replica.
        length: i64 = "listLength" in [Metadata], default "5";
        /// The trigger is active above this number of entries.
        activation: i64 = "activationListLength" in [Metadata], default "0";
        /// Key of the list, set, sorted set or hash.
        list: String = "listName" in [Metadata], required;
        /// Addresses, credentials and TLS settings.
        connection: ConnectionParameters;
    }
    check ListParameters::check
}

crate::parameters! {
    /// A stream.
    pub struct StreamParameters of "error parsing redis streams metadata: error parsing redis stream metadata" {
        /// Target number of pending (delivered but not acknowledged) entries of the group per replica.
        pending: i64 = "pendingEntriesCount" in [Metadata], default "5";
        /// Target number of entries of the stream per replica, without a consumer group.
        length: i64 = "streamLength" in [Metadata], default "5";
        /// Target lag (entries not delivered to the group yet) per replica, for Redis 7 and later; the lag is counted instead of
        /// the pending entries.
        lag: i64 = "lagCount" in [Metadata];
        /// Key of the stream.
        stream: String = "stream" in [Metadata], required;
        /// The consumer group whose pending entries or lag are counted; without a group, the length of the stream counts.
        group: String = "consumerGroup" in [Metadata];
        /// Addresses, credentials and TLS settings.
        connection: ConnectionParameters;
        /// The trigger is active above this number of entries, for every kind of count.
        activation: i64 = "activationLagCount" in [Metadata], default "0";
    }
    check StreamParameters::check
}

/// The count that a trigger reads, its target and activation.
struct CountTarget {
    name: String,
    request: RedisCount,
    target: i64,
    activation: i64,
}

impl ConnectionParameters {
    fn check(&mut self) -> Result<(), ParseError> {
        self.key = opened(&self.key, &self.key_password);
        query::addresses(&self.addresses, &self.hosts, &self.ports)?;
        self.uses_tls().map(|_| ())
    }

    fn uses_tls(&self) -> Result<bool, ParseError> {
        if !self.enable_tls.is_empty() && !self.tls.is_empty() {
            return Err("unable to set `tls` in both ScaledObject and TriggerAuthentication together".into());
        }
        let enabled = match &*self.enable_tls {
            "1" | "t" | "T" | "TRUE" | "true" | "True" => true,
            "" | "0" | "f" | "F" | "FALSE" | "false" | "False" => false,
            other => {
                return Err(format!("EnableTLS parsing error {other:?} is neither true nor false").into());
            }
        };
        match &*self.tls {
            "" => Ok(enabled),
            "enable" => Ok(true),
            "disable" => Ok(false),
            other => Err(format!("error incorrect TLS value given, got {other}").into()),
        }
    }

    fn tls(&self) -> Option<TlsSettings> {
        let certificate_check =
            if self.unsafe_ssl { CertificateCheck::Anything } else { CertificateCheck::Full };
        self.uses_tls().unwrap_or_default().then(|| TlsSettings {
            authorities: self.ca.clone(),
            certificate: self.certificate.clone(),
            key: self.key.clone(),
            certificate_check,
        })
    }
}

impl ListParameters {
    const WAKES: WakeMode = WakeMode::Never;

    fn check(&mut self, _: &Trigger) -> Result<(), ParseError> {
        self.connection.check()
    }

    fn count_target(self, _: &Trigger) -> (ConnectionParameters, CountTarget) {
        let count_target = CountTarget {
            name: format!("redis-{}", self.list),
            request: RedisCount::Entries { key: self.list },
            target: self.length,
            activation: self.activation,
        };
        (self.connection, count_target)
    }
}

impl StreamParameters {
    const WAKES: WakeMode = WakeMode::Annotated;

    fn check(&mut self, _: &Trigger) -> Result<(), ParseError> {
        self.connection.check()?;
        if self.stream.is_empty() { Err("missing redis stream name".into()) } else { Ok(()) }
    }

    fn count_target(self, _: &Trigger) -> (ConnectionParameters, CountTarget) {
        let name = format!("redis-streams-{}", self.stream);
        let Self { stream, group, .. } = self;
        let (request, target) = match (group.is_empty(), self.lag) {
            (true, _) => (RedisCount::Length { stream }, self.length),
            (false, 0) => (RedisCount::Pending { stream, group }, self.pending),
            (false, lag) => (RedisCount::Lag { stream, group }, lag),
        };
        (self.connection, CountTarget { name, request, target, activation: self.activation })
    }
}

#[cfg(feature = "redis")]
#[allow(clippy::unnecessary_wraps)] // A build without the feature fails.
fn build(
    trigger: &Trigger,
    backends: &Backends,
    kind: Topology,
    connection: ConnectionParameters,
    count_target: CountTarget,
) -> Result<Arc<dyn Scaler>, ScalerError> {
    let server =
        RedisServer::new(kind, connection, &backends.web.settings().authorities, backends.dialer.clone());
    let pool = backends.state::<Pools<RedisServer>>().of(&server);
    let spec = metric::external(trigger, &count_target.name, metric::whole(count_target.target));
    Ok(Arc::new(Redis { spec, count_target, pool, streams: WakeStreams::new(trigger, backends) }))
}

#[cfg(not(feature = "redis"))]
fn build(
    _: &Trigger,
    _: &Backends,
    _: Topology,
    _: ConnectionParameters,
    _: CountTarget,
) -> Result<Arc<dyn Scaler>, ScalerError> {
    Err(scaler_error!("this build has no client for Redis: build with the feature redis"))
}

/// A list or stream.
#[cfg(feature = "redis")]
struct Redis {
    spec: MetricSpec,
    count_target: CountTarget,
    pool: Arc<Pool<RedisServer>>,
    streams: WakeStreams<NewEntries>,
}

#[cfg(feature = "redis")]
impl Scaler for Redis {
    fn specs(&self) -> ScalerFuture<'_, Vec<MetricSpec>> {
        Box::pin(async move { Ok(vec![self.spec.clone()]) })
    }

    fn read<'a>(&'a self, metric: &'a str) -> ScalerFuture<'a, Reading> {
        Box::pin(async move {
            let count = self.pool.query(&self.count_target.request).await?;
            Ok(Reading::one(metric, metric::whole(count), count > self.count_target.activation))
        })
    }

    fn wake(self: Arc<Self>, query_now: tokio::sync::mpsc::Sender<()>) -> Option<WakeFuture> {
        let stream = match &self.count_target.request {
            RedisCount::Entries { .. } => return None,
            RedisCount::Length { stream }
            | RedisCount::Pending { stream, .. }
            | RedisCount::Lag { stream, .. } => stream.clone(),
        };
        let source = NewEntries { server: self.pool.server().clone(), stream };
        Some(self.streams.follow(source, query_now))
    }
}
