//! Connections, shared by all triggers with the same servers and credentials.

use std::collections::HashMap;
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::cluster::ClusterClient;
use redis::cluster_async::ClusterConnection;
use redis::cluster_routing::{RoutingInfo, SingleNodeRoutingInfo};
use redis::{
    Cmd, ConnectionAddr, ErrorKind, FromRedisValue, RedisConnectionInfo, RedisError, TlsMode, Value, cmd,
};
use sources::http::Secret;

use super::connect::{
    AllowedAddresses, CONNECT_TIMEOUT, REQUEST_TIMEOUT, RedisConnector, certificates, describe, failed,
};
use super::query::{self, RedisCount};
use super::{Connection as Parameters, Topology};
use crate::ScalerError;
use crate::dial::Dialer;
use crate::pool::{self, PoolError, PoolFuture};
use crate::tls::{CertificateCheck, TlsSettings};
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
pub(super) enum Connection {
    Single(MultiplexedConnection),
    Cluster(ClusterConnection),
}

impl RedisServer {
    /// `authorities` (PEM) are trusted in addition to those of the trigger.
    pub(super) fn new(kind: Topology, parameters: Parameters, authorities: &[u8], dialer: Dialer) -> Self {
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

    fn address(&self, address: &str) -> Result<ConnectionAddr, ScalerError> {
        let (host, port) = query::host_and_port(address).map_err(ScalerError::new)?;
        Ok(self.connector().address(host, port))
    }

    fn connector(&self) -> RedisConnector<'_> {
        RedisConnector { tls: self.tls.as_ref(), dialer: &self.dialer }
    }

    fn settings(username: &str, password: &Secret) -> RedisConnectionInfo {
        let mut settings = RedisConnectionInfo::default();
        if !username.is_empty() {
            settings = settings.set_username(username);
        }
        if !password.reveal().is_empty() {
            settings = settings.set_password(password.reveal());
        }
        settings
    }

    async fn open(&self) -> Result<Connection, ScalerError> {
        let settings = Self::settings(&self.username, &self.password).set_db(self.database);
        match self.kind {
            Topology::Single => {
                let address = self.address(self.addresses.first().map_or("", |address| address))?;
                self.connector().connect(address, settings).await.map(Connection::Single)
            }
            Topology::Sentinel => {
                let connector = self.connector();
                let sentinel_settings = Self::settings(&self.sentinel_username, &self.sentinel_password);
                let mut failed = scaler_error!("there is no sentinel");
                for address in &self.addresses {
                    let sentinel = self.address(address)?;
                    let master = connector.master(sentinel, &sentinel_settings, &self.sentinel_master);
                    match master.await {
                        Ok(master) => {
                            return self
                                .connector()
                                .connect_master(master, settings)
                                .await
                                .map(Connection::Single);
                        }
                        Err(error) => failed = error,
                    }
                }
                Err(failed)
            }
            Topology::Cluster => self.open_cluster().await,
        }
    }

    async fn open_cluster(&self) -> Result<Connection, ScalerError> {
        let addresses: Result<Vec<_>, _> =
            self.addresses.iter().map(|address| self.address(address)).collect();
        let mut builder = ClusterClient::builder(addresses?)
            .connection_timeout(CONNECT_TIMEOUT)
            .response_timeout(REQUEST_TIMEOUT)
            .async_dns_resolver(AllowedAddresses(self.dialer.clone()))
            .retries(2);
        if !self.username.is_empty() {
            builder = builder.username(&self.username);
        }
        if !self.password.reveal().is_empty() {
            builder = builder.password(self.password.reveal());
        }
        if let Some(tls) = &self.tls {
            let is_unchecked = tls.certificate_check == CertificateCheck::Anything;
            let mode = if is_unchecked { TlsMode::Insecure } else { TlsMode::Secure };
            builder = builder.tls(mode).certs(certificates(tls)?);
        }
        let client = builder.build().map_err(failed)?;
        client.get_async_connection().await.map(Connection::Cluster).map_err(failed)
    }
}

impl pool::PooledServer for RedisServer {
    type Connection = Connection;
    type Request = RedisCount;
    type Response = i64;
    const MAX_CONNECTIONS: usize = 4;

    fn name(&self) -> String {
        let addresses: Vec<String> = self.addresses.iter().map(|address| shown(address)).collect();
        format!("redis {}", addresses.join(","))
    }

    fn within(&self) -> Duration {
        REQUEST_TIMEOUT
    }

