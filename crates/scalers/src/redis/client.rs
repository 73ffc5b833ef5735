//! Connections, shared by all triggers with the same servers and credentials.

use std::time::Duration;

use sources::http::Secret;

use super::cluster::ClusterConnection;
use super::connect::{
    REQUEST_TIMEOUT, RedisAddress, RedisConnection, RedisConnector, RedisFailure, RedisLogin, unexpected,
};
use super::query::{self, RedisCount};
use super::resp::RedisReply;
use super::{ConnectionParameters, Topology};
use crate::ScalerError;
use crate::dial::Dialer;
use crate::pool::{self, PoolError, PoolFuture};
use crate::tls::TlsSettings;
use crate::urls::shown;

/// A server or a group of servers, with credentials and TLS settings.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct RedisServer {
    kind: Topology,
    addresses: Vec<String>,
    username: String,
    password: Secret,
    sentinel_username: String,
    sentinel_password: Secret,
    sentinel_master: String,
    database: i64,
    tls: Option<TlsSettings>,
    dialer: Dialer,
}

/// A connection to one server, or to a cluster.
pub(super) enum RedisServerConnection {
    Single(RedisConnection),
    Cluster(ClusterConnection),
}

impl RedisServer {
    /// `authorities` (PEM) are trusted in addition to those of the trigger.
    pub(super) fn new(
        kind: Topology,
        parameters: ConnectionParameters,
        authorities: &[u8],
        dialer: Dialer,
    ) -> Self {
        let mut addresses =
            query::addresses(&parameters.addresses, &parameters.hosts, &parameters.ports).unwrap_or_default();
        let tls = parameters.tls().map(|tls| tls.trusting(authorities));
        if kind == Topology::Single {
            addresses.truncate(1);
        }
        Self {
            kind,
            addresses,
            username: parameters.username,
            password: parameters.password,
            sentinel_username: parameters.sentinel_username,
            sentinel_password: parameters.sentinel_password,
            sentinel_master: parameters.sentinel_master,
            database: if kind == Topology::Cluster { 0 } else { parameters.database as i64 },
            tls,
            dialer,
        }
    }

    fn connector(&self) -> RedisConnector<'_> {
        RedisConnector { tls: self.tls.as_ref(), dialer: &self.dialer }
    }

    fn login(&self) -> RedisLogin<'_> {
        RedisLogin { username: &self.username, password: &self.password, database: self.database }
    }

    async fn open(&self) -> Result<RedisServerConnection, ScalerError> {
        let (connector, login) = (self.connector(), self.login());
        match self.kind {
            Topology::Single => {
                let address = address(self.addresses.first().map_or("", |address| address))?;
                connector.connect(&address, &login).await.map(RedisServerConnection::Single)
            }
            Topology::Sentinel => {
                let (username, password) = (&self.sentinel_username, &self.sentinel_password);
                let sentinel_login = RedisLogin { username, password, database: 0 };
                let mut failed = scaler_error!("there is no sentinel");
                for sentinel in &self.addresses {
                    let sentinel = address(sentinel)?;
                    match connector.master(&sentinel, &sentinel_login, &self.sentinel_master).await {
                        Ok(master) => {
                            return connector
                                .connect_master(&master, &login)
                                .await
                                .map(RedisServerConnection::Single);
                        }
                        Err(error) => failed = error,
                    }
                }
                Err(failed)
            }
            Topology::Cluster => ClusterConnection::open(connector, &login, &self.addresses)
                .await
                .map(RedisServerConnection::Cluster),
        }
    }

    /// Sends a command to the server of its key; without a key to any server.
    pub(super) async fn call(
        &self,
        connection: &mut RedisServerConnection,
        key: Option<&str>,
        words: &[&str],
    ) -> Result<RedisReply, RedisFailure> {
        match connection {
            RedisServerConnection::Single(connection) => connection.call(words).await,
            RedisServerConnection::Cluster(connection) => {
                connection.call(self.connector(), &self.login(), key, words).await
            }
        }
    }

    /// Sends a command whose reply is a number.
    async fn number(
        &self,
        connection: &mut RedisServerConnection,
        command: &str,
        key: &str,
    ) -> Result<i64, RedisFailure> {
        match self.call(connection, Some(key), &[command, key]).await? {
            RedisReply::Integer(number) => Ok(number),
            _ => Err(unexpected(command)),
        }
    }

    async fn count(
        &self,
        connection: &mut RedisServerConnection,
        what: &RedisCount,
    ) -> Result<i64, RedisFailure> {
        let refused = |error: crate::ParseError| RedisFailure::Unexpected(error.into());
        match what {
            RedisCount::Entries { key } => {
                let kind = self.call(connection, Some(key), &["TYPE", key]).await?;
                let kind = kind.text().ok_or_else(|| unexpected("TYPE"))?;
                let command = query::counts(key, &kind).map_err(refused)?;
                self.number(connection, command, key).await
            }
            RedisCount::Length { stream } => self.number(connection, "XLEN", stream).await,
            RedisCount::Pending { stream, group } => {
                let summary = self.call(connection, Some(stream), &["XPENDING", stream, group]).await?;
                pending_of(&summary).ok_or_else(|| unexpected("XPENDING"))
            }
            RedisCount::Lag { stream, group } => {
                let info = self.call(connection, None, &["INFO", "server"]).await?;
                query::knows_lag(&info.text().unwrap_or_default()).map_err(refused)?;
                let groups = match self.call(connection, Some(stream), &["XINFO", "GROUPS", stream]).await {
                    Err(RedisFailure::Refused(text)) if text.contains("no such key") => return Ok(0),
                    groups => groups?,
                };
                match lag_of(&groups, group).ok_or_else(|| unexpected("XINFO"))? {
                    StreamGroupLag::Known(lag) => Ok(lag),
                    // All entries of the stream count.
                    StreamGroupLag::NoGroup => self.number(connection, "XLEN", stream).await,
                    StreamGroupLag::Unknown => Err(RedisFailure::Unexpected(format!(
                        "Redis does not know how far group {group} is behind"
                    ))),
                }
            }
        }
    }
}

