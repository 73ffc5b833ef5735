//! redis lists and streams, alone, in clusters and behind sentinels.
//!
//! ```text
//! query    what is asked and what answers mean, without IO
//! client   connections, shared by every trigger that asks the same servers in the same way
//! ```

#[cfg(feature = "redis")]
mod client;
mod query;
#[cfg(test)]
mod tests;

use std::sync::Arc;
#[cfg(feature = "redis")]
use std::sync::LazyLock;

use api::autoscaling::v2::MetricSpec;

use crate::backends::Backends;
use crate::parameters::Secret;
#[cfg(feature = "redis")]
use crate::pool::{Pool, Pools};
use crate::table::Type;
use crate::tls::{Belief, Tls};
use crate::{Answer, Error, Reading, Scaler, Trigger, metric};

#[cfg(feature = "redis")]
use client::Server;
use query::Question;

macro_rules! types {
    ($($about:literal; $constant:ident = $name:literal, $kind:ident, $parameters:ident, $display:literal;)*) => {$(
        #[doc = $about]
        pub const $constant: Type = Type {
            name: $name,
            about: $about,
            display: $display,
            parameters: $parameters::PARAMETERS,
            push: false,
            build: |trigger, backends| {
                let (found, questions) = $parameters::read(trigger)?.questions(trigger);
                build(trigger, backends, Kind::$kind, found, questions)
            },
        };
    )*};
}

types! {
    "How many entries a list, set, sorted set or hash of Redis has.";
    TYPE = "redis", Single, Lists, "redisScaler";
    "How many entries a list, set, sorted set or hash of a Redis Cluster has.";
    CLUSTER = "redis-cluster", Cluster, Lists, "redisScaler";
    "How many entries a list, set, sorted set or hash of a Redis behind Sentinels has.";
    SENTINEL = "redis-sentinel", Sentinel, Lists, "redisScaler";
    "How far a consumer group is behind on a stream of Redis, or how long the stream is.";
    STREAMS = "redis-streams", Single, Streams, "redisStreamsScaler";
    "How far a consumer group is behind on a stream of a Redis Cluster, or how long the stream is.";
    CLUSTER_STREAMS = "redis-cluster-streams", Cluster, Streams, "redisStreamsScaler";
    "How far a consumer group is behind on a stream of a Redis behind Sentinels, or how long the stream is.";
    SENTINEL_STREAMS = "redis-sentinel-streams", Sentinel, Streams, "redisStreamsScaler";
}

/// How servers are put together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Kind {
    Single,
    Cluster,
    Sentinel,
}

crate::parameters! {
    /// Where Redis is, and how to speak with it.
    pub struct Connection {
        /// Where it is: `host:port`; several with commas between them. Those of a Cluster or of Sentinels are all used, of
        /// others only the first.
        addresses: Vec<String> = "address" | "addresses" in [Metadata, Authentication, Environment];
        /// Hosts, instead of addresses or besides them.
        hosts: Vec<String> = "host" | "hosts" in [Metadata, Environment, Authentication];
        /// Their ports.
        ports: Vec<String> = "port" | "ports" in [Metadata, Environment, Authentication];
        /// User.
        username: String = "username" in [Metadata, Environment, Authentication];
        /// Password.
        password: Secret = "password" in [Metadata, Environment, Authentication];
        /// User of the Sentinels.
        sentinel_username: String = "sentinelUsername" in [Metadata, Authentication, Environment];
        /// Password of the Sentinels.
        sentinel_password: Secret = "sentinelPassword" in [Metadata, Authentication, Environment];
        /// How the Sentinels call the master.
        sentinel_master: String = "sentinelMaster" in [Metadata, Authentication, Environment];
        /// Whether it speaks TLS: `true` or `false`.
        enable_tls: String = "enableTLS" in [Metadata];
        /// Whether it speaks TLS: `enable` or `disable`; instead of `enableTLS`.
        tls: String = "tls" in [Authentication];
        /// Whether any certificate of the server will do.
        unsafe_ssl: bool = "unsafeSsl" in [Metadata];
        /// Our certificate (PEM).
        certificate: String = "cert" | "Cert" in [Authentication];
        /// Its key (PEM).
        key: Secret = "key" in [Authentication];
        /// The password of the key. Encrypted keys are refused: a Secret is where a key is kept safe.
        key_password: Secret = "keyPassword" in [Authentication];
        /// An authority that is trusted besides the system's (PEM).
        ca: String = "ca" in [Authentication];
        /// The database; a Cluster has only one.
        database: isize = "databaseIndex" in [Metadata];
    }
    check Connection::check
}

crate::parameters! {
    /// A list, set, sorted set or hash.
    pub struct Lists of "error parsing redis metadata: error parsing redis metadata" {
        /// Its key.
        list: String = "listName" in [Metadata], required;
        /// How many entries one replica is to have.
        length: i64 = "listLength" in [Metadata], default "5";
        /// With more entries than this it is active.
        activation: i64 = "activationListLength" in [Metadata], default "0";
        /// Where it is.
        connection: Connection;
    }
}

