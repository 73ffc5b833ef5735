//! Connections, shared by all triggers with the same servers and credentials.

use std::collections::HashMap;
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::cluster::ClusterClient;
use redis::cluster_async::ClusterConnection;
use redis::cluster_routing::{RoutingInfo, SingleNodeRoutingInfo};
use redis::sentinel::{SentinelClientBuilder, SentinelServerType};
use redis::{
    AsyncConnectionConfig, Client, ClientTlsConfig, Cmd, ConnectionAddr, ErrorKind, FromRedisValue,
    IntoConnectionInfo as _, RedisConnectionInfo, RedisError, TlsCertificates, TlsMode, Value, cmd,
};
use sources::http::{HttpErrorCause, Secret};

use super::query::{self, RedisCount};
use super::{Connection as Parameters, Topology};
use crate::ScalerError;
use crate::pool::{self, PoolError, PoolFuture};
use crate::tls::{CertificateCheck, TlsSettings};
use crate::urls::shown;

/// Timeout of a request, including the connection.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
/// Timeout of a connection attempt.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);

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
}

/// A connection to one server, or to a cluster.
pub(super) enum Connection {
    Single(MultiplexedConnection),
    Cluster(ClusterConnection),
}

impl RedisServer {
    /// `authorities` (PEM) are trusted in addition to those of the trigger.
    pub(super) fn new(kind: Topology, parameters: Parameters, authorities: &[u8]) -> Self {
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
        }
    }

    fn address(&self, address: &str) -> Result<ConnectionAddr, ScalerError> {
        let (host, port) = query::host_and_port(address).map_err(ScalerError::new)?;
        Ok(match &self.tls {
            Some(tls) => ConnectionAddr::TcpTls {
                host,
                port,
                insecure: tls.belief == CertificateCheck::Anything,
                tls_params: None,
            },
            None => ConnectionAddr::Tcp(host, port),
        })
    }

    fn certificates(tls: &TlsSettings) -> Result<TlsCertificates, ScalerError> {
        // Validates the certificates first, for clearer errors than the client's.
        tls.config(&[])?;
        let client_tls = (!tls.certificate.is_empty()).then(|| ClientTlsConfig {
            client_cert: tls.certificate.clone().into_bytes(),
            client_key: tls.key.reveal().as_bytes().to_vec(),
        });
        let root_cert = (!tls.authorities.is_empty()).then(|| tls.all_authorities());
        Ok(TlsCertificates { client_tls, root_cert })
    }

    fn settings(&self) -> RedisConnectionInfo {
        let mut settings = RedisConnectionInfo::default().set_db(self.database);
        if !self.username.is_empty() {
            settings = settings.set_username(&self.username);
        }
        if !self.password.reveal().is_empty() {
            settings = settings.set_password(self.password.reveal());
        }
        settings
    }

    fn mode(tls: &TlsSettings) -> TlsMode {
        if tls.belief == CertificateCheck::Anything { TlsMode::Insecure } else { TlsMode::Secure }
    }

    async fn open(&self) -> Result<Connection, ScalerError> {
        let failed = |error: RedisError| ScalerError::caused_by(describe(&error), error);
        match self.kind {
            Topology::Single => {
                let address = self.address(self.addresses.first().map_or("", |address| address))?;
                let info =
                    address.into_connection_info().map_err(failed)?.set_redis_settings(self.settings());
                let client = match &self.tls {
                    Some(tls) => Client::build_with_tls(info, Self::certificates(tls)?),
                    None => Client::open(info),
                };
                single(&client.map_err(failed)?).await.map_err(failed)
            }
            Topology::Sentinel => {
                let addresses: Result<Vec<_>, _> =
                    self.addresses.iter().map(|address| self.address(address)).collect();
                let mut builder =
                    SentinelClientBuilder::new(addresses?, &self.sentinel_master, SentinelServerType::Master)
                        .map_err(failed)?
                        .set_client_to_redis_db(self.database);
                if !self.username.is_empty() {
                    builder = builder.set_client_to_redis_username(&self.username);
                }
                if !self.password.reveal().is_empty() {
                    builder = builder.set_client_to_redis_password(self.password.reveal());
                }
                if !self.sentinel_username.is_empty() {
                    builder = builder.set_client_to_sentinel_username(&self.sentinel_username);
                }
                if !self.sentinel_password.reveal().is_empty() {
                    builder = builder.set_client_to_sentinel_password(self.sentinel_password.reveal());
                }
                if let Some(tls) = &self.tls {
                    builder = builder
                        .set_client_to_redis_tls_mode(Self::mode(tls))
                        .set_client_to_sentinel_tls_mode(Self::mode(tls))
                        .set_client_to_redis_certificates(Self::certificates(tls)?)
                        .set_client_to_sentinel_certificates(Self::certificates(tls)?);
                }
                let mut client = builder.build().map_err(failed)?;
                single(&client.async_get_client().await.map_err(failed)?).await.map_err(failed)
            }
            Topology::Cluster => {
                let addresses: Result<Vec<_>, _> =
                    self.addresses.iter().map(|address| self.address(address)).collect();
                let mut builder = ClusterClient::builder(addresses?)
                    .connection_timeout(CONNECT_TIMEOUT)
                    .response_timeout(REQUEST_TIMEOUT)
                    .retries(2);
                if !self.username.is_empty() {
                    builder = builder.username(&self.username);
                }
                if !self.password.reveal().is_empty() {
                    builder = builder.password(self.password.reveal());
                }
                if let Some(tls) = &self.tls {
                    builder = builder.tls(Self::mode(tls)).certs(Self::certificates(tls)?);
                }
                let client = builder.build().map_err(failed)?;
                client.get_async_connection().await.map(Connection::Cluster).map_err(failed)
            }
        }
    }
}

async fn single(client: &Client) -> Result<Connection, RedisError> {
    let config = AsyncConnectionConfig::new()
        .set_connection_timeout(Some(CONNECT_TIMEOUT))
        .set_response_timeout(Some(REQUEST_TIMEOUT));
    client.get_multiplexed_async_connection_with_config(&config).await.map(Connection::Single)
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

/// Describes an error for events.
fn describe(error: &RedisError) -> String {
    if error.is_timeout() {
        return "timed out".to_owned();
    }
    if error.is_connection_refusal() {
        return "connection refused".to_owned();
    }
    match error.kind() {
        ErrorKind::Server(_) | ErrorKind::Extension => match (error.code(), error.detail()) {
            (Some(code), Some(detail)) => format!("{code} {detail}"),
            (Some(code), None) => code.to_owned(),
            _ => error.to_string(),
        },
        ErrorKind::AuthenticationFailed => {
            format!("user or password was refused ({})", error.detail().unwrap_or("no reason given"))
        }
        ErrorKind::MasterNameNotFoundBySentinel => "the sentinels know no master of this name".to_owned(),
        ErrorKind::Io => match HttpErrorCause::classify(error) {
            HttpErrorCause::ConnectionLost(_) => error.to_string(),
            cause => cause.to_string(),
        },
        _ => error.to_string(),
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