fn address(text: &str) -> Result<RedisAddress, ScalerError> {
    query::host_and_port(text).map_err(ScalerError::new)
}

impl pool::PooledServer for RedisServer {
    type Connection = RedisServerConnection;
    type Request = RedisCount;
    type Response = i64;
    const MAX_CONNECTIONS: usize = 4;
    const TIMEOUT: Duration = REQUEST_TIMEOUT;

    fn name(&self) -> String {
        let addresses: Vec<String> = self.addresses.iter().map(|address| shown(address)).collect();
        format!("redis {}", addresses.join(","))
    }

    fn sharing_key(request: &RedisCount) -> String {
        format!("{request:?}")
    }

    fn connect(&self) -> PoolFuture<'_, RedisServerConnection, ScalerError> {
        Box::pin(async move { self.open().await.map_err(|error| error.inside(self.name())) })
    }

    fn query<'a>(
        &'a self,
        connection: &'a mut RedisServerConnection,
        request: &'a RedisCount,
    ) -> PoolFuture<'a, i64, PoolError> {
        Box::pin(async move {
            self.count(connection, request).await.map_err(|failure| {
                let is_fatal = failure.is_fatal();
                let error = ScalerError::from(failure).inside(self.name());
                if is_fatal { PoolError::Lost(error) } else { PoolError::Refused(error) }
            })
        })
    }
}

/// How far a group is behind.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum StreamGroupLag {
    Known(i64),
    /// Redis returns nil if entries were deleted in between. The lag is unknown then, not 0.
    Unknown,
    /// The group does not exist yet.
    NoGroup,
}

/// The number of pending entries in a reply to `XPENDING`.
pub(super) fn pending_of(summary: &RedisReply) -> Option<i64> {
    match summary {
        RedisReply::List(summary) => match summary.first() {
            Some(RedisReply::Integer(count)) => Some(*count),
            _ => None,
        },
        _ => None,
    }
}

/// The lag of a group in a reply to `XINFO GROUPS`; none if it is no such reply.
pub(super) fn lag_of(groups: &RedisReply, group: &str) -> Option<StreamGroupLag> {
    let RedisReply::List(groups) = groups else { return None };
    for fields in groups {
        let RedisReply::List(fields) = fields else { return None };
        let field = |name: &str| {
            let mut pairs = fields.chunks_exact(2).filter_map(|pair| pair.first().zip(pair.last()));
            pairs.find(|(key, _)| key.text().as_deref() == Some(name)).map(|(_, value)| value)
        };
        if field("name").and_then(RedisReply::text).as_deref() == Some(group) {
            return Some(match field("lag") {
                Some(RedisReply::Integer(lag)) => StreamGroupLag::Known(*lag),
                _ => StreamGroupLag::Unknown,
            });
        }
    }
    Some(StreamGroupLag::NoGroup)
}