crate::parameters! {
    /// A stream.
    pub struct Streams of "error parsing redis streams metadata: error parsing redis stream metadata" {
        /// Its key.
        stream: String = "stream" in [Metadata], required;
        /// The consumer group whose work is counted; without one the stream's entries are.
        group: String = "consumerGroup" in [Metadata];
        /// How many entries that the group took but did not acknowledge one replica is to have.
        pending: i64 = "pendingEntriesCount" in [Metadata], default "5";
        /// How many entries of the stream one replica is to have, if there is no group.
        length: i64 = "streamLength" in [Metadata], default "5";
        /// How many entries that the group did not take yet one replica is to have (Redis 7 and later); counts these instead
        /// of those that are not acknowledged.
        lag: i64 = "lagCount" in [Metadata];
        /// With more entries than this it is active, whatever is counted.
        activation: i64 = "activationLagCount" in [Metadata], default "0";
        /// Where it is.
        connection: Connection;
    }
    check Streams::check
}

/// What a trigger asks for.
struct Asked {
    name: String,
    question: Question,
    target: i64,
    activation: i64,
}

impl Connection {
    fn check(&mut self, _: &Trigger) -> Result<(), String> {
        self.uses_tls()?;
        query::addresses(&self.addresses, &self.hosts, &self.ports).map(|_| ())
    }

    fn uses_tls(&self) -> Result<bool, String> {
        let enabled = match &*self.enable_tls {
            "1" | "t" | "T" | "TRUE" | "true" | "True" => true,
            "" | "0" | "f" | "F" | "FALSE" | "false" | "False" => false,
            other => return Err(format!("EnableTLS parsing error {other:?} is neither true nor false")),
        };
        match &*self.tls {
            "" => Ok(enabled),
            _ if enabled => {
                Err("unable to set `tls` in both ScaledObject and TriggerAuthentication together".to_owned())
            }
            "enable" => Ok(true),
            "disable" => Ok(false),
            other => Err(format!("error incorrect TLS value given, got {other}")),
        }
    }

    fn tls(&self) -> Option<Tls> {
        let belief = if self.unsafe_ssl { Belief::Anything } else { Belief::Full };
        self.uses_tls().unwrap_or_default().then(|| Tls {
            authorities: self.ca.clone(),
            certificate: self.certificate.clone(),
            key: self.key.clone(),
            belief,
        })
    }
}

impl Lists {
    fn questions(self, _: &Trigger) -> (Connection, Asked) {
        let asked = Asked {
            name: format!("redis-{}", self.list),
            question: Question::Entries { key: self.list },
            target: self.length,
            activation: self.activation,
        };
        (self.connection, asked)
    }
}

impl Streams {
    fn check(&mut self, _: &Trigger) -> Result<(), String> {
        if self.stream.is_empty() { Err("missing redis stream name".to_owned()) } else { Ok(()) }
    }

    fn questions(self, _: &Trigger) -> (Connection, Asked) {
        let name = format!("redis-streams-{}", self.stream);
        let Self { stream, group, .. } = self;
        let (question, target) = match (group.is_empty(), self.lag) {
            (true, _) => (Question::Length { stream }, self.length),
            (false, 0) => (Question::Pending { stream, group }, self.pending),
            (false, lag) => (Question::Lag { stream, group }, lag),
        };
        (self.connection, Asked { name, question, target, activation: self.activation })
    }
}

#[cfg(feature = "redis")]
static POOLS: LazyLock<Pools<Server>> = LazyLock::new(Pools::default);

#[cfg(feature = "redis")]
fn build(
    trigger: &Trigger,
    backends: &Backends,
    kind: Kind,
    connection: Connection,
    asked: Asked,
) -> Result<Arc<dyn Scaler>, Error> {
    metric::target_type(trigger)?;
    let pool = POOLS.of(&Server::new(kind, connection, &backends.web.settings().authorities));
    let spec = metric::external(trigger, &asked.name, metric::whole(asked.target));
    Ok(Arc::new(Redis { spec, asked, pool }))
}

#[cfg(not(feature = "redis"))]
fn build(_: &Trigger, _: &Backends, _: Kind, _: Connection, _: Asked) -> Result<Arc<dyn Scaler>, Error> {
    Err(Error::new("this build has no client for Redis: build with the feature redis"))
}

/// A list or stream.
#[cfg(feature = "redis")]
struct Redis {
    spec: MetricSpec,
    asked: Asked,
    pool: Arc<Pool<Server>>,
}

#[cfg(feature = "redis")]
impl Scaler for Redis {
    fn specs(&self) -> Answer<'_, Vec<MetricSpec>> {
        Box::pin(async move { Ok(vec![self.spec.clone()]) })
    }

    fn read<'a>(&'a self, metric: &'a str) -> Answer<'a, Reading> {
        Box::pin(async move {
            let count = self.pool.ask(&self.asked.question).await?;
            Ok(Reading::one(metric, metric::whole(count), count > self.asked.activation))
        })
    }
}