    fn connect(&self) -> PoolFuture<'_, Connection, ScalerError> {
        Box::pin(async move {
            if self.tls.is_some() {
                crate::tls::use_one_provider();
            }
            self.open().await.map_err(|error| error.inside(self.name()))
        })
    }

    fn ask<'a>(
        &'a self,
        connection: &'a mut Connection,
        question: &'a RedisCount,
    ) -> PoolFuture<'a, i64, PoolError> {
        Box::pin(async move {
            let answer = match question {
                RedisCount::Entries { key } => entries(connection, key).await,
                RedisCount::Length { stream } => length(connection, stream).await,
                RedisCount::Pending { stream, group } => pending(connection, stream, group).await,
                RedisCount::Lag { stream, group } => lag(connection, stream, group).await,
            };
            answer.map_err(|trouble| {
                let error = scaler_error!("{}: {}", self.name(), trouble.describe());
                if trouble.is_fatal() { PoolError::Lost(error) } else { PoolError::Refused(error) }
            })
        })
    }
}

/// Why a count failed.
enum RedisFailure {
    Redis(RedisError),
    Unexpected(String),
}

impl From<RedisError> for RedisFailure {
    fn from(error: RedisError) -> Self {
        Self::Redis(error)
    }
}

impl RedisFailure {
    fn describe(&self) -> String {
        match self {
            Self::Redis(error) => describe(error),
            Self::Unexpected(text) => text.clone(),
        }
    }

    /// Whether the connection must be replaced: also after errors of a server that changed its role.
    fn is_fatal(&self) -> bool {
        match self {
            Self::Unexpected(_) => false,
            Self::Redis(error) => match error.kind() {
                ErrorKind::Server(_) | ErrorKind::Extension => {
                    matches!(error.code(), Some("READONLY" | "MASTERDOWN" | "LOADING" | "NOAUTH"))
                }
                _ => true,
            },
        }
    }
}

async fn entries(connection: &mut Connection, key: &str) -> Result<i64, RedisFailure> {
    let kind: String = connection.query(cmd("TYPE").arg(key)).await?;
    let counts = query::counts(key, &kind).map_err(|error| RedisFailure::Unexpected(error.into()))?;
    Ok(connection.query(cmd(counts).arg(key)).await?)
}

async fn length(connection: &mut Connection, stream: &str) -> Result<i64, RedisFailure> {
    Ok(connection.query(cmd("XLEN").arg(stream)).await?)
}

async fn pending(connection: &mut Connection, stream: &str, group: &str) -> Result<i64, RedisFailure> {
    let summary: Vec<Value> = connection.query(cmd("XPENDING").arg(stream).arg(group)).await?;
    match summary.into_iter().next() {
        Some(Value::Int(count)) => Ok(count),
        _ => {
            Err(RedisFailure::Unexpected("XPENDING was answered with something that is no count".to_owned()))
        }
    }
}

async fn lag(connection: &mut Connection, stream: &str, group: &str) -> Result<i64, RedisFailure> {
    let info: String = connection.info().await?;
    query::knows_lag(&info).map_err(|error| RedisFailure::Unexpected(error.into()))?;
    let groups =
        connection.query::<Vec<HashMap<String, Value>>>(cmd("XINFO").arg("GROUPS").arg(stream)).await;
    let groups = match groups {
        Ok(groups) => groups,
        Err(error) if error.detail().is_some_and(|detail| detail.contains("no such key")) => return Ok(0),
        Err(error) => return Err(error.into()),
    };
    let is_it = |fields: &&HashMap<String, Value>| {
        fields.get("name").and_then(|name| String::from_redis_value_ref(name).ok()).as_deref() == Some(group)
    };
    match groups.iter().find(is_it).map(|fields| fields.get("lag")) {
        // The group does not exist yet, so all entries of the stream count.
        None => length(connection, stream).await,
        Some(Some(Value::Int(lag))) => Ok(*lag),
        // Redis returns nil if entries were deleted in between. The lag is unknown then, not 0.
        Some(_) => {
            Err(RedisFailure::Unexpected(format!("Redis does not know how far group {group} is behind")))
        }
    }
}

impl Connection {
    async fn query<T: FromRedisValue>(&mut self, command: &Cmd) -> Result<T, RedisError> {
        match self {
            Self::Single(connection) => command.query_async(connection).await,
            Self::Cluster(connection) => command.query_async(connection).await,
        }
    }

    /// The response to `INFO server`, in a Cluster from any server.
    async fn info(&mut self) -> Result<String, RedisError> {
        let mut info = cmd("INFO");
        info.arg("server");
        match self {
            Self::Single(connection) => info.query_async(connection).await,
            Self::Cluster(connection) => {
                let any = RoutingInfo::SingleNode(SingleNodeRoutingInfo::Random);
                Ok(String::from_redis_value(connection.route_command(info, any).await?)?)
            }
        }
    }
}
